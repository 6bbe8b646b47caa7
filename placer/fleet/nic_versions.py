"""Versions of NICs: the number of the last event that changed each, so that a decision on old knowledge is noticed."""

from __future__ import annotations

from collections.abc import Mapping

from placer.fleet.events import Change, Decision, DrainTogether, FleetEvent, Measure, TakenPlace
from placer.model.fleet import Fleet


class NicVersions:
    """By NIC, the number of the last event that changed its tenants, their SLAs or its service.

    `since`: the last event that is not known here: NICs that did not change afterwards are of this version. `models`:
    the last event that may have changed what models answer.
    """

    def __init__(self, since: int = 0) -> None:
        self.since = since
        self.models = since
        self._changed: dict[str, int] = {}
        self._before: dict[str, int | None] | None = None

    def load(self, versions: Mapping[str, int]) -> None:
        """Take the versions of all NICs from a state."""
        self._changed.update(versions)

    def begin(self) -> None:
        """Remember the versions from here on, until the batch is committed or taken back."""
        self._before = {}

    @property
    def touched(self) -> Mapping[str, int]:
        """NICs that changed since `begin`, with their versions of then."""
        before = self._before or {}
        return {nic_id: self.since if version is None else version for nic_id, version in before.items()}

    def take_back(self) -> None:
        """All NICs are as at `begin`."""
        for nic_id, before in (self._before or {}).items():
            if before is None:
                del self._changed[nic_id]
            else:
                self._changed[nic_id] = before
        self._before = {}

    def shift(self, by: int) -> None:
        """Events since `begin` got numbers that are this much higher, because others came first."""
        for nic_id in self._before or ():
            self._changed[nic_id] += by
        self._before = {}

    def follow(self, nic_id: str, number: int) -> None:
        """Note an event of another agent that changed a NIC."""
        self._changed[nic_id] = number

    def of(self, nic_id: str) -> int:
        """The version of a NIC; a restart forgets, so it may be newer than its last change."""
        return self._changed.get(nic_id, self.since)

    def note(self, number: int, event: FleetEvent, decision: Decision, fleet: Fleet) -> None:
        if isinstance(event, Measure):
            self.models = number
        elif (named := getattr(event, "nic", None)) is not None:
            self._note(named, number)
        for drained in event.nics if isinstance(event, DrainTogether) else ():
            self._note(drained, number)
        for move in decision.moves:
            for nic_id in (move.source, move.target):
                if nic_id is not None:
                    self._note(nic_id, number)
        if isinstance(decision, TakenPlace) and decision.found_on is not None:
            self._note(decision.found_on, number)
        if isinstance(event, Change) and (home := fleet.nic_of(event.id)) is not None:
            self._note(home.id, number)

    def _note(self, nic_id: str, number: int) -> None:
        if self._before is not None:
            self._before.setdefault(nic_id, self._changed.get(nic_id))
        self._changed[nic_id] = number
