"""Decisions replayed over measured co-locations."""

from types import SimpleNamespace

import numpy as np
import pytest

from placer.model.arrival import Arrival
from placer.model.plan import Placement, Plan
from placer.model.sla import Sla
from placer.strategies import budget
from placer.strategies.budget import LeftOutOracle, Replayed, arrivals_to_replay, judge, left_out_co_locations
from placer.testing.strategies import SOLO_KPPS, TOY_TRAFFIC, ToyCatalogue, arrival, catalogue
from predictor.contention.intervals import ErrorModel, TrafficScale
from predictor.contention.left_out import LeftOutCoLocation
from profiles import TrafficProfile, Workload

A, B = (Workload(nf, TOY_TRAFFIC) for nf in "ab")
ERRORS = ErrorModel.even(TrafficScale(np.zeros(3), np.ones(3)), np.linspace(-0.04, 0.04, 41))


class Known:
    """A predictor that measured a next to b: a kept 85 %, where 90 % were predicted; b as predicted."""

    def solo(self, workloads: list[Workload]) -> np.ndarray:
        return np.array([SOLO_KPPS[one.nf] for one in workloads])

    def left_out(self, default: TrafficProfile) -> dict[tuple[Workload, ...], LeftOutCoLocation]:
        measured, predicted = np.array([85.0, 190.0]), np.array([90.0, 190.0])
        return {(A, B): LeftOutCoLocation(measured, predicted, np.full(2, 0.02), np.full(2, 0.01), (ERRORS,) * 2)}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> ToyCatalogue:
    """A toy catalogue whose one model is `Known`."""
    monkeypatch.setattr(budget, "FEWEST_MEASURED", 1)
    models = SimpleNamespace(predictors={"toy": Known()}, default_traffic=TOY_TRAFFIC, nfs=("a", "b"))
    return ToyCatalogue(catalogue().kinds, (models,), ())  # type: ignore[arg-type]


def test_only_measured_co_locations_can_share_a_nic(known: ToyCatalogue) -> None:
    """Two a were not measured together, so nothing is left of either; alone it keeps its throughput."""
    oracle = LeftOutOracle(Known(), left_out_co_locations(known, "toy")[0], 0.5)  # type: ignore[arg-type]
    assert oracle.throughput([(A,), (A, A)]) == [(100.0,), (0.0, 0.0)]
    (careful,) = LeftOutOracle(Known(), left_out_co_locations(known, "toy")[0], 0.1).throughput([(A, B)])  # type: ignore[arg-type]
    assert 0 < careful[0] < 90.0


def test_violations_are_counted_by_measurements(known: ToyCatalogue) -> None:
    """a accepts a drop of 12 % and lost 15 %: one violation. By its prediction it is expected now and then."""
    together = [Placement(arrival(nf, 0.0, nf, 0.12), "1", known.kinds[0]) for nf in "ab"]
    found = judge(Plan("contention-aware", "toy", tuple(together), 0.0), known, "toy")
    assert found.violations == 1 and 0 < found.of_predictions <= found.expected < 1


def test_an_nf_alone_violates_nothing(known: ToyCatalogue) -> None:
    """There is no prediction to be wrong."""
    alone = Placement(arrival("a", 0.0, "a", 0.0), "1", known.kinds[0])
    assert judge(Plan("contention-aware", "toy", (alone,), 0.0), known, "toy") == Replayed()


def test_replayed_arrivals_have_the_same_nfs_and_slas_at_default_traffic(known: ToyCatalogue) -> None:
    """Of two arrivals, half of the replay each; a throughput is taken as the drop that it allows."""
    trace = [
        Arrival("1", 0.0, Workload("a", TrafficProfile(9, 64, 0)), Sla(min_kpps=80.0), departure=5.0),
        arrival("2", 1.0, "b", 0.1),
    ]
    replayed = arrivals_to_replay(known, trace)
    assert len(replayed) == budget.LEAST_REPLAYED
    of_a = [one for one in replayed if one.workload == A]
    assert len(of_a) == budget.LEAST_REPLAYED // 2
    assert {round(one.sla.max_drop or 0.0, 6) for one in of_a} == {0.2}
    assert all(one.departure is None for one in replayed) and arrivals_to_replay(known, []) == []
    many = [arrival(str(number), number, "ab"[number % 2], 0.1) for number in range(600)]
    assert len(arrivals_to_replay(known, many)) == budget.REPLAYED_ARRIVALS


def test_with_few_measured_co_locations_nothing_is_replayed(
    known: ToyCatalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is not enough where fifty are needed; and a catalogue without models has none."""
    monkeypatch.setattr(budget, "FEWEST_MEASURED", 50)
    assert left_out_co_locations(known, "toy") == [] and left_out_co_locations(catalogue(), "toy") == []
