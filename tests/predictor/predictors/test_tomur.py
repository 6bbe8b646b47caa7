"""Predictions of co-locations: properties that hold for any models."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor import Models, TomurPredictor
from predictor.contention import equilibrium
from predictor.contention.equilibrium import settle
from predictor.contention.workload_table import WorkloadTable
from profiles import InputError, TrafficProfile, Workload
from tests.effort import examples
from tests.predictor.made_up import CRYPTO, DEFAULT, LOOKUP, PLAIN, counters, play

NAMES = (PLAIN.name, CRYPTO.name, LOOKUP.name)

workloads = st.builds(
    Workload,
    st.sampled_from(NAMES),
    st.builds(TrafficProfile, st.floats(1, 2e5), st.floats(64, 1500), st.floats(0, 1000)),
)


def _at_default(*names: str) -> list[Workload]:
    return [Workload(name, DEFAULT) for name in names]


@settings(max_examples=examples(40))
@given(co_location=st.lists(workloads, min_size=1, max_size=5), order=st.randoms(use_true_random=False))
def test_properties_of_co_locations(models: Models, co_location: list[Workload], order: object) -> None:
    """Positive, never above solo, alone exactly solo, and the same in whatever order the members are given."""
    for predictor in models.predictors.values():
        (together,) = predictor.throughput([co_location])
        solo = predictor.solo(co_location)
        assert (together > 0).all() and (together <= solo).all()
        shuffled = list(range(len(co_location)))
        order.shuffle(shuffled)  # type: ignore[attr-defined]
        (again,) = predictor.throughput([[co_location[at] for at in shuffled]])
        np.testing.assert_array_equal(again, together[shuffled])
        np.testing.assert_array_equal(predictor.throughput([[co_location[0]]])[0], solo[:1])


@settings(max_examples=examples(60))
@given(co_location=st.lists(workloads, min_size=1, max_size=4), added=workloads)
def test_a_further_competitor_never_speeds_an_nf_up(
    models: Models, co_location: list[Workload], added: Workload
) -> None:
    """But where it may slow another competitor on an accelerator that the NF shares with that one."""
    before, after = models.predictors["tomur"].throughput([co_location, [*co_location, added]])
    for at, workload in enumerate(co_location):
        others = [*co_location[:at], *co_location[at + 1 :]]
        shared = {name for other in others for name in models.models[other.nf].accelerators}
        if not shared & set(models.models[workload.nf].accelerators):
            assert after[at] <= before[at] * (1 + 1e-6)


def test_a_competitor_slowed_by_another_leaves_more_of_the_accelerator(models: Models) -> None:
    """Memory contention slows a run-to-completion NF, which then uses less of the accelerator it shares."""
    crypto, lookup, memory = (Workload(name, DEFAULT) for name in (CRYPTO.name, LOOKUP.name, PLAIN.name))
    memory = replace(memory, traffic=TrafficProfile(2e5, 64, 0))
    before, after = models.predictors["tomur"].throughput([[crypto, lookup], [crypto, lookup, memory, memory, memory]])
    assert after[1] < before[1] and after[0] > 1.01 * before[0]


def test_equal_nfs_in_a_co_location_are_predicted_equal(models: Models) -> None:
    """To the last bit, at any position; without care, one random co-location in some hundred differs by an ulp."""
    rng = np.random.default_rng(0)

    def some(name: str) -> Workload:
        return Workload(name, TrafficProfile(rng.uniform(1, 2e5), rng.uniform(64, 1500), rng.uniform(0, 1000)))

    for _ in range(300):
        twin, others = some(CRYPTO.name), [some(NAMES[at]) for at in rng.integers(3, size=2)]
        (predicted,) = models.predictors["tomur"].throughput([[twin, *others, twin]])
        assert predicted[0] == predicted[-1]


def test_batch_is_the_same_as_one_by_one(models: Models) -> None:
    """Co-locations of different sizes in one batch, an empty one among them, do not affect one another."""
    tomur = models.predictors["tomur"]
    co_locations = [_at_default(*names) for names in ((NAMES[0],), NAMES, (), (NAMES[1], NAMES[1]), NAMES[1:])]
    for co_location, batched in zip(co_locations, tomur.throughput(co_locations), strict=True):
        np.testing.assert_array_equal(batched, tomur.throughput([co_location])[0])
    assert tomur.throughput([]) == []


def test_two_pipelines_on_one_accelerator_share_it_evenly(models: Models) -> None:
    """Equation 2 through the whole predictor: both bound, one queue each, the same throughput."""
    service = CRYPTO.engines["crypto"].service_ms(DEFAULT)
    (together,) = models.predictors["tomur"].throughput([_at_default(CRYPTO.name, CRYPTO.name)])
    np.testing.assert_allclose(together, 1 / (2 * service), rtol=0.03)


def test_next_to_a_bench_run_to_completion_adds_waits(models: Models) -> None:
    """Memory and accelerator contention together, against a request-by-request run."""
    table = pd.DataFrame(
        [{**DEFAULT.as_dict(), **counters(1.2e8, 12.0), "competitor_service_ms": service} for service in (2e-3, 5e-3)]
    )
    predicted = models.predictors["tomur"].predict_contention(LOOKUP.name, table)
    core = LOOKUP.core_time(DEFAULT, 1.2e8, 12.0)
    expected = [play(LOOKUP, core, DEFAULT, {"crypto": (service, np.inf)}) for service in (2e-3, 5e-3)]
    np.testing.assert_allclose(predicted, expected, rtol=0.03)


def test_prediction_can_be_taken_apart(models: Models) -> None:
    """There is a drop per resource that the NF uses; a pipeline's throughput is solo less the largest."""
    co_location = _at_default(*NAMES)
    for workload, part in zip(co_location, models.predictors["tomur"].predict([co_location])[0], strict=True):
        assert list(part.drops) == ["memory", *models.models[workload.nf].accelerators]
        assert part.low_kpps is not None and part.high_kpps is not None
        assert part.low_kpps <= part.throughput_kpps <= part.high_kpps
        if models.models[workload.nf].execution.pattern == "pipeline":
            assert part.throughput_kpps == pytest.approx(part.solo_kpps - max(part.drops.values()))
    crypto = models.predictors["tomur"].predict([_at_default(CRYPTO.name, CRYPTO.name)])[0][0]
    assert crypto.bottleneck == "crypto"
    assert models.predictors["tomur"].predict([_at_default(PLAIN.name)])[0][0].bottleneck == "cpu"


def test_strawmen_share_the_resource_models(models: Models) -> None:
    """Under the same contention `sum` predicts no more than the NF's pattern, and `min` no less."""
    table = pd.DataFrame([{**DEFAULT.as_dict(), **counters(1.2e8, 12.0), "competitor_service_ms": 2e-3}])
    for nf in (CRYPTO.name, LOOKUP.name):
        least, own, most = (
            TomurPredictor(models.models, composition=name).predict_contention(nf, table)[0]
            for name in ("sum", None, "min")
        )
        assert least <= own <= most
    assert least < own < most


def test_a_smaller_risk_lowers_the_prediction(models: Models) -> None:
    """The smaller the risk, the lower; alone it stays what it is."""
    tomur, co_location = models.predictors["tomur"], [_at_default(*NAMES), _at_default(NAMES[0])]
    usual, wary, wariest = (
        tomur.throughput(co_location),
        tomur.throughput(co_location, risk=0.2),
        tomur.throughput(co_location, risk=0.05),
    )
    assert (wary[0] <= usual[0]).all() and (wariest[0] <= wary[0]).all()
    np.testing.assert_array_equal(wariest[1], usual[1])


def test_traffic_beyond_what_was_measured_is_marked(models: Models) -> None:
    """A million flows were never measured."""
    far = Workload(PLAIN.name, TrafficProfile(1e6, 1500, 600))
    assert [part.extrapolated for part in models.predictors["tomur"].predict([[far, *_at_default(PLAIN.name)]])[0]] == [
        True,
        False,
    ]


def test_unknown_nf_is_refused(models: Models) -> None:
    """The refusal names what is modelled, and leaves nothing behind."""
    tomur = models.predictors["tomur"]
    for _ in range(2):
        with pytest.raises(InputError, match="no model of Firewall"):
            tomur.throughput([[Workload("Firewall", DEFAULT)]])
    with pytest.raises(InputError, match="'Firewall' is not modelled"):
        tomur.predict_contention("Firewall", pd.DataFrame())


def test_a_batch_is_settled_together_and_known_workloads_are_not_evaluated_again(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty co-locations of four, whose workloads were all seen before: one call of the compiled kernel."""
    rng = np.random.default_rng(0)
    known = [Workload(str(rng.choice(NAMES)), TrafficProfile(float(flows), 1500, 600)) for flows in range(1, 21)]
    tomur, settled = models.predictors["tomur"], list[int]()
    tomur.throughput([[workload] for workload in known])

    def counted(*arguments: object) -> None:
        settled.append(len(arguments[3]))  # type: ignore[arg-type]
        settle(*arguments)

    def unknown(*arguments: object) -> None:
        raise AssertionError("a workload is evaluated again")

    monkeypatch.setattr(equilibrium, "settle", counted)
    monkeypatch.setattr(WorkloadTable, "_add", unknown)
    tomur.throughput([[known[at] for at in rng.choice(len(known), 4)] for _ in range(50)])
    assert settled == [50]


def _contention(**changed: float) -> pd.DataFrame:
    return pd.DataFrame([{**DEFAULT.as_dict(), **counters(1.2e8, 12.0), "competitor_service_ms": 2e-3, **changed}])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"l2crd": float("nan")}, "contention:2: l2crd: nan is not a number of at least 0"),
        ({"wss": -1.0}, "contention:2: wss: -1.0 is not a number of at least 0"),
        ({"flows": float("inf")}, "contention:2: flows: inf is not a number of at least 0"),
        ({"competitor_service_ms": -1.0}, "contention:2: competitor_service_ms: -1.0 is not"),
    ],
)
def test_impossible_contention_is_refused(models: Models, changed: dict[str, float], message: str) -> None:
    """By every predictor, with row and column, instead of a wrong prediction."""
    for predictor in models.predictors.values():
        with pytest.raises(InputError, match=message):
            predictor.predict_contention(CRYPTO.name, _contention(**changed))
        with pytest.raises(InputError, match="ipc: is missing"):
            predictor.predict_contention(CRYPTO.name, _contention().drop(columns="ipc"))


def test_contention_can_be_taken_apart(models: Models) -> None:
    """The throughput is the array's, there is a drop per resource, and the interval is around it."""
    table = pd.concat([_contention(), _contention(competitor_service_ms=0.0), _contention(flows=1e6)])
    tomur = models.predictors["tomur"]
    parts = tomur.contention_details(CRYPTO.name, table, coverage=0.8)
    assert [part.throughput_kpps for part in parts] == tomur.predict_contention(CRYPTO.name, table).tolist()
    assert [part.extrapolated for part in parts] == [False, False, True] and parts[0].bottleneck == "crypto"
    for part in parts:
        assert set(part.drops) == {"memory", "crypto"} and part.low_kpps is not None
        assert part.high_kpps is not None and part.low_kpps < part.throughput_kpps < part.high_kpps
        assert not part.calibrated
    (blind,) = models.predictors["slomo"].contention_details(CRYPTO.name, table[:1])
    assert blind.throughput_kpps == models.predictors["slomo"].predict_contention(CRYPTO.name, table[:1])[0]
    assert blind.low_kpps is None
