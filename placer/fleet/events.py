"""Events: what can happen to a fleet, and what is decided on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from placer.fleet.learning.ledger import ProductionReading
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.policy.rejection import Reason
from profiles import Workload


@dataclass(frozen=True, slots=True)
class Arrive:
    """An NF instance needs a NIC.

    `nic`: where it is placed, or refused; None for any NIC. `kind`: where a plan or a cluster decides, the number of
    the kind of `nic`, which comes into use where it was not; then no SLA is asked for, and a plan may have chosen the
    number of cores (`Tenant.free_cores`). `preempt`: whether tenants of lower priority leave their NIC where it fits
    nowhere else.
    """

    tenant: Tenant
    nic: str | None = None
    kind: int | None = None
    preempt: bool = False


@dataclass(frozen=True, slots=True)
class Reserve(Arrive):
    """A NIC is to hold a place for an instance, until the time in `Tenant.reserved_until`, `ttl_s` seconds from now."""

    ttl_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Expire:
    """The time of a reservation has ended; nothing happens where its instance has arrived."""

    id: str


@dataclass(frozen=True, slots=True)
class ArriveTogether:
    """Instances of a group need NICs, all of them or none; their `Tenant.group` is its id."""

    id: str
    tenants: tuple[Tenant, ...]


@dataclass(frozen=True, slots=True)
class Depart:
    """An instance leaves its NIC or the queue."""

    id: str


@dataclass(frozen=True, slots=True)
class Change:
    """An instance gets another workload, another SLA, or both; None stays as it is.

    `workload`: what it runs from now on, without the number of cores where that is to be chosen. `given`: which of the
    keys `traffic`, `rate_kpps`, `cores` and `sla_latency_us` were given for it; none for traffic alone.
    """

    id: str
    workload: Workload | None = None
    sla: Sla | None = None
    given: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fail:
    """A NIC failed, and its tenants need another."""

    nic: str


@dataclass(frozen=True, slots=True)
class Drain:
    """A NIC is to be emptied: it takes no more arrivals, and its tenants move where they fit elsewhere."""

    nic: str


@dataclass(frozen=True, slots=True)
class DrainTogether:
    """NICs are to be emptied in one maintenance window: no tenant moves to another one of them."""

    nics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cordon:
    """A NIC keeps its tenants, and takes no arrivals."""

    nic: str


@dataclass(frozen=True, slots=True)
class Uncordon:
    """A NIC that was cordoned takes arrivals again."""

    nic: str


@dataclass(frozen=True, slots=True)
class Join:
    """A NIC of a known model is added, idle, under a name of its own; empty for no `pool`, and for a `domain` of its
    own. One that has joined and is idle may join again in another place."""

    nic: str
    nic_model: str
    pool: str = ""
    domain: str = ""


@dataclass(frozen=True, slots=True)
class Leave:
    """A NIC without tenants leaves the fleet."""

    nic: str


@dataclass(frozen=True, slots=True)
class Return:
    """A NIC that failed or was drained takes arrivals again."""

    nic: str


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Tenants may be moved to end SLA violations and to empty NICs.

    `budget`: largest number of moves. `move_cost`, `risk_worth`: what a move costs, and what ending an expected SLA
    violation is worth, in units of NIC cost. `nics`: whose tenants may be moved, by the ids of the NICs; None for
    all.
    """

    budget: int
    move_cost: float = 0.05
    risk_worth: float = 1.0
    nics: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class MeasuredInstance:
    """What production measured of an instance: its throughput and, where known, what was offered to it (kpps)."""

    id: str
    throughput_kpps: float
    offered_kpps: float | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """Production measured instances of a NIC while its tenants were those of now, for so many seconds."""

    nic: str
    window_s: float
    instances: tuple[MeasuredInstance, ...]


@dataclass(frozen=True, slots=True)
class Where:
    """Where an instance runs is to be reported; nothing changes."""

    id: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """What would be decided on an event is to be reported; nothing changes."""

    event: FleetEvent


FleetEvent = (
    Arrive | Reserve | Expire | ArriveTogether | Depart | Change | Fail | Drain | DrainTogether | Cordon | Uncordon
    | Join | Leave | Return | Rebalance | Measure | Where | DryRun
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Move:
    """An instance changed its NIC; None stands for no NIC: it arrived, left, waits or was rejected.

    `cores`: as of a `Decision`, of an instance that waited, whose number of cores may have been chosen only now.
    """

    id: str
    source: str | None
    target: str | None
    cores: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class RebalanceMove(Move):
    """A move that improves the fleet.

    `why`: `ends a risk` (an expected SLA violation) or `empties a NIC`. `gain`: for a risk, what ending it is worth,
    less the cost of a NIC that is opened; else the cost of the NIC that is emptied, divided by the number of moves that
    empty it.
    """

    why: str = ""
    gain: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided on an event.

    `status`: `placed`, `queued` or `rejected` for an arrival; `reserved` or `rejected` for a reservation, and
    `expired`; `left`; `kept`, `resized` (other cores on its NIC), `moved` or `at-risk` for a change; `failed`,
    `drained`, `draining` (some tenants fit nowhere else), `returned`, `cordoned`, `up`, `joined` or `gone` for a NIC;
    `rebalanced` or `as-it-was`. `moves`: every instance that changed its NIC, in order. `at_risk`: instances that stay
    on the NIC although they are expected to violate their SLA. `queued`: instances that lost their NIC and fit on no
    other. `reasons`: where an arrival fits on no NIC: why, by class of NICs. `cores`: those of the instance of the
    event, where it has a rate or its cores were given; None of any other, and of one on no NIC. `placements`: the NICs
    of the members of a group, by id; None of one that waits. `until`: when a reservation ends, s since 1970.
    `draining`: the NICs of a maintenance window that still have tenants.
    """

    status: str
    moves: tuple[Move, ...] = ()
    at_risk: tuple[str, ...] = ()
    queued: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    cores: int | None = None
    placements: tuple[tuple[str, str | None], ...] = ()
    until: float | None = None
    draining: tuple[str, ...] = ()

    @property
    def nic(self) -> str | None:
        return self.moves[0].target if self.moves else None


@dataclass(frozen=True, slots=True)
class TakenPlace(Decision):
    """An arrival has taken the place that was reserved for it, or its place in the queue."""

    found_on: str | None = None

    @property
    def nic(self) -> str | None:
        return self.found_on


@dataclass(frozen=True, slots=True)
class Lookup(Decision):
    """Where an instance runs: its status is `placed`, `reserved`, `queued` or `unknown`. Nothing changed, so it is not
    logged."""

    found_on: str | None = None

    @property
    def nic(self) -> str | None:
        return self.found_on


@dataclass(frozen=True, slots=True)
class ExpectedDecision(Lookup):
    """What would be decided on an event, of which it has the status; nothing changed."""

    decision: Decision = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class JudgedInstance:
    """A measured instance beside what was predicted of it before.

    `predicted_kpps`: the median prediction. `low_kpps`, `high_kpps`: between which 9 of 10 are expected; None where
    errors are not known. `below_sla`: whether it was below its SLA; None unless at least the throughput of its SLA was
    offered.
    """

    id: str
    predicted_kpps: float
    low_kpps: float | None
    high_kpps: float | None
    below_sla: bool | None


@dataclass(frozen=True, slots=True)
class Learned(Decision):
    """What a measurement showed.

    Its status is `noted`, `drift` (an NF changed), `canary` (a retrained model is on trial), `promoted` or
    `rolled-back`.

    `model`: the version of the models that decide from now on. `instances`: what was measured beside what was
    predicted. `rows`: what a state records of it besides, by name; None where a row is to be removed.
    """

    model: int = 1
    instances: tuple[JudgedInstance, ...] = ()
    readings: tuple[ProductionReading, ...] = ()
    rows: Mapping[str, str | None] = field(default_factory=dict)


class Refused(Exception):
    """An event that cannot happen, such as the departure of an unknown instance; nothing was changed."""


class RefusedForNow(Refused):
    """An event that cannot happen now, but may soon."""
