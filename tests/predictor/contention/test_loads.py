"""Predictions of NFs at an offered rate, and on other numbers of cores than their default."""

import math
from dataclasses import replace

import numpy as np
import pytest

from predictor import Models, TomurPredictor
from predictor.contention.core_counts import CoreScale, scale_to, stack_scales, unstack_scales
from predictor.contention.correcting import widen
from predictor.contention.workload_table import WorkloadTable
from predictor.regression.gaussian_process import GaussianProcess
from profiles import InputError, Workload
from tests.predictor.made_up import CRYPTO, DEFAULT, LOOKUP, PLAIN

TARGET, OTHER = Workload(PLAIN.name, DEFAULT), Workload(LOOKUP.name, DEFAULT)
NOTHING = GaussianProcess.none(3)


def _capacity(models: Models, co_location: list[Workload]) -> float:
    """What the first workload can carry."""
    return float(models.predictors["tomur"].throughput([co_location])[0][0])


def test_more_than_an_nf_can_carry_is_as_much_as_it_takes(models: Models) -> None:
    """A rate above its throughput alone disturbs others as without a rate, to the last bit."""
    alone = _capacity(models, [OTHER])
    for kpps in (1.001 * alone, 10 * alone):
        assert _capacity(models, [TARGET, replace(OTHER, rate_kpps=kpps)]) == _capacity(models, [TARGET, OTHER])


def test_a_saturated_nf_is_as_much_of_a_neighbour_after_one_at_a_rate(models: Models) -> None:
    """What was computed of an NF at a rate is no share of what it carries where more is offered than that."""
    table = WorkloadTable(models.models)
    light, saturated = table.row(replace(OTHER, rate_kpps=5.0)), table.row(OTHER)
    assert table.presence[light] < 0.1 and table.presence[saturated] == 1.0


def test_rows_are_the_same_one_by_one_and_all_at_once(models: Models) -> None:
    """An NF at several rates, of which the later ones are scaled from the first, and saturated in between."""
    workloads = [replace(OTHER, rate_kpps=rate) for rate in (5.0, math.inf, 70.0, 1e6)]
    apart, together = WorkloadTable(models.models), WorkloadTable(models.models)
    rows, at_once = [apart.row(workload) for workload in workloads], together.rows(workloads)
    assert np.array_equal(apart.numbers[rows], together.numbers[at_once])
    assert np.array_equal(apart.whole[rows, :-1], together.whole[at_once, :-1])


def test_a_competitor_disturbs_by_what_it_carries(models: Models) -> None:
    """The capacity falls with the rate of the competitor, from that alone to that beside a saturated one."""
    alone = _capacity(models, [OTHER])
    rates = [share * alone for share in (1e-6, 0.25, 0.5, 0.75, 1.0)]
    capacities = [_capacity(models, [TARGET, replace(OTHER, rate_kpps=kpps)]) for kpps in rates]
    assert capacities == sorted(capacities, reverse=True)
    assert capacities[0] == pytest.approx(_capacity(models, [TARGET]), rel=5e-3)
    assert capacities[-1] == _capacity(models, [TARGET, OTHER]) < 0.99 * capacities[0]


def test_the_own_rate_changes_no_capacity(models: Models) -> None:
    """What an NF is offered says nothing about what it could carry."""
    assert _capacity(models, [replace(TARGET, rate_kpps=5.0), OTHER]) == _capacity(models, [TARGET, OTHER])


def test_a_light_competitor_takes_of_an_accelerator_what_it_asks(models: Models) -> None:
    """A packet of the pipeline takes t ms, so beside another that sends r kpps it has (1 - r t) / t left."""
    bare = {name: replace(one, calibration=None, neighbours=None) for name, one in models.models.items()}
    tomur, (use,) = TomurPredictor(bare), bare[CRYPTO.name].execution.uses
    time = float(use.service(np.array([DEFAULT.as_tuple()]))[0])
    crypto = Workload(CRYPTO.name, DEFAULT)
    for share in (0.1, 0.3):
        predicted = float(tomur.throughput([[crypto, replace(crypto, rate_kpps=share / time)]])[0][0])
        assert predicted == pytest.approx((1 - share) / time, rel=1e-6)
    assert float(tomur.throughput([[crypto, crypto]])[0][0]) == pytest.approx(0.5 / time, rel=1e-6)


def test_a_prediction_tells_what_is_carried_from_what_could_be(models: Models) -> None:
    """At most the offered rate is carried, and no interval reaches above it."""
    ((predicted, other),) = models.predictors["tomur"].predict([[replace(TARGET, rate_kpps=100.0), OTHER]])
    assert (predicted.throughput_kpps, predicted.low_kpps, predicted.high_kpps) == (100.0, 100.0, 100.0)
    assert predicted.capacity_kpps == pytest.approx(_capacity(models, [TARGET, OTHER]))
    assert other.capacity_kpps == other.throughput_kpps


def _on(cores: int, logarithm: float) -> CoreScale:
    return CoreScale(cores, logarithm, NOTHING, 2.0 / cores, 1.0, 0.01)


def test_four_cores_follow_from_one_by_amdahls_law() -> None:
    """One core carries 0.6 of two, so a fifth is done one after the other: four carry (0.2 + 0.4) / (0.2 + 0.2) of two.
    Where one core carries half of two, four carry twice as much."""
    assert scale_to(4, 2, {1: _on(1, math.log(0.6))}).logarithm == pytest.approx(math.log(1.5), abs=1e-3)
    assert scale_to(4, 2, {1: _on(1, math.log(0.5))}).logarithm == pytest.approx(math.log(2.0))


def test_what_was_not_measured_is_less_certain() -> None:
    assert scale_to(4, 2, {1: _on(1, -0.7)}).spread > 5 * 0.01 / 2


def test_scales_are_kept_as_arrays() -> None:
    """Those that were stored are those that are read."""
    scales = {1: _on(1, -0.7), 4: _on(4, 0.6)}
    again = unstack_scales(stack_scales(scales))
    assert list(again) == [1, 4]
    for cores, scale in scales.items():
        for name, array in scale.as_arrays().items():
            assert again[cores].as_arrays()[name].tolist() == array.tolist()


def test_another_number_of_cores_changes_capacity_and_disturbance(models: Models) -> None:
    """Twice the cores carry 1.9 times as much alone, and disturb others more than one does."""
    of_other = replace(models.models[OTHER.nf], core_scales={2: _on(2, math.log(1.9))})
    of_plain = replace(models.models[TARGET.nf], core_scales={2: replace(_on(2, math.log(1.9)), pressure=0.5)})
    tomur = TomurPredictor({**models.models, OTHER.nf: of_other, TARGET.nf: of_plain})
    plain_twice, other_twice = (replace(workload, cores=2) for workload in (TARGET, OTHER))
    alone, twice = tomur.solo([TARGET, plain_twice]).tolist()
    assert twice == pytest.approx(1.9 * alone, rel=0.05)
    beside = [float(kpps[0]) for kpps in tomur.throughput([[TARGET, OTHER], [TARGET, other_twice]])]
    assert beside[1] < beside[0]


def test_a_number_of_cores_that_is_not_profiled_is_refused(models: Models) -> None:
    with pytest.raises(InputError, match="plain is not profiled on 3 cores"):
        _capacity(models, [replace(TARGET, cores=3)])
    assert models.check(replace(TARGET, cores=3)) == [("cores", "'plain' is not profiled on 3 cores, possible: 1")]


def test_what_errs_further_has_a_wider_interval(models: Models) -> None:
    """Twice the doubt on two cores: an interval of twice the width, as a logarithm, around the same capacity."""
    bare = replace(models.models[TARGET.nf], neighbours=None, alone=None)
    widths = []
    for doubt in (1.0, 2.0):
        scale = replace(_on(2, math.log(1.9)), doubt=doubt)
        tomur = TomurPredictor({**models.models, TARGET.nf: replace(bare, core_scales={2: scale})})
        predicted = tomur.predict([[replace(TARGET, cores=2), OTHER]])[0][0]
        assert predicted.low_kpps is not None and predicted.high_kpps is not None
        widths.append((predicted.capacity_kpps, math.log(predicted.high_kpps / predicted.low_kpps)))
    assert widths[0][0] == widths[1][0]
    assert widths[1][1] == pytest.approx(2.0 * widths[0][1])


def test_many_light_competitors_are_less_certain_than_those_measured() -> None:
    """Where no more than three were measured: three light ones leave the usual spread, seven 60 % more; three that take
    all they can leave what they did, and a fourth of these five times as much."""
    assert [widen(0.4, 1.5, competitors, 3.0) for competitors in (3, 7)] == pytest.approx([1.0, 1.6])
    assert [widen(0.4, float(others), others, 3.0) for others in (3, 4)] == pytest.approx([0.4, 2.0])
