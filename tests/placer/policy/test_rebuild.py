"""A rebuild in small steps: at its end indexes are as if built at once, and no decision meanwhile is wrong."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Depart, Drain, FleetEvent, Refused, Return
from placer.model.feasibility import below_sla
from placer.model.fleet import Fleet, Tenant
from placer.model.sla import Sla
from placer.policy.rules import BEST_FIT, LOOK_AHEAD
from placer.policy.selector import Selector
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload
from tests.effort import examples


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
    """Let the event happen if it can."""
    with suppress(Refused):
        engine.handle(event)


def choices(selector: Selector) -> list[object]:
    """Where arrivals of all kinds would go."""
    return [selector.choose(tenant) for tenant in EVERY]


@settings(max_examples=examples(60))
@given(histories, histories)
def test_a_rebuilt_index_is_as_one_that_is_built_at_once(before: list[FleetEvent], after: list[FleetEvent]) -> None:
    """Whatever happens meanwhile; without a forecast an index depends on the fleet alone."""
    oracle = SwitchedOracle()
    kinds = catalogue((None, 1.0)).kinds
    engine = Engine(Fleet(kinds), [oracle], BEST_FIT, expected=EVERY)
    for event in before:
        handled(engine, event)
    oracle.switch()
    engine.selector.rebuild()
    for event in after:
        handled(engine, event)
    while engine.selector.rebuilding:
        engine.selector.advance()
    found = choices(engine.selector)
    assert found == choices(Selector(engine.fleet, [oracle], BEST_FIT, expected=EVERY))


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
