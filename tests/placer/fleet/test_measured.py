"""The `measured` event: what is answered, what is learnt at once, and what is refused."""

import json

import pytest

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line
from placer.fleet.events import Arrive, Learned, Measure, MeasuredInstance, Refused
from placer.fleet.learning.learning import correct
from placer.fleet.protocol import Reader
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.oracle import Oracle, PredictorOracle
from placer.model.sla import Sla
from placer.policy.rules import BEST_FIT
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload
from tests.placer.fleet.learning.toy_predictor import ToyPredictor

KINDS = catalogue((None, 1.0)).kinds


def engine_of(kinds_oracle: Oracle | None = None) -> Engine:
    """An engine that learns, without a margin."""
    feedback, oracles = correct(KINDS, [kinds_oracle or PredictorOracle(ToyPredictor())])
    return Engine(Fleet(KINDS), oracles, BEST_FIT, feedback=feedback)


def arrive(engine: Engine, identity: str, nf: str, drop: float = 0.2) -> str:
    nic = engine.handle(Arrive(Tenant(identity, Workload(nf, TOY_TRAFFIC), Sla(max_drop=drop)))).nic
    assert nic is not None
    return nic


def measure(engine: Engine, nic: str, **kpps: float) -> Learned:
    """Measure instances to which more than enough is offered."""
    instances = tuple(MeasuredInstance(name, value, 1e4) for name, value in kpps.items())
    decision = engine.handle(Measure(nic, 10.0, instances))
    assert isinstance(decision, Learned)
    return decision


def test_an_answer_has_what_was_predicted_before_and_whether_the_sla_was_kept() -> None:
    """`c` gets 368 of 400 kpps beside two `a`, and may lose 20 %, so that 320 are required."""
    engine = engine_of()
    for identity, nf in [("1", "c"), ("2", "a"), ("3", "a")]:
        assert arrive(engine, identity, nf) == "nic-1"
    event = Measure("nic-1", 10.0, (MeasuredInstance("1", 310.0, 500.0), MeasuredInstance("2", 80.0)))
    answer = json.loads(decision_line(event, engine.handle(event)))
    assert answer == {
        "ok": True, "event": "measured", "nic": "nic-1", "status": "noted", "model": 1, "moves": [],
        "instances": [
            {"id": "1", "predicted_kpps": 368.0, "low_kpps": 349.6, "high_kpps": 386.4, "below_sla": True},
            {"id": "2", "predicted_kpps": 90.0, "low_kpps": 85.5, "high_kpps": 94.5, "below_sla": False},
        ],
    }  # fmt: skip


class LoadPredictor(ToyPredictor):
    """Predicts the capacity beside others, whatever is offered."""

    supports_loads = True


def test_an_instance_that_carries_its_offered_load_says_nothing_of_contention() -> None:
    """Twice 30 of 30 offered kpps, where 98 were predicted, change no prediction; 20 kpps of them violate the SLA."""
    engine = engine_of(PredictorOracle(LoadPredictor()))
    for identity, rate in (("1", 30.0), ("2", 20.0)):
        engine.handle(Arrive(Tenant(identity, Workload("a", TOY_TRAFFIC, rate), Sla(max_drop=0.0))))
    found = [engine.handle(Measure("nic-1", 10.0, (MeasuredInstance("1", kpps, 30.0),))) for kpps in (30.0, 30.0, 20.0)]
    judged = [one.instances[0] for one in found if isinstance(one, Learned)]
    assert [one.predicted_kpps for one in judged] == [98.0, 98.0, 98.0]
    assert [one.below_sla for one in judged] == [False, False, True]


def test_a_predictor_that_knows_no_loads_takes_none() -> None:
    """It would predict a saturated NF."""
    with pytest.raises(Refused, match="knows neither offered loads nor numbers of cores"):
        engine_of().handle(Arrive(Tenant("1", Workload("a", TOY_TRAFFIC, 30.0), Sla(max_drop=0.0))))


def test_the_next_answer_has_what_was_learnt() -> None:
    """Measured twice by one tenant, a prediction moves by one usual error."""
    engine = engine_of()
    arrive(engine, "1", "c"), arrive(engine, "2", "a")
    first = measure(engine, "nic-1", **{"1": 310.0}).instances[0].predicted_kpps
    second = measure(engine, "nic-1", **{"1": 310.0}).instances[0].predicted_kpps
    assert second < first and measure(engine, "nic-1", **{"1": 310.0}).instances[0].predicted_kpps == second


def test_a_co_location_that_two_tenants_saw_violate_is_not_chosen_again() -> None:
    """Four times `b` beside `b`: 190 kpps were predicted, 170 measured, and 180 are required."""
    engine = engine_of()
    for number in range(1, 9):
        arrive(engine, str(number), "b", 0.1)
    full = {nic.id: len(nic.tenants_by_id) for nic in engine.fleet.nics.values()}
    for nic in engine.fleet.nics.values():
        measure(engine, nic.id, **dict.fromkeys(nic.tenants_by_id, 150.0))
    for number in range(9, 17):
        nic = engine.fleet.nics[arrive(engine, str(number), "b", 0.1)]
        assert len(nic.tenants_by_id) < max(full.values())


def test_what_is_not_saturated_lowers_nothing() -> None:
    """Offered 100 kpps each, they reach no more."""
    engine = engine_of()
    for number in range(1, 9):
        arrive(engine, str(number), "b", 0.1)
    before = [nic.co_location for nic in engine.fleet.nics.values()]
    for nic in engine.fleet.nics.values():
        engine.handle(Measure(nic.id, 1.0, tuple(MeasuredInstance(one, 100.0, 100.0) for one in nic.tenants_by_id)))
    for number in range(9, 17):
        arrive(engine, str(number), "b", 0.1)
    assert sorted(map(len, [nic.co_location for nic in engine.fleet.nics.values()])) == sorted(map(len, before * 2))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"nic": "nic-2", "window_s": 1, "instances": [{"id": "1", "throughput_kpps": 1}]}', "'nic-2' has no tenants"),
        ('{"nic": "nic-1", "window_s": 1, "instances": [{"id": "9", "throughput_kpps": 1}]}', "not on nic-1: '9'"),
        ('{"nic": "nic-1", "window_s": 1, "instances": [{"id": "1", "throughput_kpps": 1},'
            ' {"id": "1", "throughput_kpps": 1}]}', "measured twice in one event: '1'"),
        ('{"nic": "nic-1", "window_s": 1, "instances": [{"id": "1", "throughput_kpps": 9, "offered_kpps": 8}]}',
            "throughput_kpps is above offered_kpps: '1'"),
        ('{"nic": "nic-1", "window_s": 0, "instances": [{"id": "1", "throughput_kpps": 1}]}', "window_s: 0"),
        ('{"nic": "nic-1", "window_s": 1, "instances": []}', "instances"),
        ('{"nic": "nic-1", "window_s": 1, "instances": [{"id": "1", "throughput_kpps": -1}]}', "throughput_kpps"),
    ],
)  # fmt: skip
def test_what_cannot_have_been_measured_is_refused(line: str, message: str) -> None:
    """And nothing of it is learnt."""
    engine = engine_of()
    arrive(engine, "1", "a")
    reader = Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of)
    with pytest.raises(Refused, match=message):
        engine.handle(reader.read('{"event": "measured", ' + line[1:]))
    assert engine.feedback is not None and engine.feedback.corrections.ledger.readings == 0


def test_nothing_is_learnt_of_nics_without_a_predictor() -> None:
    """Such as a GPU, whose admission test is exact."""
    engine = engine_of(ToyOracle())
    arrive(engine, "1", "a")
    with pytest.raises(Refused, match="nothing is learnt of a toy-0"):
        measure(engine, "nic-1", **{"1": 90.0})
