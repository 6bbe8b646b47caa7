"""The most frequent lines are those that `json.dumps` would write."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from placer.fleet.events import Arrive, Decision, Depart, FleetEvent, Move
from placer.fleet.frequent_lines import frequent_decision, frequent_event
from placer.fleet.protocol import any_decision, any_event
from placer.model.fleet import Tenant
from placer.model.sla import Sla
from placer.policy.rejection import Cause, Reason
from profiles import TrafficProfile, Workload

NAMES = st.text(min_size=1, max_size=8)
NUMBERS = st.floats(min_value=0, max_value=1e12, allow_subnormal=True)
SLAS = st.one_of(
    st.floats(min_value=0, max_value=1, exclude_max=True).map(lambda drop: Sla(drop + 0.0)),
    st.floats(min_value=1e-6, max_value=1e9).map(lambda kpps: Sla(None, kpps)),
)
TRAFFIC = st.builds(lambda *given: TrafficProfile(*(one + 0.0 for one in given)), NUMBERS, NUMBERS, NUMBERS)
TENANTS = st.builds(Tenant, NAMES, st.builds(Workload, NAMES, TRAFFIC), SLAS)
EVENTS = st.one_of(st.builds(Arrive, TENANTS, st.none() | NAMES), st.builds(Depart, NAMES))


@st.composite
def decided(draw: st.DrawFn) -> tuple[FleetEvent, Decision]:
    """An event and a decision on it, which differs in any part from what is frequent."""
    event = draw(EVENTS)
    arrived = isinstance(event, Arrive)
    identity = event.tenant.id if isinstance(event, Arrive) else event.id
    source, target = (None, draw(NAMES)) if arrived else (draw(NAMES), None)
    move, status = Move(identity, source, target), "placed" if arrived else "left"
    usual = Decision(status, (move,))
    others = [
        replace(usual, status="queued"),
        replace(usual, moves=()),
        replace(usual, moves=(move, move)),
        replace(usual, moves=(replace(move, id=identity + "x"),)),
        replace(usual, moves=(replace(move, source=target, target=source),)),
        replace(usual, moves=(replace(move, source="a", target="b"),)),
        replace(usual, at_risk=("q",)),
        replace(usual, queued=("q",)),
        replace(usual, rejected=("q",)),
        replace(usual, reasons=(Reason("nic", (), 1, Cause.CORES),)),
    ]
    return event, draw(st.just(usual) | st.sampled_from(others))


@given(EVENTS)
def test_events(event: FleetEvent) -> None:
    """Whatever their names and numbers are."""
    assert frequent_event(event) in (None, any_event(event))


@given(decided())
def test_answers(case: tuple[FleetEvent, Decision]) -> None:
    """Also those that no engine would give."""
    assert frequent_decision(*case) in (None, any_decision(*case))


def test_an_arrival_and_a_departure_are_frequent() -> None:
    """Placed on one NIC, and gone from it."""
    tenant = Tenant("ä", Workload("NAT", TrafficProfile(1.0, 2.0, 3.0)), Sla(0.1))
    assert frequent_event(Arrive(tenant)) == (
        '{"event": "arrive", "id": "\\u00e4", "nf": "NAT", '
        '"traffic": {"flows": 1.0, "packet_size": 2.0, "mtbr": 3.0}, "sla_drop": 0.1}'
    )
    assert frequent_decision(Arrive(tenant), Decision("placed", (Move("ä", None, "nic-1"),))) is not None
    assert frequent_decision(Depart("ä"), Decision("left", (Move("ä", "nic-1", None),))) is not None
