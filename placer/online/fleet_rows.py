"""Rows of a state file that events changed: noted as events come, and written together with the next commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from placer.model.fleet import Fleet, Nic, Service, Tenant
from placer.online.events import Arrive, Change, Decision, Depart, FleetEvent
from placer.online.saved_fleet import TENANT_COLUMNS

WRITE_NIC = "INSERT INTO nics VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET service = excluded.service"
WRITE_TENANT = f"INSERT INTO tenants ({TENANT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
DELETE_TENANT = "DELETE FROM tenants WHERE id = ?"
TO_THE_QUEUE = "UPDATE tenants SET nic = NULL, place = (SELECT max(place) + 1 FROM tenants) WHERE id = ?"
CHANGE_TRAFFIC = "UPDATE tenants SET flows = ?, packet_size = ?, mtbr = ? WHERE id = ?"
CHANGE_SLA = "UPDATE tenants SET sla_drop = ?, sla_min_kpps = ? WHERE id = ?"

Row = tuple[object, ...]


class FleetRows:
    """Rows of NICs and tenants, with as few statements as there can be.

    Parameters
    ----------
    nics
        Those that are in the file.
    """

    def __init__(self, nics: Sequence[Nic]) -> None:
        self._services: dict[str, Service] = {nic.id: nic.service for nic in nics}
        self._statements: list[tuple[str, list[Row]]] = []
        self._nics: list[Row] = []
        self._gone: dict[str, None] = {}
        self._here: dict[str, Row] = {}

    def note(self, event: FleetEvent, decision: Decision, fleet: Fleet) -> None:
        """Note what an event changed."""
        self._note_nics(event, decision, fleet)
        arrived = event.tenant.id if isinstance(event, Arrive) else None
        if arrived is not None and decision.status == "queued":
            self._come(event.tenant, None)  # type: ignore[union-attr]
        for move in decision.moves:
            if move.id in decision.queued:
                self._then(TO_THE_QUEUE, (move.id,))
                continue
            if move.id != arrived:
                self._leave(move.id)
            nic = fleet.nic_of(move.id)
            if nic is not None:
                self._come(nic.tenants_by_id[move.id], nic.id)
        if isinstance(event, Change):
            self._change(event)
        if isinstance(event, Depart) and not decision.moves:
            self._leave(event.id)
        for tenant_id in decision.rejected:
            self._leave(tenant_id)

    def write(self, file: sqlite3.Connection) -> None:
        """Write all that was noted."""
        self._close()
        statements, self._statements = self._statements, []
        for statement, rows in statements:
            file.executemany(statement, rows)

    def _note_nics(self, event: FleetEvent, decision: Decision, fleet: Fleet) -> None:
        """NICs that are new, and the one that the event names: its service may have changed."""
        known = self._services
        new = [nic for move in decision.moves for nic in (move.source, move.target) if nic and nic not in known]
        named = getattr(event, "nic", None)
        for nic_id in (*new, named) if named else new:
            nic = fleet.find(nic_id)
            if nic is not None and known.get(nic_id) is not nic.service:
                known[nic_id] = nic.service
                self._nics.append((nic.id, nic.kind.index, nic.number, nic.service.value))

    def _come(self, tenant: Tenant, nic: str | None) -> None:
        sla = tenant.sla
        traffic = tenant.workload.traffic.as_tuple()
        self._here[tenant.id] = (tenant.id, nic, tenant.workload.nf, *traffic, sla.max_drop, sla.min_kpps)

    def _leave(self, tenant_id: str) -> None:
        self._here.pop(tenant_id, None)
        self._gone[tenant_id] = None

    def _change(self, event: Change) -> None:
        if event.workload is not None:
            self._then(CHANGE_TRAFFIC, (*event.workload.traffic.as_tuple(), event.id))
        if event.sla is not None:
            self._then(CHANGE_SLA, (event.sla.max_drop, event.sla.min_kpps, event.id))

    def _then(self, statement: str, row: Row) -> None:
        """A statement that rests on the rows before it."""
        self._close()
        self._statements.append((statement, [row]))

    def _close(self) -> None:
        """Who left and came back is written where it came last."""
        for statement, rows in (
            (WRITE_NIC, self._nics),
            (DELETE_TENANT, [(one,) for one in self._gone]),
            (WRITE_TENANT, [*self._here.values()]),
        ):
            if rows:
                self._statements.append((statement, rows))  # type: ignore[arg-type]
        self._nics, self._gone, self._here = [], {}, {}
