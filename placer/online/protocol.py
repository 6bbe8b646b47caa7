"""Events and answers as JSON lines (docs/formats.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from placer.model.fleet import Tenant
from placer.model.sla import Sla
from placer.online.events import (
    Answer,
    Arrive,
    Change,
    Depart,
    Drain,
    Event,
    Fail,
    Move,
    Rebalance,
    Refused,
    Return,
    Step,
)
from profiles import TrafficProfile, Workload

SHOWN = 20
"""Classes of NICs whose reasons are told in an answer, the largest first."""

Check = Callable[[Workload], Sequence[tuple[str, str]]]
"""Tells what keeps a workload out, as (column, message)."""

Name = Annotated[str, Field(min_length=1)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Traffic(_Line):
    flows: FiniteFloat | None = None
    packet_size: FiniteFloat | None = None
    mtbr: FiniteFloat | None = None

    def over(self, before: TrafficProfile) -> TrafficProfile:
        return TrafficProfile.from_mapping({**before.as_dict(), **self.model_dump(exclude_none=True)})


class _Demand(_Line):
    id: Name
    traffic: _Traffic | None = None
    sla_drop: Annotated[FiniteFloat, Field(ge=0, lt=1)] | None = None
    sla_min_kpps: Annotated[FiniteFloat, Field(gt=0)] | None = None

    @property
    def sla(self) -> Sla | None:
        if self.sla_drop is not None and self.sla_min_kpps is not None:
            raise Refused("two SLAs: give sla_drop or sla_min_kpps, not both")
        given = self.sla_drop is not None or self.sla_min_kpps is not None
        return Sla(self.sla_drop, self.sla_min_kpps) if given else None


class _Arrive(_Demand):
    event: Literal["arrive"]
    nf: Name


class _Change(_Demand):
    event: Literal["change"]


class _Depart(_Line):
    event: Literal["depart"]
    id: Name


class _Nic(_Line):
    event: Literal["fail", "drain", "return"]
    nic: Name


class _Rebalance(_Line):
    event: Literal["rebalance"]
    budget: Annotated[int, Field(ge=0)]
    move_cost: Annotated[FiniteFloat, Field(ge=0)] = Rebalance(0).move_cost
    risk_worth: Annotated[FiniteFloat, Field(ge=0)] = Rebalance(0).risk_worth


_Any = _Arrive | _Change | _Depart | _Nic | _Rebalance
_LINE: TypeAdapter[_Any] = TypeAdapter(Annotated[_Any, Field(discriminator="event")])
_OF_A_NIC: dict[str, type[Fail | Drain | Return]] = {"fail": Fail, "drain": Drain, "return": Return}


class Reader:
    """Reads events.

    Parameters
    ----------
    default_traffic
        What traffic that is left out means on arrival.
    check
        Refuses NFs that are not profiled and traffic outside the profiled range.
    present
        The workload of an instance that is here, for changes; None for nobody.
    """

    def __init__(
        self, default_traffic: TrafficProfile, check: Check, present: Callable[[str], Workload | None]
    ) -> None:
        self.default_traffic = default_traffic
        self.check = check
        self.present = present
        self._checked: dict[Workload, Sequence[tuple[str, str]]] = {}

    def read(self, line: str | bytes) -> Event:
        """The event of a line.

        Raises
        ------
        Refused
            When the line is no event, or its workload is unknown.
        """
        try:
            read = _LINE.validate_json(line)
        except ValidationError as error:
            wrong = error.errors()[0]
            place = ".".join(str(part) for part in wrong["loc"][1:])
            raise Refused(f"{place}: {wrong['msg']}" if place else wrong["msg"]) from error
        if isinstance(read, _Nic):
            return _OF_A_NIC[read.event](read.nic)
        if isinstance(read, _Rebalance):
            return Rebalance(read.budget, read.move_cost, read.risk_worth)
        if isinstance(read, _Depart):
            return Depart(read.id)
        if isinstance(read, _Arrive):
            if read.sla is None:
                raise Refused("no SLA: give sla_drop or sla_min_kpps")
            return Arrive(Tenant(read.id, self._workload(read.nf, self.default_traffic, read.traffic), read.sla))
        return self._change(read)

    def _change(self, read: _Change) -> Change:
        before = self.present(read.id)
        if before is None:
            raise Refused(f"'{read.id}' is not here")
        if read.traffic is None and read.sla is None:
            raise Refused("changes nothing: give traffic or an SLA")
        traffic = None if read.traffic is None else self._workload(before.nf, before.traffic, read.traffic)
        return Change(read.id, traffic, read.sla)

    def _workload(self, nf: str, before: TrafficProfile, traffic: _Traffic | None) -> Workload:
        workload = Workload(nf, traffic.over(before) if traffic else before)
        if workload not in self._checked:
            if len(self._checked) >= 100_000:
                self._checked.clear()
            self._checked[workload] = self.check(workload)
        if self._checked[workload]:
            raise Refused("; ".join(f"{column}: {message}" for column, message in self._checked[workload]))
        return workload


def answer_line(event: Event, answer: Answer) -> str:
    """The answer as one line of JSON, without its line end."""
    told: dict[str, Any] = {"ok": True, "event": _NAMES[type(event)], **_subject(event), "status": answer.status}
    if isinstance(event, Arrive):
        told["nic"] = answer.moves[0].target if answer.moves else None
    told["moves"] = [_move(move) for move in answer.moves]
    for key in _IDS:
        if getattr(answer, key):
            told[key] = list(getattr(answer, key))
    if answer.reasons:
        told["classes"] = len(answer.reasons)
        told["reasons"] = [
            {
                "nic_model": one.nic_model,
                "company": [w.nf for w in one.co_location],
                "nics": one.nics,
                "cause": one.cause,
            }
            for one in answer.reasons[:SHOWN]
        ]
    return json.dumps(told)


def _move(move: Move) -> dict[str, Any]:
    told: dict[str, Any] = {"id": move.id, "from": move.source, "to": move.target}
    if isinstance(move, Step):
        told |= {"why": move.why, "gain": round(move.gain, 6), "cost": move.cost}
    return told


def read_answer(line: str) -> Answer:
    """The answer that `answer_line` wrote, without its reasons."""
    told = json.loads(line)
    moves = tuple(Move(move["id"], move["from"], move["to"]) for move in told["moves"])
    return Answer(told["status"], moves, *(tuple(told.get(key, ())) for key in _IDS))


def refusal_line(refused: Refused) -> str:
    """What is answered to an event that makes no sense."""
    return json.dumps({"ok": False, "error": str(refused)})


def event_line(event: Event) -> str:
    """The event as one line of JSON, without its line end, with all its traffic."""
    told: dict[str, Any] = {"event": _NAMES[type(event)], **_subject(event)}
    tenant = event.tenant if isinstance(event, Arrive) else None
    workload = tenant.workload if tenant else event.workload if isinstance(event, Change) else None
    sla = tenant.sla if tenant else event.sla if isinstance(event, Change) else None
    if tenant:
        told["nf"] = tenant.workload.nf
    if workload:
        told["traffic"] = workload.traffic.as_dict()
    if sla:
        told |= {"sla_drop": sla.max_drop} if sla.max_drop is not None else {"sla_min_kpps": sla.min_kpps}
    return json.dumps(told)


_IDS = ("at_risk", "queued", "rejected")

_NAMES: dict[type, str] = {
    Arrive: "arrive", Depart: "depart", Change: "change", Fail: "fail", Drain: "drain", Return: "return",
    Rebalance: "rebalance",
}  # fmt: skip


def _subject(event: Event) -> dict[str, Any]:
    if isinstance(event, Rebalance):
        return {"budget": event.budget, "move_cost": event.move_cost, "risk_worth": event.risk_worth}
    if isinstance(event, Fail | Drain | Return):
        return {"nic": event.nic}
    return {"id": event.tenant.id if isinstance(event, Arrive) else event.id}
