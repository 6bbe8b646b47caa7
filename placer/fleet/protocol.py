"""Reads events from lines of JSON (docs/formats/events.md)."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from pydantic import TypeAdapter, ValidationError

from placer.fleet import event_shapes
from placer.fleet.events import (
    Arrive,
    ArriveTogether,
    Change,
    Cordon,
    Depart,
    Drain,
    DrainTogether,
    DryRun,
    Expire,
    Fail,
    FleetEvent,
    Join,
    Leave,
    Refused,
    Reserve,
    Return,
    Uncordon,
    Where,
)
from placer.model.nic import Tenant
from profiles import TrafficProfile, Workload
from profiles.validation import word_fault

MAX_NAMED = 5  # ids that an error message names

Check = Callable[[Workload], Sequence[tuple[str, str]]]  # what is wrong with a workload, as (column, message)

_LINE_READER: TypeAdapter[event_shapes.AnyEvent] = TypeAdapter(event_shapes.AnyEvent)
_LOG_READER: TypeAdapter[event_shapes.LoggedEvent] = TypeAdapter(event_shapes.LoggedEvent)
_OF_A_NIC: dict[str, type[Fail | Return | Cordon | Uncordon | Leave]] = {
    "fail": Fail, "return": Return, "cordon": Cordon, "uncordon": Uncordon, "leave": Leave,
}  # fmt: skip


class Reader:
    """Reads events.

    `default_traffic`: the traffic of arrivals, as far as they name none. `check`: lists what is wrong with a workload:
    an NF that is not profiled, traffic outside the profiled range. `workload_of`: the workload of an instance in the
    fleet, for changes; None for an unknown one. `of_log`: whether the events are those of a log: only there may a plan
    have decided on an arrival, and a reservation has an end and may have come to it. `clock`: the time, s since 1970.
    """

    def __init__(
        self,
        default_traffic: TrafficProfile,
        check: Check,
        workload_of: Callable[[str], Workload | None],
        *,
        of_log: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.default_traffic = default_traffic
        self.check = check
        self.workload_of = workload_of
        self.of_log = of_log
        self.clock = clock
        self._line_reader = _LOG_READER if of_log else _LINE_READER
        self._known: dict[tuple[object, ...], Workload] = {}

    def read(self, line: str | bytes) -> FleetEvent:
        """The event of a line.

        Raises Malformed when the line is not an event. Raises Refused when the models do not know its NF or traffic, or
        it changes an instance that is not there.
        """
        try:
            read = self._line_reader.validate_json(line)
        except ValidationError as error:
            raise event_shapes.Malformed(
                "; ".join((*faults_in(error, 1), *self._faults_of_workload(line, error)))
            ) from error
        refuse_repeated_keys(line, read.keys)
        event = _READERS[type(read)](self, read)
        return DryRun(event) if getattr(read, "dry_run", False) else event

    def _change(self, read: event_shapes.ChangeEvent) -> Change:
        before = self.workload_of(read.id)
        if before is None:
            raise Refused(f"'{read.id}' is not placed or queued")
        loads, sla = read.given, read.sla
        if read.traffic is None and sla is None and not loads:
            raise event_shapes.Malformed("changes nothing: give traffic, rate_kpps, cores or an SLA")
        after = read.over(before)
        if read.traffic is None and not loads:
            return Change(read.id, None, sla)
        given = ("traffic",) if loads and read.traffic is not None else ()
        return Change(read.id, self._workload(after, read.traffic), sla, (*given, *loads))

    def _drain(self, read: event_shapes.DrainEvent) -> Drain | DrainTogether:
        if read.nic is not None and read.nics is None:
            return Drain(read.nic)
        if read.nics is None or read.nic is not None:
            raise event_shapes.Malformed("give nic, or nics for several")
        if twice := sorted({nic for nic in read.nics if read.nics.count(nic) > 1}):
            raise event_shapes.Malformed(f"nics: twice: {', '.join(map(repr, twice[:MAX_NAMED]))}")
        return DrainTogether(read.nics)

    def _arrival(self, read: event_shapes.ArriveEvent) -> Arrive:
        if not self.of_log and (
            unknown := [key for key in event_shapes.ONLY_IN_LOGS if getattr(read, key) is not None]
        ):
            raise event_shapes.Malformed(f"{unknown[0]}: unknown key")
        if read.preempt and read.nic is not None:
            raise event_shapes.Malformed("preempt: no tenant leaves a NIC that is named: leave out nic")
        tenant = self.tenant(read.id, read)
        chosen = replace(tenant, free_cores=True) if read.free_cores else tenant
        return Arrive(chosen, read.nic, read.kind, read.preempt)

    def _reservation(self, read: event_shapes.ReserveEvent) -> Reserve:
        if (read.until is not None) is not self.of_log:
            raise event_shapes.Malformed("until: is missing" if self.of_log else "until: unknown key")
        until = self.clock() + read.ttl_s if read.until is None else read.until
        tenant = replace(self.tenant(read.id, read), reserved_until=until)
        return Reserve(tenant, read.nic, ttl_s=read.ttl_s)

    def tenant(self, identity: str, wanted: event_shapes.Wanted) -> Tenant:
        """The instance that is to be placed.

        Raises Malformed when it has no SLA, or two, or no NIC carries its rate. Raises Refused when the models do not
        know its NF or traffic.
        """
        sla = wanted.sla
        if sla is None and wanted.rate_kpps is None:
            raise event_shapes.Malformed("no SLA: give sla_drop or sla_min_kpps")
        if wanted.exclusive is not None and wanted.owner not in (None, wanted.exclusive):
            raise event_shapes.Malformed(f"exclusive: is '{wanted.exclusive}', and its owner is '{wanted.owner}'")
        workload = self._wanted_workload(wanted)
        found = sla or event_shapes.sla_of(0.0, None)
        found_labels = tuple(sorted(wanted.labels.items())) if wanted.labels else ()
        return Tenant(
            identity, workload, found, constraints=wanted.constraints, priority=wanted.priority,
            owner=wanted.owner or "", labels=found_labels,
        )  # fmt: skip

    def _wanted_workload(self, wanted: event_shapes.Wanted) -> Workload:
        """The workload of an instance that is to be placed, checked."""
        key = wanted.nf, wanted.rate_kpps, wanted.cores, wanted.sla_latency_us, self._traffic_key(wanted.traffic)
        known = self._known.get(key) if wanted.sla_min_kpps is None else None
        if known is None:
            known = self._workload(wanted.over(Workload(wanted.nf, self.default_traffic)), wanted.traffic)
            self._known[key] = known
        return known

    @staticmethod
    def _traffic_key(traffic: event_shapes.Traffic | None) -> tuple[float | None, ...] | None:
        return None if traffic is None else (traffic.flows, traffic.packet_size, traffic.mtbr)

    def _group(self, read: event_shapes.GroupEvent) -> ArriveTogether:
        return ArriveTogether(read.id, tuple(self._members(read)))

    def _members(self, read: event_shapes.GroupEvent) -> Iterator[Tenant]:
        ids = Counter(arrival.id for arrival in read.arrivals)
        if twice := [identity for identity, times in ids.items() if times > 1]:
            raise event_shapes.Malformed(f"arrivals: twice in the group: {', '.join(map(repr, twice[:MAX_NAMED]))}")
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
        if given["event"] not in ("arrive", "reserve"):
            return []
        traffic = event_shapes.Traffic.model_validate(given.get("traffic") or {}).over(self.default_traffic)
        rate, cores = (given.get(key) if (key,) not in faulty else None for key in event_shapes.LOAD_KEYS[:2])
        workload = Workload(given["nf"], traffic, rate or inf, cores=cores or 0)
        return [f"{column}: {message}" for column, message in self.check(workload)]

    def _workload(self, before: Workload, traffic: event_shapes.Traffic | None) -> Workload:
        """The workload with other traffic, checked."""
        key = before, self._traffic_key(traffic)
        known = self._known.get(key)
        if known is not None:
            return known
        workload = replace(before, traffic=traffic.over(before.traffic)) if traffic else before
        if wrong := self.check(workload):
            load = any(column in event_shapes.LOAD_KEYS for column, _ in wrong)
            raise (event_shapes.Malformed if load else Refused)(
                "; ".join(f"{column}: {message}" for column, message in wrong)
            )
        if len(self._known) >= event_shapes.MAX_REMEMBERED_WORKLOADS:
            self._known.clear()
        self._known[key] = workload
        return workload


def faults_in(error: ValidationError, skipped: int = 0) -> Iterator[str]:
    """Everything that pydantic found, as `place: what is wrong`; places without so many of their first parts."""
    for wrong in error.errors():
        place = ".".join(map(str, wrong["loc"][skipped:]))
        yield f"{place}: {word_fault(wrong)}" if place else word_fault(wrong)


def refuse_repeated_keys(line: str | bytes, keys: int) -> None:
    """Raise Malformed where a key of a line is given twice. `keys`: how many were read."""
    colons = line.count(b":") if isinstance(line, bytes) else line.count(":")
    if colons > keys:  # only such a line, with colons in its values or repeated keys, is read once more
        json.loads(line, object_pairs_hook=_refuse_repeated_names)


def _refuse_repeated_names(pairs: list[tuple[str, object]]) -> None:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise event_shapes.Malformed(f"{name}: is given twice")


_READERS: dict[type, Callable[[Reader, Any], FleetEvent]] = {
    event_shapes.ArriveEvent: Reader._arrival,
    event_shapes.ReserveEvent: Reader._reservation,
    event_shapes.GroupEvent: Reader._group,
    event_shapes.ChangeEvent: Reader._change,
    event_shapes.DepartEvent: lambda reader, read: Depart(read.id),
    event_shapes.WhereEvent: lambda reader, read: Where(read.id),
    event_shapes.ExpireEvent: lambda reader, read: Expire(read.id),
    event_shapes.NicEvent: lambda reader, read: _OF_A_NIC[read.event](read.nic),
    event_shapes.DrainEvent: Reader._drain,
    event_shapes.JoinEvent: lambda reader, read: Join(read.nic, read.nic_model, read.pool or "", read.domain or ""),
    event_shapes.MeasuredEvent: lambda reader, read: read.measure,
    event_shapes.RebalanceEvent: lambda reader, read: read.rebalance,
}
"""By kind of line, what makes an event of it: asking a line of which kind it is takes 2 to 3 us per kind."""
