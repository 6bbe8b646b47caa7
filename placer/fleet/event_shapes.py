"""What the lines of events may hold: their keys, and the types and bounds of these (docs/formats/events.md)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import inf
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat

from placer.fleet.events import Measure, MeasuredInstance, Rebalance, Refused
from placer.inputs.arrivals import HIGHEST_PRIORITY, LOWEST_PRIORITY
from placer.model.groups import BETWEEN_POOLS, UNCONSTRAINED, Constraints, usable_group, usable_limit
from placer.model.sla import Sla
from profiles import TrafficProfile, Workload
from profiles.description import MOST_CORES

LONGEST_NAME = 512  # characters of a name in an event; the id of a pod has up to 358
LARGEST_NUMBER = 1e12  # in an event
SMALLEST_POSITIVE = 1e-6  # the smallest rate (kpps) and latency (us) in an event

LOAD_KEYS = ("rate_kpps", "cores", "sla_latency_us")
"""Keys of what is offered to an instance, what it is given, and the latency that its packets are promised."""

CONSTRAINT_KEYS = ("apart", "exclusive", "most_per_domain", "most_per_nic", "pool", "spread", "together")
"""In alphabetical order, as of `Constraints`."""

ONLY_IN_LOGS = ("kind", "free_cores")  # keys of arrivals on which a plan or a cluster has decided
ONLY_IN_LOGS_OF_RESERVATIONS = ("until",)
MOST_LABELS, LONGEST_LABEL = 64, 512  # labels of an instance, and characters of the value of one
MAX_REMEMBERED_WORKLOADS = 100_000  # workloads that are remembered, and SLAs: most events name one that came before

MOST_INSTANCES = 1_000


class Malformed(Refused):
    """A line that is no event."""


def usable_name(name: str) -> str:
    """The name, if it is not blank and has no line break, escape code or other control character; else ValueError."""
    if not name.strip():
        raise ValueError("is empty")
    if not name.isprintable():
        raise ValueError(f"{name!r} has a line break or another control character")
    return name


def printable(text: str) -> str:
    """The text, if it has no control character; else ValueError."""
    if not text.isprintable():
        raise ValueError(f"{text!r} has a line break or another control character")
    return text


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
GroupLimit = Annotated[str, AfterValidator(usable_limit)]
Label = Annotated[str, Field(max_length=LONGEST_LABEL), AfterValidator(printable)]
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
        given = {name: value for name, value in self if value is not None}
        return TrafficProfile.from_mapping({**before.as_dict(), **given})


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
        return sla_of(self.sla_drop, self.sla_min_kpps) if given else None

    @property
    def given(self) -> tuple[str, ...]:
        """Which of `LOAD_KEYS` are given; a rate may be null."""
        found = self.model_fields_set
        if found.isdisjoint(LOAD_KEYS):
            return ()
        return tuple([key for key in LOAD_KEYS if key in found and (key == "rate_kpps" or getattr(self, key))])

    def over(self, before: Workload) -> Workload:
        """What an instance runs that ran `before`, without its traffic; what is not given stays as it is.

        Raises Malformed when a latency is promised without a rate, or more throughput than the rate.
        """
        found, given = before, self.given
        if given:
            rate = self.rate_kpps if "rate_kpps" in given else before.rate_kpps
            found = before.at_load(
                inf if rate is None else rate,
                cores=self.cores or before.cores,
                latency_us=self.sla_latency_us or before.latency_us,
            )
        if found.promises_latency and found.is_saturated:
            raise Malformed("sla_latency_us: latency depends on the rate that is offered: give rate_kpps, too")
        if self.sla_min_kpps is not None and self.sla_min_kpps > found.rate_kpps:
            raise Malformed(f"sla_min_kpps: is above the rate that is offered, {found.rate_kpps:g} kpps")
        return found


@lru_cache(MAX_REMEMBERED_WORKLOADS)
def sla_of(drop: float | None, kpps: float | None) -> Sla:
    """The SLA of a line, which many lines have."""
    return Sla(None if drop is None else drop + 0.0, kpps)  # 0.0, which is remembered for -0.0, too


class Wanted(_Requirement):
    """An instance that is to be placed: an NF, its traffic, its load, and its SLA, `sla_drop` or `sla_min_kpps`.

    `rate_kpps`: what is offered to it; null for more than it can carry. `cores`: what it is given; else as many as it
    takes. `spread`, `apart`, `together`, `pool`, `most_per_nic`, `most_per_domain`, `exclusive`: the constraints of its
    place. `priority`: how much it matters where NICs are too few, the higher the more. `owner`, `labels`: whose it is,
    and what its owner calls it.
    """

    nf: Name
    spread: Group | None = None
    apart: Group | None = None
    together: Group | None = None
    pool: Group | None = None
    most_per_nic: GroupLimit | None = None
    most_per_domain: GroupLimit | None = None
    exclusive: Group | None = None
    priority: Priority = 0
    owner: Name | None = None
    labels: Annotated[dict[Name, Label], Field(max_length=MOST_LABELS)] | None = None

    @property
    def keys(self) -> int:
        return super().keys + len(self.labels or ())

    @property
    def constraints(self) -> Constraints:
        """The constraints that are given."""
        if self.model_fields_set.isdisjoint(CONSTRAINT_KEYS):
            return UNCONSTRAINED
        return _constraints_of(*(getattr(self, key) for key in CONSTRAINT_KEYS))


@lru_cache(MAX_REMEMBERED_WORKLOADS)
def _constraints_of(*values: str | None) -> Constraints:
    """Constraints by their values, in the order of `CONSTRAINT_KEYS`."""
    given = tuple((key, value) for key, value in zip(CONSTRAINT_KEYS, values, strict=True) if value is not None)
    return Constraints(given) if given else UNCONSTRAINED


def _forget_keys(properties: dict[str, Any], keys: Iterable[str]) -> None:
    for key in keys:
        del properties[key]


class ChangingLine(_Line):
    """`dry_run`: nothing is to change, only the answer is wanted."""

    dry_run: bool = False


class ArriveEvent(Wanted, ChangingLine):
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


class ReserveEvent(Wanted, ChangingLine):
    """A place is held for an instance for `ttl_s` seconds, on the NIC that is named, if one is; an arrival with this id
    that asks for the same takes it."""

    model_config = ConfigDict(
        json_schema_extra=lambda schema: _forget_keys(schema["properties"], ONLY_IN_LOGS_OF_RESERVATIONS)
    )

    event: Literal["reserve"]
    id: Name
    nic: Name | None = None
    ttl_s: Positive
    until: FiniteFloat | None = None


class ExpireEvent(_Line):
    """The time of a reservation has ended."""

    event: Literal["expire"]
    id: Name


class GroupMember(Wanted):
    """An instance of a group; as of an arrival."""

    id: Name


class GroupEvent(ChangingLine):
    """Instances arrive that are placed all or not at all."""

    event: Literal["group"]
    id: Name
    arrivals: Annotated[tuple[GroupMember, ...], Field(min_length=1, max_length=MOST_INSTANCES, strict=False)]

    @property
    def keys(self) -> int:
        return len(self.model_fields_set) + sum(arrival.keys for arrival in self.arrivals)


class ChangeEvent(_Requirement, ChangingLine):
    """An instance changes its traffic, its load or its SLA; a `rate_kpps` of null is more than it can carry."""

    event: Literal["change"]
    id: Name


class DepartEvent(ChangingLine):
    """An instance departs."""

    event: Literal["depart"]
    id: Name


class WhereEvent(_Line):
    """An instance is looked up."""

    event: Literal["where"]
    id: Name


class NicEvent(ChangingLine):
    """A NIC fails, returns to service, is cordoned or uncordoned, or leaves the fleet."""

    event: Literal["fail", "return", "cordon", "uncordon", "leave"]
    nic: Name


class DrainEvent(ChangingLine):
    """A NIC is emptied; or several are, `nics`, of which none takes tenants of another one."""

    event: Literal["drain"]
    nic: Name | None = None
    nics: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_INSTANCES, strict=False)] | None = None


class JoinEvent(ChangingLine):
    """A NIC with a name joins the fleet, in a pool and a domain if these are given."""

    event: Literal["join"]
    nic: Name
    nic_model: Name
    pool: Place | None = None
    domain: Place | None = None


class RebalanceEvent(ChangingLine):
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


_EventShape = (
    ArriveEvent | ChangeEvent | GroupEvent | ReserveEvent | DepartEvent | WhereEvent | NicEvent | DrainEvent | JoinEvent
    | RebalanceEvent | MeasuredEvent
)  # fmt: skip
AnyEvent = Annotated[_EventShape, Field(discriminator="event")]
LoggedEvent = Annotated[_EventShape | ExpireEvent, Field(discriminator="event")]
"""What a log may have, and no client may send."""
