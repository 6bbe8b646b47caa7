"""Versions of NICs: the number of the last event that changed each, so that a decision on old knowledge is noticed."""

from __future__ import annotations

from placer.model.fleet import Fleet
from placer.online.events import Change, Decision, FleetEvent, Measure


class NicVersions:
    """By NIC, the number of the last event that changed its tenants, their SLAs or its service.

    Parameters
    ----------
    since
        The last event that is not known here: NICs that did not change afterwards are of this version.

    Attributes
    ----------
    models
        The last event that may have changed what models answer.
    """

    def __init__(self, since: int = 0) -> None:
        self.since = since
        self.models = since
        self._changed: dict[str, int] = {}

    def of(self, nic_id: str) -> int:
        """The version of a NIC; a restart forgets, so it may be newer than its last change."""
        return self._changed.get(nic_id, self.since)

    def note(self, number: int, event: FleetEvent, decision: Decision, fleet: Fleet) -> None:
        """Note what an event changed."""
        if isinstance(event, Measure):
            self.models = number
        named = None if isinstance(event, Measure) else getattr(event, "nic", None)
        if named is not None:
            self._changed[named] = number
        for move in decision.moves:
            for nic_id in (move.source, move.target):
                if nic_id is not None:
                    self._changed[nic_id] = number
        home = fleet.nic_of(event.id) if isinstance(event, Change) else None
        if home is not None:
            self._changed[home.id] = number
