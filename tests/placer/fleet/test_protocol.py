"""Lines that are not an event are refused with what is wrong, and change nothing. The most frequent lines are those
that `json.dumps` would write."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.fleet import events
from placer.fleet.engine import Engine
from placer.fleet.event_lines import LONGEST_ERROR, any_decision, any_event, decision_line, event_line, refusal_line
from placer.fleet.frequent_lines import frequent_decision, frequent_event
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import QUEUE
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.policy.rejection import Cause, Reason
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import TrafficProfile, Workload

GROUP = (
    '{"event": "group", "id": "g", "arrivals": '
    '[{"id": "%s", "nf": "a", "sla_drop": 0.1}, {"id": "%s", "nf": "b", "sla_drop": 0.1}]}'
)
ARRIVE = '{"event": "arrive", "id": "x", "nf": "a", %s}'


def reader_of(engine: Engine) -> Reader:
    return Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "is not JSON"),
        ('{"event": "dance"}', "'dance'"),
        ("[" * 100_000 + "]" * 100_000, "recursion limit"),
        ('{"event":' * 100_000, "recursion limit"),
        (b"\xff\xfe", "is not JSON"),
        ('{"event": "arrive", "id": "x", "nf": "a"}', "no SLA"),
        ('{"event": "where", "id": "x", "id": "y"}', "id: is given twice"),
        (ARRIVE % '"sla_drop": 0.5, "traffic": {"flows": 1, "flows": 2}', "flows: is given twice"),
        (ARRIVE % '"sla_drop": 1.5', "sla_drop: 1.5 is not below 1"),
        (ARRIVE % '"sla_drop": "0.1"', "sla_drop: '0.1' is not a number"),
        (ARRIVE % '"sla_drop": true', "sla_drop: True is not a number"),
        (ARRIVE % '"sla_drop": NaN', "nan is not a finite number"),
        (ARRIVE % '"sla_min_kpps": 1e400', "inf is not a finite number"),
        (ARRIVE % '"sla_min_kpps": 1e308', "is above"),
        (ARRIVE % '"sla_drop": 0.1, "sla_min_kpps": 5', "two SLAs"),
        (ARRIVE % '"sla_drop": 0.1, "traffic": {"flows": "4000"}', "traffic.flows: '4000' is not a number"),
        (ARRIVE % '"sla_drop": 0.1, "traffic": {"flows": 1e308}', "traffic.flows: 1e[+]308 is above"),
        (ARRIVE % '"sla_drop": 0.1, "traffic": {"flows": -5}', "traffic.flows: -5 is below 0"),
        (ARRIVE % '"sla_drop": 0.1, "colour": 3', "colour: unknown key"),
        (ARRIVE % '"sla_drop": 0.1, "nic": "nic-1", "kind": 0', "kind: unknown key"),
        ('{"event": "arrive", "id": "", "nf": "a", "sla_drop": 0.1}', "id: is empty"),
        ('{"event": "arrive", "id": "  ", "nf": "a", "sla_drop": 0.1}', "id: is empty"),
        ('{"event": "depart", "id": "\\u00a0"}', "id: is empty"),
        ("{}", "is missing its 'event'"),
        ("[]", r"\[\] is not an object"),
        ('{"event": ["arrive"]}', "is not one of 'arrive', 'change'"),
        ('{"event": "arrive", "id": "x\\ny", "nf": "a", "sla_drop": 0.1}', "id: .*control character"),
        ('{"event": "arrive", "id": "\\u001b[31m", "nf": "a", "sla_drop": 0.1}', "id: .*control character"),
        ('{"event": "arrive", "id": "\\u0000", "nf": "a", "sla_drop": 0.1}', "id: .*control character"),
        (
            '{"event": "arrive", "id": "%s", "nf": "a", "sla_drop": 0.1}' % ("x" * 513),
            "id: is longer than 512 characters",
        ),
        ('{"event": "arrive", "id": "x", "nf": "z", "sla_drop": 0.1}', "no NIC hosts 'z'"),
        ('{"event": "depart", "id": "unknown"}', "'unknown' is not placed or queued"),
        ('{"event": "change", "id": "unknown", "sla_drop": 0.1}', "'unknown' is not placed or queued"),
        ('{"event": "fail", "nic": "nic-9"}', "'nic-9' was never in use"),
        ('{"event": "return", "nic": "nic-1"}', "not out of service"),
        (GROUP % ("x", "x"), "arrivals: twice in the group: 'x'"),
        (GROUP % ("x", ""), "arrivals.1.id: is empty"),
        (GROUP.replace('"nf": "b"', '"nf": "b", "sla_min_kpps": 1') % ("x", "y"), "arrivals.1: two SLAs"),
        ('{"event": "group", "id": "g", "arrivals": []}', "arrivals"),
        ('{"event": "rebalance", "budget": 1.5}', "budget: 1.5 is not a whole number"),
        ('{"event": "rebalance", "budget": %s}' % ("9" * 3000), "budget: .* is above"),
        ('{"event": "rebalance", "budget": %s}' % ("9" * 5000), "number out of range"),
        ('{"event": "rebalance", "budget": 1, "risk_worth": 1e308}', "risk_worth: .* is above"),
    ],
)
def test_a_line_that_is_not_an_event_is_refused(line: str | bytes, message: str) -> None:
    """Each with what is wrong, and nothing is changed."""
    engine = Engine(Fleet(catalogue().kinds), [ToyOracle()], when_full=QUEUE)
    with pytest.raises(events.Refused, match=message) as refused:
        engine.handle(reader_of(engine).read(line))
    assert list(engine.fleet.all_nics()) == []
    answer = refusal_line(refused.value)
    assert json.loads(answer)["ok"] is False and len(answer) < 2 * LONGEST_ERROR


def test_a_change_of_nothing_is_told_what_it_could_change() -> None:
    reader = Reader(TOY_TRAFFIC, lambda workload: (), lambda identity: Workload("a", TOY_TRAFFIC))
    with pytest.raises(events.Refused, match="changes nothing: give traffic, rate_kpps, cores or an SLA"):
        reader.read('{"event": "change", "id": "x", "cores": null}')


@pytest.mark.parametrize(
    "event",
    [
        events.Arrive(Tenant("x", Workload("a", TrafficProfile(5, 64, 1)), Sla(min_kpps=5.0))),
        events.Change("x", Workload("a", TrafficProfile(7, 64, 1)), Sla(max_drop=0.3)),
        events.Rebalance(3, 0.1, 2.0),
        events.Where("x"),
        events.Measure("nic-1", 2.5, (events.MeasuredInstance("a", 1.5, 2.0), events.MeasuredInstance("b", 0.0))),
    ],
)
def test_an_event_is_read_as_it_was_written(event: events.FleetEvent) -> None:
    """The log and the reader agree."""
    engine = Engine(Fleet(catalogue().kinds), [ToyOracle()])
    engine.handle(events.Arrive(Tenant("x", Workload("a", TrafficProfile(5, 64, 1)), Sla(max_drop=0.5))))
    assert reader_of(engine).read(event_line(event)) == event


def test_where_reports_the_nic_of_an_instance() -> None:
    """Placed, waiting, or unknown."""
    engine = Engine(Fleet(catalogue((1, 1.0)).kinds), [ToyOracle()], when_full=QUEUE)
    reader, answers = reader_of(engine), []
    for identity in "123":
        engine.handle(events.Arrive(Tenant(identity, Workload("d", TOY_TRAFFIC), Sla(max_drop=0.5))))
    for identity in "134":
        event = reader.read(json.dumps({"event": "where", "id": identity}))
        answers.append(json.loads(decision_line(event, engine.handle(event))))
    assert answers == [
        {"ok": True, "event": "where", "id": "1", "status": "placed", "nic": "nic-1", "moves": []},
        {"ok": True, "event": "where", "id": "3", "status": "queued", "nic": None, "moves": []},
        {"ok": True, "event": "where", "id": "4", "status": "unknown", "nic": None, "moves": []},
    ]


NAMES = st.text(min_size=1, max_size=8)
NUMBERS = st.floats(min_value=0, max_value=1e12, allow_subnormal=True)
SLAS = st.one_of(
    st.floats(min_value=0, max_value=1, exclude_max=True).map(lambda drop: Sla(drop + 0.0)),
    st.floats(min_value=1e-6, max_value=1e9).map(lambda kpps: Sla(None, kpps)),
)
TRAFFIC = st.builds(lambda *given: TrafficProfile(*(one + 0.0 for one in given)), NUMBERS, NUMBERS, NUMBERS)
TENANTS = st.builds(Tenant, NAMES, st.builds(Workload, NAMES, TRAFFIC), SLAS)
EVENTS = st.one_of(st.builds(events.Arrive, TENANTS, st.none() | NAMES), st.builds(events.Depart, NAMES))


@st.composite
def decided(draw: st.DrawFn) -> tuple[events.FleetEvent, events.Decision]:
    """An event and a decision on it, which differs in any part from what is frequent."""
    event = draw(EVENTS)
    arrived = isinstance(event, events.Arrive)
    identity = event.tenant.id if isinstance(event, events.Arrive) else event.id
    source, target = (None, draw(NAMES)) if arrived else (draw(NAMES), None)
    move, status = events.Move(identity, source, target), "placed" if arrived else "left"
    usual = events.Decision(status, (move,))
    others = [
        replace(usual, status="queued"),
        replace(usual, moves=()),
        replace(usual, moves=(move, move)),
        replace(usual, moves=(replace(move, id=identity + "x"),)),
        replace(usual, moves=(replace(move, source=target, target=source),)),
        replace(usual, moves=(replace(move, source="a", target="b"),)),
        replace(usual, at_risk=("q",)),
        replace(usual, queued=("q",)),
        replace(usual, reasons=(Reason("nic", (), 1, Cause.CORES),)),
    ]
    return event, draw(st.just(usual) | st.sampled_from(others))


@given(EVENTS)
def test_events(event: events.FleetEvent) -> None:
    """Whatever their names and numbers are."""
    assert frequent_event(event) in (None, any_event(event))


@given(decided())
def test_answers(case: tuple[events.FleetEvent, events.Decision]) -> None:
    """Also those that no engine would give."""
    assert frequent_decision(*case) in (None, any_decision(*case))


def test_an_arrival_and_a_departure_are_frequent() -> None:
    """Placed on one NIC, and gone from it."""
    tenant = Tenant("ä", Workload("NAT", TrafficProfile(1.0, 2.0, 3.0)), Sla(0.1))
    assert frequent_event(events.Arrive(tenant)) == (
        '{"event": "arrive", "id": "\\u00e4", "nf": "NAT", '
        '"traffic": {"flows": 1.0, "packet_size": 2.0, "mtbr": 3.0}, "sla_drop": 0.1}'
    )
    assert (
        frequent_decision(events.Arrive(tenant), events.Decision("placed", (events.Move("ä", None, "nic-1"),)))
        is not None
    )
    assert (
        frequent_decision(events.Depart("ä"), events.Decision("left", (events.Move("ä", "nic-1", None),))) is not None
    )
