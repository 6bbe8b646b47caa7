"""Events: what can befall a fleet, and what is answered to each."""

from __future__ import annotations

from dataclasses import dataclass

from placer.model.fleet import Tenant
from placer.model.sla import Sla
from placer.policy.rejection import Reason
from profiles import Workload


@dataclass(frozen=True, slots=True)
class Arrive:
    """An NF instance asks for a place."""

    tenant: Tenant


@dataclass(frozen=True, slots=True)
class Depart:
    """An instance leaves, or gives up waiting."""

    id: str


@dataclass(frozen=True, slots=True)
class Change:
    """An instance has another traffic profile, another SLA, or both; None is as before."""

    id: str
    workload: Workload | None = None
    sla: Sla | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """A NIC is gone, and whoever was on it needs another place."""

    nic: str


@dataclass(frozen=True, slots=True)
class Drain:
    """A NIC is to be emptied: it takes nobody, and whoever has a place elsewhere moves there."""

    nic: str


@dataclass(frozen=True, slots=True)
class Return:
    """A NIC that failed or was drained takes newcomers again."""

    nic: str


@dataclass(frozen=True, slots=True)
class Rebalance:
    """The fleet may be put in better order, in a few moves.

    Parameters
    ----------
    budget
        Moves, at most.
    move_cost, risk_worth
        What a move costs, and what it is worth to end a risk, in units of NIC cost.
    """

    budget: int
    move_cost: float = 0.05
    risk_worth: float = 1.0


Event = Arrive | Depart | Change | Fail | Drain | Return | Rebalance


@dataclass(frozen=True, slots=True)
class Move:
    """An instance changed its place; None is nowhere: it came, left, waits or was rejected."""

    id: str
    source: str | None
    target: str | None


@dataclass(frozen=True, slots=True)
class Step(Move):
    """A move that nobody had to make.

    Parameters
    ----------
    why
        `ends a risk` or `empties a NIC`.
    gain
        For a risk, what ending it is worth, less the cost of a NIC that is opened; else the cost of the NIC that is
        emptied, shared by the moves that empty it.
    cost
        What the move costs.
    """

    why: str = ""
    gain: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What was decided on an event.

    Parameters
    ----------
    status
        `placed`, `queued` or `rejected` for an arrival; `left`; `kept`, `moved` or `at-risk` for a change; `failed`,
        `drained`, `draining` (some have no other place) or `returned` for a NIC; `rebalanced` or `as-it-was`.
    moves
        Every instance that changed its place, in order.
    at_risk
        Instances that stay although somebody there is expected to miss the SLA.
    queued, rejected
        Displaced instances that have no place.
    reasons
        Where a newcomer has no place: what keeps it out, by class of NICs.
    """

    status: str
    moves: tuple[Move, ...] = ()
    at_risk: tuple[str, ...] = ()
    queued: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()


class Refused(Exception):
    """An event that makes no sense here, such as the departure of nobody; nothing was changed."""
