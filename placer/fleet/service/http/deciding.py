"""What is answered to a line: an event that is decided on and recorded, or why it is refused."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import replace

from placer.fleet import events
from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line, refusal_line
from placer.fleet.event_shapes import Malformed
from placer.fleet.protocol import Reader
from placer.fleet.rebalance import emptied_first
from placer.fleet.service.http.ownership import Quotas, foreign_fault
from placer.fleet.service.http.turns import Rebalancing, Submission, Turns
from placer.fleet.state.saved import KeptAnswer, SavedState

NICS_PER_TURN = 16  # NICs that a rebalancing looks at before others have a turn

STATUS_DONE, STATUS_FORBIDDEN, STATUS_CONFLICT, STATUS_CHANGED, STATUS_MALFORMED, STATUS_FAILED = (
    200,
    403,
    409,
    412,
    422,
    503,
)

OF_ADMINISTRATORS = (
    events.Fail,
    events.Drain,
    events.DrainTogether,
    events.Return,
    events.Cordon,
    events.Uncordon,
    events.Join,
    events.Leave,
    events.Rebalance,
)
"""Events that change NICs; the others are of tenants."""


def asked_for(event: events.FleetEvent) -> events.FleetEvent:
    """The event; of a dry run the one that it is of."""
    return event.event if isinstance(event, events.DryRun) else event


def _asks_dry_run(line: bytes) -> bool:
    """Whether a line that could not be read as an event asks for a dry run of it."""
    if b'"dry_run"' in line:
        with suppress(ValueError, RecursionError):
            given = json.loads(line)
            return isinstance(given, dict) and given.get("dry_run") is True
    return False


def nics_to_empty(engine: Engine) -> list[str]:
    return [nic.id for nic in sorted(engine.fleet.nics.values(), key=emptied_first)]


class Decider:
    """Decides on lines, one after the other.

    `engine`, `reader`, `state`: as for `placer online`; nobody else uses them to change anything. `quotas`: what owners
    may have.
    """

    def __init__(self, engine: Engine, reader: Reader, state: SavedState, quotas: Quotas) -> None:
        self.engine = engine
        self.reader = reader
        self.state = state
        self.quotas = quotas
        self._answers = state.answers
        self._waiting = Turns()
        self._counted: list[tuple[events.FleetEvent, events.Decision]] = []
        self._refused: list[int] = []
        self._dry = False

    in_turns = True  # whether a rebalancing takes turns with other events

    def _read(self, submission: Submission, line: bytes) -> events.FleetEvent | None:
        """The event of a line; None for one that is read when the events before it were decided on."""
        try:
            event = submission.reader.read(line)
        except events.Refused:
            return None
        return None if isinstance(asked_for(event), events.Change) else event

    def _answer(
        self, submission: Submission, line: bytes, read: events.FleetEvent | None, key: str | None
    ) -> KeptAnswer | None:
        """The answer to a line; None where more turns are needed for it."""
        if key is None:
            return self._decide(submission, line, read, b"")
        version = submission.if_version
        digest = hashlib.sha256(line if version is None else b"%s %d" % (line, version)).digest()
        known = self._answers.find(key)
        if known is None and self._answers.find(submission.key_of(0, other=True) or "") is None:
            answer = self._decide(submission, line, read, digest)
            if answer is not None and answer.status not in (STATUS_FORBIDDEN, STATUS_FAILED) and not self._dry:
                self._answers.keep(key, answer)
            return answer
        if known is not None and known.digest == digest:
            return known
        return self._refuse(digest, STATUS_MALFORMED, f"the key {submission.key!r} was used for another request")

    def _decide(
        self, submission: Submission, line: bytes, read: events.FleetEvent | None, digest: bytes
    ) -> KeptAnswer | None:
        self._dry = False
        try:
            event = read or submission.reader.read(line)
            self._dry, asked = isinstance(event, events.DryRun), asked_for(event)
            if not submission.token.administers and isinstance(asked, OF_ADMINISTRATORS):
                return self._refuse(digest, STATUS_FORBIDDEN, "the token does not allow events of NICs")
            if foreign := foreign_fault(self.engine, submission.token, asked):
                return self._refuse(digest, STATUS_FORBIDDEN, foreign)
            if submission.if_version is not None:
                if not isinstance(asked, events.Arrive) or asked.nic is None:
                    return self._refuse(digest, STATUS_MALFORMED, "If-Version: is for an arrival that names its NIC")
                if self.engine.versions.of(asked.nic) > submission.if_version:
                    return self._refuse(digest, STATUS_CHANGED, "the NIC has changed since that version: ask again")
            if over := self.quotas.fault(self.engine, asked):
                return self._refuse(digest, STATUS_CONFLICT, over, cause="quota")
            if isinstance(asked, events.Rebalance) and asked.nics is None and self.in_turns:
                return self._rebalance(submission, asked, digest)
            decision = self._handle(event)
        except events.Refused as refused:
            self._dry = self._dry or _asks_dry_run(line)
            status = STATUS_MALFORMED if isinstance(refused, Malformed) else STATUS_CONFLICT
            status = STATUS_FAILED if isinstance(refused, events.RefusedForNow) else status
            self._refused.append(status)
            return KeptAnswer(digest, status, refusal_line(refused))
        answer = decision_line(event, decision)
        if not isinstance(decision, events.Lookup):
            self.state.record(event, decision, self.engine.fleet, answer, submission.token.name)
        if not self._dry:
            self._counted.append((event, decision))
        return KeptAnswer(digest, STATUS_DONE, answer, self.engine.events)

    def _rebalance(self, submission: Submission, event: events.Rebalance, digest: bytes) -> KeptAnswer | None:
        """Look at the next NICs; the answer when a whole pass over the fleet has found nothing more, else None."""
        if submission.rebalancing is None:
            engine = self.engine.copy() if self._dry else self.engine
            submission.rebalancing = Rebalancing(event, nics_to_empty(engine), engine)
        found = submission.rebalancing
        some, found.nics = tuple(found.nics[:NICS_PER_TURN]), found.nics[NICS_PER_TURN:]
        part = replace(event, budget=event.budget - len(found.moves), nics=some)
        self._waiting.charge(submission, len(some))
        decision = found.engine.try_rebalance(part)
        if decision is not None and not self._dry:
            line = decision_line(part, decision)
            self.state.record(part, decision, self.engine.fleet, line, submission.token.name)
            self._counted.append((part, decision))
        found.moves += () if decision is None else decision.moves
        if not found.nics and found.moves_before < len(found.moves) < event.budget:
            found.nics, found.moves_before = nics_to_empty(found.engine), len(found.moves)
        if found.nics and len(found.moves) < event.budget:
            return None
        submission.rebalancing = None
        whole = events.Decision("rebalanced" if found.moves else "as-it-was", tuple(found.moves))
        return KeptAnswer(digest, STATUS_DONE, decision_line(event, whole), self.engine.events)

    def _refuse(self, digest: bytes, status: int, message: str, **more: str) -> KeptAnswer:
        """The answer to an event that is not even decided on."""
        self._refused.append(status)
        return KeptAnswer(digest, status, json.dumps({"ok": False, "error": message, **more}))

    def _handle(self, event: events.FleetEvent) -> events.Decision:
        return self.engine.handle(event)
