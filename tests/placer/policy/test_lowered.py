"""What was learnt since predictions were made in advance is heeded by every decision. A rebuild in small steps: at its
end indexes are as if built at once, and no decision meanwhile is wrong."""

from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.fleet import engine as engine_module
from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Depart, Drain, FleetEvent, Join, Measure, MeasuredInstance, Refused, Return
from placer.fleet.learning.learning import correct
from placer.fleet.what_if import WhatIf, complete
from placer.model.feasibility import below_sla, feasible
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.oracle import Oracle, PredictorOracle
from placer.model.sla import Sla
from placer.policy.rules import BEST_FIT, LOOK_AHEAD
from placer.policy.selector import Selector
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import CoLocation, Workload
from tests.effort import examples
from tests.placer.fleet.learning.toy_predictor import ToyPredictor

KIND = "toy-0"
PAIR = (Workload("a", TOY_TRAFFIC), Workload("b", TOY_TRAFFIC))
SOLO = {"a": 100.0, "b": 200.0, "c": 400.0}


def engine_of(count: int | None = None) -> Engine:
    """An engine that learns, of so many NICs."""
    kinds = catalogue((count, 1.0)).kinds
    feedback, oracles = correct(kinds, [PredictorOracle(ToyPredictor(), 0.2)])
    expected = [Tenant(nf, Workload(nf, TOY_TRAFFIC), Sla(max_drop=0.3)) for nf in SOLO]
    return Engine(Fleet(kinds), oracles, feedback=feedback, expected=expected)


class LowerOracle(PredictorOracle):
    """What is predicted, or what an oracle answers now if that is less."""

    def __init__(self, now: Oracle) -> None:
        super().__init__(ToyPredictor(), 0.2)
        self.now = now

    def throughput(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        both = zip(super().throughput(co_locations), self.now.throughput(co_locations), strict=True)
        return [tuple(map(min, *answers)) for answers in both]


def measured(nic: Nic, draw: Random, shares: tuple[float, float] = (0.6, 1.05)) -> Measure:
    """Readings around what the NFs reach alone, or what the model says of them."""
    kpps = {one.id: SOLO[one.workload.nf] * draw.uniform(*shares) for one in nic.tenants}
    return Measure(nic.id, 1.0, tuple(MeasuredInstance(one, value, 1e4) for one, value in kpps.items()))


def next_event(engine: Engine, number: int, draw: Random) -> FleetEvent:
    nics = list(engine.fleet.nics.values())
    kind = draw.random()
    if nics and kind < 0.3:
        return measured(draw.choice(nics), draw)
    if nics and kind < 0.5:
        return Depart(draw.choice(draw.choice(nics).tenants).id)
    nf = draw.choice("abc")
    drop = round(draw.uniform(0.05, 0.3), 2)
    sla = Sla(max_drop=drop) if draw.random() < 0.7 else Sla(min_kpps=SOLO[nf] * (1.0 - drop))
    return Arrive(Tenant(str(number), Workload(nf, TOY_TRAFFIC), sla))


@pytest.mark.parametrize("seed", range(8))
def test_a_nic_that_takes_an_arrival_keeps_all_slas_by_what_was_learnt(seed: int) -> None:
    """Whatever was measured, also before or while indexes are built anew."""
    engine, draw = engine_of(), Random(seed)
    for number in range(150):
        if draw.random() < 0.05:
            engine.selector.rebuild()
        event = next_event(engine, number, draw)
        decision = engine.handle(event)
        if isinstance(event, Arrive) and decision.nic in engine.fleet.nics:
            nic = engine.fleet.nics[decision.nic]
            assert len(nic.tenants_by_id) == 1 or feasible(nic.kind, engine.oracles[0], [list(nic.tenants)])[0]


@pytest.mark.parametrize("seed", range(8))
def test_an_arrival_is_rejected_only_where_no_nic_keeps_all_slas_by_what_was_learnt(seed: int) -> None:
    """A NIC of which the tenants want more than is measured now keeps no other NIC of its class from an arrival. What
    is measured above the prediction counts once indexes are built anew."""
    engine, draw = engine_of(count=4), Random(seed)
    index, rejected = engine.selector.indexes[0], 0
    lower = LowerOracle(engine.oracles[0])
    for number in range(400):
        nics = list(engine.fleet.nics.values())
        if nics and draw.random() < 0.3:
            engine.handle(measured(draw.choice(nics), draw, (0.85, 1.1)))
            if engine.selector.rebuilding or engine.selector.indexes[0] is not index:
                break
            continue
        if nics and draw.random() < 0.35:
            engine.handle(Depart(draw.choice(draw.choice(nics).tenants).id))
            continue
        nf = draw.choice("abc")
        arrival = Tenant(str(number), Workload(nf, TOY_TRAFFIC), Sla(min_kpps=SOLO[nf] * draw.uniform(0.7, 0.95)))
        if draw.random() < 0.3:  # a question in between changes nothing
            engine.selector.rank(arrival, 3)
        if engine.handle(Arrive(arrival)).nic is None:
            rejected += 1
            for nic in engine.fleet.nics.values():
                assert not feasible(nic.kind, lower, [[*nic.tenants, arrival]])[0], nic.id
    assert rejected


@pytest.mark.parametrize("seed", range(4))
def test_questions_change_no_decision(seed: int) -> None:
    """Of two engines, one is asked before every event."""
    asked, other, draw = engine_of(), engine_of(), Random(seed)
    what_if = WhatIf(asked)
    for number in range(150):
        for nf in SOLO:
            complete(what_if.places(Tenant("?", Workload(nf, TOY_TRAFFIC), Sla(max_drop=0.1)), count=1 + number % 2))
        event = next_event(asked, number, draw)
        assert asked.handle(event).moves == other.handle(event).moves


def place(engine: Engine, rack: int, required: float) -> None:
    """An a that requires so much on a NIC of its own, and on the first three a b beside it."""
    engine.handle(Join(f"rack-{rack}", KIND))
    engine.handle(Arrive(Tenant(f"a{rack}", PAIR[0], Sla(min_kpps=required)), f"rack-{rack}"))
    if rack < 3:
        engine.handle(Arrive(Tenant(f"b{rack}", PAIR[1], Sla(min_kpps=150.0)), f"rack-{rack}"))


def learn(engine: Engine, kpps: float) -> None:
    for rack in range(3):
        engine.handle(Measure(f"rack-{rack}", 1.0, (MeasuredInstance(f"a{rack}", kpps, 1e4),)))


def rebuild(engine: Engine) -> None:
    engine.selector.rebuild()
    while engine.selector.rebuilding:
        engine.selector.advance()


def takes_a_b(engine: Engine) -> str | None:
    """The NIC in use that takes one more b, with an SLA that leaves room for no second one beside an a."""
    found = engine.selector.indexes[0].best(Tenant("b", PAIR[1], Sla(min_kpps=150.0)))
    return None if found is None else found[1].id


def test_what_was_too_slow_before_a_rebuild_is_taken_once_it_is_measured_otherwise() -> None:
    """Beside a b, an a is first slower than its SLA allows, then faster than predicted."""
    engine = engine_of()
    before = engine.oracles[0].throughput([PAIR])[0][0]
    for number in range(4):
        place(engine, number, 0.99 * before)
    learn(engine, 0.9 * before)
    rebuild(engine)
    assert takes_a_b(engine) is None
    learn(engine, 1.1 * before)
    learn(engine, 1.2 * before)
    assert takes_a_b(engine) == "rack-3"


def test_a_co_location_that_does_more_than_predicted_is_used_after_a_rebuild() -> None:
    """Beside a b, an a reaches more than its SLA, which the prediction does not meet."""
    engine = engine_of()
    before = engine.oracles[0].throughput([PAIR])[0][0]
    for number in range(4):
        place(engine, number, 1.01 * before if number == 3 else 0.99 * before)
    learn(engine, 1.1 * before)
    assert takes_a_b(engine) is None
    rebuild(engine)
    assert takes_a_b(engine) == "rack-3"


def test_indexes_are_built_anew_as_readings_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """After three more each, and later when half as many more as before have come."""
    monkeypatch.setattr(engine_module, "REBUILT_AFTER", 3)
    monkeypatch.setattr(engine_module, "REBUILT_GROWTH", 0.5)
    engine, begun = engine_of(), []
    for number in range(3):
        place(engine, number, 50.0)
    for reading in range(1, 16):
        index = engine.selector.indexes[0]
        engine.handle(Measure("rack-0", 1.0, (MeasuredInstance("a0", 90.0, 1e4),)))
        while engine.selector.rebuilding:
            engine.selector.advance()
        if engine.selector.indexes[0] is not index:
            begun.append(reading)
    assert begun == [3, 6, 9, 14]


def test_a_nic_that_became_too_slow_hides_no_other_of_its_class() -> None:
    """Beside a b, an a is slower than predicted: too slow for the a on rack-2, just fast enough for that on rack-3."""
    engine = engine_of(count=3)
    before = engine.oracles[0].throughput([PAIR])[0][0]
    first, second = (Tenant(f"b{number}", PAIR[1], Sla(min_kpps=150.0)) for number in (1, 2))

    def placed(rack: int, required: float) -> None:
        engine.handle(Join(f"rack-{rack}", KIND))
        engine.handle(Arrive(Tenant(f"a{rack}", PAIR[0], Sla(min_kpps=required)), f"rack-{rack}"))

    placed(1, 0.97 * before)  # never beside two
    engine.handle(Arrive(first, "rack-1"))
    kpps = MeasuredInstance("a1", 0.95 * before, 1e4), MeasuredInstance("b1", 190.0, 1e4)
    engine.handle(Measure("rack-1", 1.0, kpps))
    now = engine.oracles[0].throughput([PAIR])[0][0]
    assert now < 0.999 * before
    placed(2, 1.0001 * now)
    placed(3, 0.9999 * now)
    assert engine.handle(Arrive(second)).nic == "rack-3"


class SwitchedOracle(ToyOracle):
    """A toy oracle whose answers become others; `drop` of them is lost beside others."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = 0.0

    @property
    def revision(self) -> int:
        """Changes with the answers."""
        return int(self.drop > 0)

    def switch(self) -> None:
        """From now on everything beside others is 8 % slower."""
        self.drop = 0.08

    def throughput(self, co_locations):  # type: ignore[no-untyped-def]
        """As of a toy oracle, less the drop."""
        plain = super().throughput(co_locations)
        return [tuple(kpps * (1 - self.drop * (len(one) > 1)) for kpps in one) for one in plain]


def arrival(number: int, nf: str, drop: float) -> Arrive:
    return Arrive(Tenant(str(number), Workload(nf, TOY_TRAFFIC), Sla(max_drop=drop)))


EVERY = [arrival(100, nf, drop).tenant for nf in "abcd" for drop in (0.05, 0.1, 0.2, 0.3)]

arrivals = st.builds(arrival, st.integers(0, 60), st.sampled_from("abcd"), st.sampled_from([0.05, 0.1, 0.2, 0.3]))
departures = st.builds(Depart, st.integers(0, 60).map(str))
of_nics = st.sampled_from([Drain, Return]).flatmap(
    lambda kind: st.builds(kind, st.integers(1, 12).map("nic-{}".format))
)
histories = st.lists(st.one_of(arrivals, arrivals, departures, of_nics), max_size=80)


def handled(engine: Engine, event: FleetEvent) -> None:
    with suppress(Refused):
        engine.handle(event)


def choices(selector: Selector) -> list[object]:
    return [selector.choose(tenant) for tenant in EVERY]


@settings(max_examples=examples(60))
@given(histories, histories)
def test_a_rebuilt_index_is_as_one_that_is_built_at_once(before: list[FleetEvent], after: list[FleetEvent]) -> None:
    """Whatever happens meanwhile; without a forecast an index depends on the fleet alone."""
    oracle = SwitchedOracle()
    engine = Engine(Fleet(catalogue((None, 1.0)).kinds), [oracle], BEST_FIT, expected=EVERY)
    for event in before:
        handled(engine, event)
    oracle.switch()
    engine.selector.rebuild()
    for event in after:
        handled(engine, event)
    while engine.selector.rebuilding:
        engine.selector.advance()
    assert choices(engine.selector) == choices(Selector(engine.fleet, [oracle], BEST_FIT, expected=EVERY))


@settings(max_examples=examples(60))
@given(histories, histories)
def test_no_arrival_is_placed_where_the_answers_of_now_show_a_violation(
    before: list[FleetEvent], after: list[FleetEvent]
) -> None:
    """Before the rebuild, during it and after it: NICs that an arrival joins keep every SLA."""
    oracle = SwitchedOracle()
    engine = Engine(Fleet(catalogue((None, 1.0)).kinds), [oracle], LOOK_AHEAD)
    for event in before:
        handled(engine, event)
    oracle.switch()
    for at, event in enumerate(after):
        if at == len(after) // 3:
            engine.selector.rebuild()
        if isinstance(event, Arrive) and engine.fleet.nic_of(event.tenant.id) is None:
            handled(engine, event)
            nic = engine.fleet.nic_of(event.tenant.id)
            assert nic is None or not below_sla(oracle, nic.tenants)
        else:
            handled(engine, event)
