"""Drift: a change of an NF is found, dated and sized; noise, one tenant and lower bounds are none."""

from collections.abc import Iterator
from math import exp
from random import Random

import pytest

from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Learned, Measure, MeasuredInstance
from placer.fleet.learning.drift import Drift, DriftDetector
from placer.fleet.learning.learning import DRIFT, NOTED, Feedback, correct
from placer.fleet.learning.ledger import ProductionReading
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.oracle import PredictorOracle, co_location_of
from placer.model.sla import Sla
from placer.policy.rules import BEST_FIT
from placer.testing.strategies import TOY_TRAFFIC, catalogue
from profiles import Workload
from tests.placer.fleet.learning.toy_predictor import ToyPredictor

MODEL, KPPS, SPREAD = "card", 1000.0, 0.05
OWN, OTHER = Workload("a", TOY_TRAFFIC), Workload("b", TOY_TRAFFIC)
KINDS = catalogue((None, 1.0)).kinds


def reading(event: int, tenant: str, kpps: float, others: int = 1, offered: float | None = 1e5) -> ProductionReading:
    return ProductionReading(MODEL, co_location_of([OWN, *[OTHER] * others]), OWN, tenant, kpps, offered, event)


def readings(seed: int, factors: list[float], tenants: int = 8) -> Iterator[ProductionReading]:
    """With noise of 3 %, and an error of 5 % of each of ten co-locations, which stays."""
    rng = Random(seed)
    errors = [exp(rng.gauss(0.0, SPREAD)) for _ in range(10)]
    for event, factor in enumerate(factors):
        place = rng.randrange(len(errors))
        kpps = KPPS * factor * errors[place] * exp(rng.gauss(0.0, 0.03))
        yield reading(event, str(rng.randrange(tenants)), kpps, place)


def first_drift(found: Iterator[ProductionReading], expected: float = KPPS) -> tuple[int, Drift] | None:
    detector = DriftDetector()
    for one in found:
        if drift := detector.add(one, expected, SPREAD):
            return one.event, drift
    return None


@pytest.mark.parametrize("seed", range(5))
def test_noise_and_errors_that_stay_are_no_drift(seed: int) -> None:
    """In 2,000 readings."""
    assert first_drift(readings(seed, [1.0] * 2_000)) is None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("factor", [0.85, 1.2])
def test_a_change_is_found_within_40_readings(seed: int, factor: float) -> None:
    """Its factor is right within 4 %, and it is dated right within five readings."""
    found = first_drift(readings(seed, [1.0] * 200 + [factor] * 200))
    assert found is not None
    event, drift = found
    assert 200 <= event < 240 and drift.beside == pytest.approx(factor, rel=0.04)
    assert abs(drift.since - 200) <= 5 and (drift.nic_model, drift.nf) == (MODEL, "a")


def test_one_tenant_never_makes_a_drift() -> None:
    """It reports a tenth of what it has, every time; nobody else of the NF does."""
    rng = Random(0)
    found = []
    for one in readings(1, [1.0] * 1_000):
        found += [one, reading(one.event, "liar", 100.0 * exp(rng.gauss(0.0, 0.03)), one.event % 10)]
    assert first_drift(iter(found)) is None


def test_lower_bounds_are_not_counted() -> None:
    """Half of the throughput, of instances that had no more packets."""
    assert first_drift(iter([reading(event, str(event % 9), 500.0, offered=500.0) for event in range(500)])) is None


def test_what_alone_on_a_nic_changes_differently_has_a_factor_of_its_own() -> None:
    """Unchanged alone, 80 % beside others."""
    before = [reading(event, str(event % 9), KPPS, event % 2) for event in range(100)]
    after = [
        reading(event, str(event % 9), 800.0 if event % 4 else KPPS, min(event % 4, 1)) for event in range(100, 200)
    ]
    found = first_drift(iter([*before, *after]))
    assert found is not None and found[1].beside == pytest.approx(0.8)
    assert found[1].alone == pytest.approx(1.0)


def engine_with_pairs() -> Engine:
    """Twelve NICs, each with an `a` and a `c`."""
    feedback, oracles = correct(KINDS, [PredictorOracle(ToyPredictor())])
    engine = Engine(Fleet(KINDS), oracles, BEST_FIT, feedback=feedback)
    for number in range(24):
        engine.handle(Arrive(Tenant(str(number), Workload("ac"[number % 2], TOY_TRAFFIC), Sla(max_drop=0.2))))
    return engine


def play(engine: Engine, factors: list[float]) -> list[str]:
    """The statuses of events, one per NIC in turn, in which `a` has so many times what the model predicts."""
    nics, statuses = list(engine.fleet.nics.values()), []
    oracle = ToyPredictor()
    for number, factor in enumerate(factors):
        nic = nics[number % len(nics)]
        truth = dict(zip(nic.co_location, oracle.throughput([nic.co_location])[0].tolist(), strict=True))
        instances = [
            MeasuredInstance(one.id, truth[one.workload] * (factor if one.workload.nf == "a" else 1.0), 1e5)
            for one in nic.tenants
        ]
        decision = engine.handle(Measure(nic.id, 10.0, tuple(instances)))
        assert isinstance(decision, Learned)
        statuses.append(decision.status)
    return statuses


def test_predictions_follow_a_drift_and_go_back() -> None:
    """`a` falls to 85 % everywhere, which one event says; later it recovers, which another one says."""
    engine = engine_with_pairs()
    feedback = engine.feedback
    assert feedback is not None and set(play(engine, [1.0] * 24)) == {NOTED}
    assert play(engine, [0.85] * 30).count(DRIFT) == 1
    model = feedback.drifts[0].nic_model
    assert feedback.corrections.drift(model, "a", alone=False) == pytest.approx(0.85, rel=0.02)
    assert feedback.corrections.drift(model, "c", alone=False) == 1.0
    assert play(engine, [1.0] * 40).count(DRIFT) == 1
    assert feedback.corrections.drift(model, "a", alone=False) == pytest.approx(1.0, rel=0.02)


def test_a_restart_knows_the_drift() -> None:
    """Learnt again from the readings, in their order, everything is as before."""
    engine, seen = engine_with_pairs(), []
    feedback = engine.feedback
    assert feedback is not None
    learn = feedback.learn

    def listening(found: tuple[ProductionReading, ...]) -> str:
        seen.extend(found)
        return learn(found)

    feedback.learn = listening  # type: ignore[method-assign, assignment]
    play(engine, [1.0] * 24 + [0.85] * 40)
    again: Feedback = correct(KINDS, [PredictorOracle(ToyPredictor())])[0]
    again.restore(seen)
    assert again.drifts == feedback.drifts != []
    nic = next(iter(engine.fleet.nics.values()))
    assert again.expect(nic.kind.model, nic.co_location) == feedback.expect(nic.kind.model, nic.co_location)
