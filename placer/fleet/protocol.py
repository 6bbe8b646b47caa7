"""Events and decisions as JSON lines (docs/formats/events.md)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    TypeAdapter,
    ValidationError,
)

from placer.fleet.events import (
    Arrive,
    ArriveTogether,
    Change,
    Cordon,
    Decision,
    Depart,
    Drain,
    DryRun,
    ExpectedDecision,
    Fail,
    FleetEvent,
    Join,
    JudgedInstance,
    Learned,
    Leave,
    Measure,
    MeasuredInstance,
    Move,
    Rebalance,
    RebalanceMove,
    Refused,
    Return,
    Uncordon,
    Where,
)
from placer.fleet.frequent_lines import frequent_decision, frequent_event, load_of
from placer.inputs.arrivals import HIGHEST_PRIORITY, LOWEST_PRIORITY
from placer.model.fleet import Tenant
from placer.model.groups import BETWEEN_POOLS, UNCONSTRAINED, Constraints, usable_group
from placer.model.sla import Sla
from placer.policy.rejection import Reason
from profiles import TrafficProfile, Workload
from profiles.description import MOST_CORES
from profiles.validation import word_fault

MAX_LISTED_CLASSES = 20  # classes of NICs whose reasons an answer lists, the largest first

LONGEST_NAME = 512  # characters of a name in an event; the id of a pod has up to 358
LARGEST_NUMBER = 1e12  # in an event
SMALLEST_POSITIVE = 1e-6  # the smallest rate (kpps) and latency (us) in an event

LOAD_KEYS = ("rate_kpps", "cores", "sla_latency_us")
"""Keys of what is offered to an instance, what it is given, and the latency that its packets are promised."""

CONSTRAINT_KEYS = ("apart", "pool", "spread", "together")  # in alphabetical order, as of `Constraints`

ONLY_IN_LOGS = ("kind", "free_cores")  # keys of arrivals on which a plan or a cluster has decided
MAX_REMEMBERED_WORKLOADS = 100_000  # workloads that are remembered, and SLAs: most events name one that came before

MOST_INSTANCES = 1_000
MAX_NAMED = 5  # ids that an error message names
LONGEST_ERROR = 700  # characters of an error message; it may quote what was sent

KPPS_DECIMALS = 6


class Malformed(Refused):
    """A line that is no event."""


Check = Callable[[Workload], Sequence[tuple[str, str]]]  # what is wrong with a workload, as (column, message)


def usable_name(name: str) -> str:
    """The name, if it is not blank and has no line break, escape code or other control character; else ValueError."""
    if not name.strip():
        raise ValueError("is empty")
    if not name.isprintable():
        raise ValueError(f"{name!r} has a line break or another control character")
    return name


def single_name(value: str) -> str:
    """The pool or the domain of a NIC, if it is one name; else ValueError."""
    if BETWEEN_POOLS in value:
        raise ValueError(f"{value!r} names several: a NIC has one")
    return value


def whole(value: object) -> object:
    """A whole number that is written as 3.0, as JSON allows, as an int; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(whole)]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(usable_name)]
Priority = Annotated[Whole, Field(ge=LOWEST_PRIORITY, le=HIGHEST_PRIORITY)]
Group = Annotated[str, AfterValidator(usable_group)]
Place = Annotated[Group, AfterValidator(single_name), Field(json_schema_extra={"pattern": r"^[^|]*$"})]
Number = Annotated[FiniteFloat, Field(ge=0, le=LARGEST_NUMBER)]
Positive = Annotated[FiniteFloat, Field(ge=SMALLEST_POSITIVE, le=LARGEST_NUMBER)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @property
    def keys(self) -> int:
        """How many keys it was read from, those of objects in it included."""
        return len(self.model_fields_set)


class Traffic(_Line):
    """Attributes of the traffic; the others are the default, or stay as they are."""

    flows: Number | None = None
    packet_size: Number | None = None
    mtbr: Number | None = None

    def over(self, before: TrafficProfile) -> TrafficProfile:
        return TrafficProfile.from_mapping({**before.as_dict(), **self.model_dump(exclude_none=True)})


class _Requirement(_Line):
    traffic: Traffic | None = None
    sla_drop: Annotated[FiniteFloat, Field(ge=0, lt=1)] | None = None
    sla_min_kpps: Annotated[FiniteFloat, Field(gt=0, le=LARGEST_NUMBER)] | None = None
    rate_kpps: Positive | None = None
    cores: Annotated[Whole, Field(ge=1, le=MOST_CORES)] | None = None
    sla_latency_us: Positive | None = None

    @property
    def keys(self) -> int:
        return len(self.model_fields_set) + (0 if self.traffic is None else self.traffic.keys)

    @property
    def sla(self) -> Sla | None:
        if self.sla_drop is not None and self.sla_min_kpps is not None:
            raise Malformed("two SLAs: give sla_drop or sla_min_kpps, not both")
        given = self.sla_drop is not None or self.sla_min_kpps is not None
        return _sla_of(self.sla_drop, self.sla_min_kpps) if given else None

    @property
    def given(self) -> tuple[str, ...]:
        """Which of `LOAD_KEYS` are given; a rate may be null."""
        if not self.model_fields_set.intersection(LOAD_KEYS):
            return ()
        known = (key for key in LOAD_KEYS if key in self.model_fields_set)
        return tuple(key for key in known if key == "rate_kpps" or getattr(self, key) is not None)

    def over(self, before: Workload) -> Workload:
        """What an instance runs that ran `before`, without its traffic; what is not given stays as it is.

        Raises Malformed when a latency is promised without a rate, or more throughput than the rate.
        """
        found, given = before, self.given
        if given:
            rate = self.rate_kpps if "rate_kpps" in given else before.rate_kpps
            found = replace(
                before,
                rate_kpps=inf if rate is None else rate,
                cores=self.cores or before.cores,
                latency_us=self.sla_latency_us or before.latency_us,
            )
        if found.promises_latency and found.is_saturated:
            raise Malformed("sla_latency_us: latency depends on the rate that is offered: give rate_kpps, too")
        if self.sla_min_kpps is not None and self.sla_min_kpps > found.rate_kpps:
            raise Malformed(f"sla_min_kpps: is above the rate that is offered, {found.rate_kpps:g} kpps")
        return found


@lru_cache(MAX_REMEMBERED_WORKLOADS)
def _sla_of(drop: float | None, kpps: float | None) -> Sla:
    return Sla(None if drop is None else drop + 0.0, kpps)  # 0.0, which is remembered for -0.0, too


class Wanted(_Requirement):
    """An instance that is to be placed: an NF, its traffic, its load, and its SLA, `sla_drop` or `sla_min_kpps`.

    `rate_kpps`: what is offered to it; null for more than it can carry. `cores`: what it is given; else as many as it
    takes. `spread`, `apart`, `together`, `pool`: the constraints of its place. `priority`: how much it matters
    where NICs are too few, the higher the more.
    """

    nf: Name
    spread: Group | None = None
    apart: Group | None = None
    together: Group | None = None
    pool: Group | None = None
    priority: Priority = 0

    @property
    def constraints(self) -> Constraints:
        """The constraints that are given."""
        return _constraints_of(self.apart, self.pool, self.spread, self.together)


@lru_cache(MAX_REMEMBERED_WORKLOADS)
def _constraints_of(*values: str | None) -> Constraints:
    """Constraints by their values, in the order of `CONSTRAINT_KEYS`."""
    given = tuple((key, value) for key, value in zip(CONSTRAINT_KEYS, values, strict=True) if value is not None)
    return Constraints(given) if given else UNCONSTRAINED


def _forget_keys(properties: dict[str, Any], keys: Iterable[str]) -> None:
    for key in keys:
        del properties[key]


class _Changing(_Line):
    """`dry_run`: nothing is to change, only the answer is wanted."""

    dry_run: bool = False


class ArriveEvent(Wanted, _Changing):
    """An instance arrives, with its SLA: `sla_drop` or `sla_min_kpps`; with a rate, `sla_drop` is 0 if not given.

    `preempt`: where it fits nowhere, tenants of lower priority leave a NIC, as few as possible; not with `nic`.
    """

    model_config = ConfigDict(json_schema_extra=lambda schema: _forget_keys(schema["properties"], ONLY_IN_LOGS))

    event: Literal["arrive"]
    id: Name
    nic: Name | None = None
    kind: Annotated[Whole, Field(ge=0)] | None = None
    free_cores: Literal[True] | None = None
    preempt: bool = False


class GroupMember(Wanted):
    """An instance of a group; as of an arrival."""

    id: Name


class GroupEvent(_Changing):
    """Instances arrive that are placed all or not at all."""

    event: Literal["group"]
    id: Name
    arrivals: Annotated[tuple[GroupMember, ...], Field(min_length=1, max_length=MOST_INSTANCES, strict=False)]

    @property
    def keys(self) -> int:
        return len(self.model_fields_set) + sum(arrival.keys for arrival in self.arrivals)


class ChangeEvent(_Requirement, _Changing):
    """An instance changes its traffic, its load or its SLA; a `rate_kpps` of null is more than it can carry."""

    event: Literal["change"]
    id: Name


class DepartEvent(_Changing):
    """An instance departs."""

    event: Literal["depart"]
    id: Name


class WhereEvent(_Line):
    """An instance is looked up."""

    event: Literal["where"]
    id: Name


class NicEvent(_Changing):
    """A NIC fails, is drained, returns to service, is cordoned or uncordoned, or leaves the fleet."""

    event: Literal["fail", "drain", "return", "cordon", "uncordon", "leave"]
    nic: Name


class JoinEvent(_Changing):
    """A NIC with a name joins the fleet, in a pool and a domain if these are given."""

    event: Literal["join"]
    nic: Name
    nic_model: Name
    pool: Place | None = None
    domain: Place | None = None


class RebalanceEvent(_Changing):
    """At most `budget` instances are moved, to end SLA violations and to empty NICs."""

    event: Literal["rebalance"]
    budget: Annotated[Whole, Field(ge=0, le=LARGEST_NUMBER)]
    move_cost: Number = Rebalance(0).move_cost
    risk_worth: Number = Rebalance(0).risk_worth
    nics: Annotated[tuple[Name, ...], Field(max_length=MOST_INSTANCES, strict=False)] | None = None

    @property
    def rebalance(self) -> Rebalance:
        return Rebalance(self.budget, self.move_cost, self.risk_worth, self.nics)


class Throughput(_Line):
    """The measured throughput of an instance, and the rate that it was offered (kpps)."""

    id: Name
    throughput_kpps: Number
    offered_kpps: Number | None = None


class MeasuredEvent(_Line):
    """Throughput of the instances of a NIC, measured over `window_s` seconds."""

    event: Literal["measured"]
    nic: Name
    window_s: Annotated[FiniteFloat, Field(gt=0, le=LARGEST_NUMBER)]
    instances: Annotated[tuple[Throughput, ...], Field(min_length=1, max_length=MOST_INSTANCES, strict=False)]

    @property
    def keys(self) -> int:
        return len(self.model_fields_set) + sum(instance.keys for instance in self.instances)

    @property
    def measure(self) -> Measure:
        found = (
            MeasuredInstance(instance.id, instance.throughput_kpps, instance.offered_kpps)
            for instance in self.instances
        )
        return Measure(self.nic, self.window_s, tuple(found))


AnyEvent = Annotated[
    ArriveEvent
    | ChangeEvent
    | GroupEvent
    | DepartEvent
    | WhereEvent
    | NicEvent
    | JoinEvent
    | RebalanceEvent
    | MeasuredEvent,
    Field(discriminator="event"),
]
_LINE_READER: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)
_OF_A_NIC: dict[str, type[Fail | Drain | Return | Cordon | Uncordon | Leave]] = {
    "fail": Fail, "drain": Drain, "return": Return, "cordon": Cordon, "uncordon": Uncordon, "leave": Leave,
}  # fmt: skip


class Reader:
    """Reads events.

    `default_traffic`: the traffic of arrivals, as far as they name none. `check`: lists what is wrong with a workload:
    an NF that is not profiled, traffic outside the profiled range. `workload_of`: the workload of an instance in the
    fleet, for changes; None for an unknown one. `of_log`: whether the events are those of a log: only there may a plan
    have decided on an arrival.
    """

    def __init__(
        self,
        default_traffic: TrafficProfile,
        check: Check,
        workload_of: Callable[[str], Workload | None],
        *,
        of_log: bool = False,
    ) -> None:
        self.default_traffic = default_traffic
        self.check = check
        self.workload_of = workload_of
        self.of_log = of_log
        self._known: dict[tuple[object, ...], Workload] = {}

    def read(self, line: str | bytes) -> FleetEvent:
        """The event of a line.

        Raises Malformed when the line is not an event. Raises Refused when the models do not know its NF or traffic, or
        it changes an instance that is not there.
        """
        try:
            read = _LINE_READER.validate_json(line)
        except ValidationError as error:
            raise Malformed("; ".join((*faults_in(error, 1), *self._faults_of_workload(line, error)))) from error
        refuse_repeated_keys(line, read.keys)
        event = self._event(read)
        return DryRun(event) if isinstance(read, _Changing) and read.dry_run else event

    def _event(self, read: AnyEvent) -> FleetEvent:
        if isinstance(read, ArriveEvent):
            return self._arrival(read)
        if isinstance(read, GroupEvent):
            return ArriveTogether(read.id, tuple(self._members(read)))
        if isinstance(read, DepartEvent | WhereEvent):
            return Depart(read.id) if isinstance(read, DepartEvent) else Where(read.id)
        if isinstance(read, NicEvent):
            return _OF_A_NIC[read.event](read.nic)
        if isinstance(read, JoinEvent):
            return Join(read.nic, read.nic_model, read.pool or "", read.domain or "")
        if isinstance(read, MeasuredEvent):
            return read.measure
        if isinstance(read, RebalanceEvent):
            return read.rebalance
        before = self.workload_of(read.id)
        if before is None:
            raise Refused(f"'{read.id}' is not placed or queued")
        if read.traffic is None and read.sla is None and not read.given:
            raise Malformed("changes nothing: give traffic or an SLA")
        after = read.over(before)
        if read.traffic is None and not read.given:
            return Change(read.id, None, read.sla)
        given = ("traffic",) if read.given and read.traffic is not None else ()
        return Change(read.id, self._workload(after, read.traffic), read.sla, (*given, *read.given))

    def _arrival(self, read: ArriveEvent) -> Arrive:
        if not self.of_log and (unknown := [key for key in ONLY_IN_LOGS if getattr(read, key) is not None]):
            raise Malformed(f"{unknown[0]}: unknown key")
        if read.preempt and read.nic is not None:
            raise Malformed("preempt: no tenant leaves a NIC that is named: leave out nic")
        tenant = self.tenant(read.id, read)
        chosen = replace(tenant, free_cores=True) if read.free_cores else tenant
        return Arrive(chosen, read.nic, read.kind, read.preempt)

    def tenant(self, identity: str, wanted: Wanted) -> Tenant:
        """The instance that is to be placed.

        Raises Malformed when it has no SLA, or two, or no NIC carries its rate. Raises Refused when the models do not
        know its NF or traffic.
        """
        sla = wanted.sla
        if sla is None and wanted.rate_kpps is None:
            raise Malformed("no SLA: give sla_drop or sla_min_kpps")
        load = wanted.over(Workload(wanted.nf, self.default_traffic))
        workload = self._workload(load, wanted.traffic)
        found = sla or _sla_of(0.0, None)
        return Tenant(identity, workload, found, constraints=wanted.constraints, priority=wanted.priority)

    def _members(self, read: GroupEvent) -> Iterator[Tenant]:
        ids = Counter(arrival.id for arrival in read.arrivals)
        if twice := [identity for identity, times in ids.items() if times > 1]:
            raise Malformed(f"arrivals: twice in the group: {', '.join(map(repr, twice[:MAX_NAMED]))}")
        for number, arrival in enumerate(read.arrivals):
            try:
                yield replace(self.tenant(arrival.id, arrival), group=read.id)
            except Refused as refused:
                raise type(refused)(f"arrivals.{number}: {refused}") from refused

    def _faults_of_workload(self, line: str | bytes, error: ValidationError) -> list[str]:
        """What else is wrong with an arrival that is refused anyway: its NF or traffic is not profiled."""
        faulty = {wrong["loc"][1:2] for wrong in error.errors()}
        if faulty.intersection([(), ("nf",), ("traffic",)]):
            return []
        given = json.loads(line)
        if given["event"] != "arrive":
            return []
        traffic = Traffic.model_validate(given.get("traffic") or {}).over(self.default_traffic)
        rate, cores = (given.get(key) if (key,) not in faulty else None for key in LOAD_KEYS[:2])
        workload = Workload(given["nf"], traffic, rate or inf, cores=cores or 0)
        return [f"{column}: {message}" for column, message in self.check(workload)]

    def _workload(self, before: Workload, traffic: Traffic | None) -> Workload:
        """The workload with other traffic, checked."""
        key = (before,) if traffic is None else (before, traffic.flows, traffic.packet_size, traffic.mtbr)
        known = self._known.get(key)
        if known is not None:
            return known
        workload = replace(before, traffic=traffic.over(before.traffic)) if traffic else before
        if wrong := self.check(workload):
            load = any(column in LOAD_KEYS for column, _ in wrong)
            raise (Malformed if load else Refused)("; ".join(f"{column}: {message}" for column, message in wrong))
        if len(self._known) >= MAX_REMEMBERED_WORKLOADS:
            self._known.clear()
        self._known[key] = workload
        return workload


def faults_in(error: ValidationError, skipped: int = 0) -> Iterator[str]:
    """Everything that pydantic found, as `place: what is wrong`; places without so many of their first parts."""
    for wrong in error.errors():
        place = ".".join(map(str, wrong["loc"][skipped:]))
        yield f"{place}: {word_fault(wrong)}" if place else word_fault(wrong)


def decision_line(event: FleetEvent, decision: Decision) -> str:
    """The answer to an event as one line of JSON, without its line end; to a dry run that of its event."""
    if isinstance(event, DryRun) and isinstance(decision, ExpectedDecision):
        event, decision = event.event, decision.decision
    return frequent_decision(event, decision) or any_decision(event, decision)


def any_decision(event: FleetEvent, decision: Decision) -> str:
    """As `decision_line`, for all that may be answered."""
    answer: dict[str, Any] = {
        "ok": True,
        "event": _EVENT_NAMES[type(event)],
        **_subject(event),
        "status": decision.status,
    }
    if isinstance(event, _EVENTS_OF_PLACED):
        answer["nic"] = decision.nic
    if decision.cores is not None:
        answer["cores"] = decision.cores
    if decision.placements:
        answer["placements"] = [{"id": identity, "nic": nic} for identity, nic in decision.placements]
    if isinstance(decision, Learned):
        answer |= {"model": decision.model, "instances": [_judge(instance) for instance in decision.instances]}
    answer["moves"] = [_move(move) for move in decision.moves]
    for key in ("at_risk", "queued"):
        if ids := getattr(decision, key):
            answer[key] = list(ids)
    if decision.reasons:
        answer["classes"] = len(decision.reasons)
        answer["reasons"] = [reason_dict(reason) for reason in decision.reasons[:MAX_LISTED_CLASSES]]
    return json.dumps(answer)


def reason_dict(reason: Reason) -> dict[str, Any]:
    nfs = [workload.nf for workload in reason.co_location]
    shown = {"nic_model": reason.nic_model, "company": nfs, "nics": reason.nics, "cause": reason.cause}
    return {**shown, "with": list(reason.met)} if reason.met else shown


def _judge(one: JudgedInstance) -> dict[str, Any]:
    known = {"predicted_kpps": one.predicted_kpps, "low_kpps": one.low_kpps, "high_kpps": one.high_kpps}
    shown = {name: None if kpps is None else round(kpps, KPPS_DECIMALS) for name, kpps in known.items()}
    return {"id": one.id, **shown, "below_sla": one.below_sla}


def _move(move: Move) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": move.id, "from": move.source, "to": move.target}
    if move.cores is not None:
        shown["cores"] = move.cores
    if isinstance(move, RebalanceMove):
        shown |= {"why": move.why, "gain": round(move.gain, 6), "cost": move.cost}
    return shown


def refuse_repeated_keys(line: str | bytes, keys: int) -> None:
    """Raise Malformed where a key of a line is given twice. `keys`: how many were read."""
    colons = line.count(b":") if isinstance(line, bytes) else line.count(":")
    if colons > keys:  # only such a line, with colons in its values or repeated keys, is read once more
        json.loads(line, object_pairs_hook=_refuse_repeated_names)


def _refuse_repeated_names(pairs: list[tuple[str, object]]) -> None:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise Malformed(f"{name}: is given twice")


def refusal_line(refused: Refused) -> str:
    """The answer to a line that is refused."""
    message = str(refused)
    return json.dumps({"ok": False, "error": message[:LONGEST_ERROR] + "..." * (len(message) > LONGEST_ERROR)})


def event_line(event: FleetEvent) -> str:
    """The event as one line of JSON, without its line end, with all its traffic."""
    return frequent_event(event) or any_event(event)


def any_event(event: FleetEvent) -> str:
    """As `event_line`, for all that may happen."""
    line: dict[str, Any] = {"event": _EVENT_NAMES[type(event)], **_subject(event)}
    if isinstance(event, Measure):
        line |= {"window_s": event.window_s, "instances": [_measure(instance) for instance in event.instances]}
    if isinstance(event, Arrive):
        if event.nic is not None:
            line["nic"] = event.nic
        if event.kind is not None:
            line["kind"] = event.kind
        if event.tenant.free_cores:
            line["free_cores"] = True
        line |= _wanted(event.tenant)
        if event.preempt:
            line["preempt"] = True
    elif isinstance(event, ArriveTogether):
        line["arrivals"] = [{"id": tenant.id, **_wanted(tenant)} for tenant in event.tenants]
    elif isinstance(event, Change):
        line |= _requirement(event.workload, event.sla, event.given)
    return json.dumps(line)


def _wanted(tenant: Tenant) -> dict[str, Any]:
    load = load_of(tenant.workload)
    requirement = _requirement(tenant.workload, tenant.sla, ("traffic", *load) if load else ())
    priority = {"priority": tenant.priority} if tenant.priority else {}
    return {"nf": tenant.workload.nf, **requirement, **dict(tenant.constraints.values), **priority}


def _requirement(workload: Workload | None, sla: Sla | None, given: Sequence[str]) -> dict[str, Any]:
    """Traffic, load and SLA, as far as they are given."""
    found: dict[str, Any] = {} if workload is None else {"traffic": workload.traffic.as_dict()}
    if workload is not None and given:
        known = {**found, **load_of(workload)}
        found = {key: known.get(key) for key in given}
    if sla is not None:
        key, value = ("sla_drop", sla.max_drop) if sla.max_drop is not None else ("sla_min_kpps", sla.min_kpps)
        found[key] = value
    return found


def _measure(one: MeasuredInstance) -> dict[str, Any]:
    offered = {} if one.offered_kpps is None else {"offered_kpps": one.offered_kpps}
    return {"id": one.id, "throughput_kpps": one.throughput_kpps, **offered}


_EVENTS_OF_PLACED, _OF_NICS = (Arrive, Where), (Fail, Drain, Return, Cordon, Uncordon, Leave, Measure)

_EVENT_NAMES: dict[type, str] = {
    Arrive: "arrive", ArriveTogether: "group", Depart: "depart", Change: "change", Fail: "fail", Drain: "drain",
    Join: "join", Return: "return", Cordon: "cordon", Uncordon: "uncordon", Leave: "leave", Rebalance: "rebalance",
    Measure: "measured", Where: "where",
}  # fmt: skip


def name_of(event: FleetEvent) -> str:
    """What the event is called in a line."""
    return _EVENT_NAMES[type(event)]


def _subject(event: FleetEvent) -> dict[str, Any]:
    if isinstance(event, DryRun):
        return _subject(event.event)
    if isinstance(event, Arrive):
        return {"id": event.tenant.id}
    if isinstance(event, _OF_NICS):
        return {"nic": event.nic}
    if isinstance(event, Join):
        places = {key: name for key, name in (("pool", event.pool), ("domain", event.domain)) if name}
        return {"nic": event.nic, "nic_model": event.nic_model, **places}
    if isinstance(event, Rebalance):
        named = {} if event.nics is None else {"nics": list(event.nics)}
        return {"budget": event.budget, "move_cost": event.move_cost, "risk_worth": event.risk_worth, **named}
    return {"id": event.id}
