"""The writer: the one place that decides on events and writes them, however many clients send them.

Events that wait are decided on one after the other and committed together. While the disk writes, the next ones
gather. An answer, and whatever was read of the fleet, leaves only when all that it rests on is committed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
import traceback
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from placer.online.engine import Engine
from placer.online.events import Arrive, Drain, Fail, FleetEvent, Join, Lookup, Rebalance, Refused, Return
from placer.online.kept_answers import KeptAnswer
from placer.online.protocol import Malformed, Reader, decision_line, refusal_line
from placer.online.store import State
from placer.service.http.metrics import Metrics

TOGETHER = 128
"""Most events that are committed together: what a commit takes is shared, and nobody waits long for one."""

MOST_WAITING = 128
"""Requests that wait; beyond, the client is asked to come again later."""

DONE, FORBIDDEN, CONFLICT, CHANGED, MALFORMED, FAILED = 200, 403, 409, 412, 422, 503

OF_ADMINISTRATORS = (Fail, Drain, Return, Join, Rebalance)
"""Events that change NICs; the others are of tenants."""


class Overloaded(Exception):
    """More requests wait than are taken."""


class Stopped(Exception):
    """The service is stopping, and decides nothing more."""


@dataclass(slots=True)
class Submission:
    """Events that one request sends, and their answers so far.

    Parameters
    ----------
    lines
        An event each.
    done
        Is set when all answers are committed.
    key
        The idempotency key of the request; None without.
    if_version
        An arrival that names its NIC is refused where that NIC is newer than this version; None for any version.
    administers
        Whether events of NICs are allowed.
    """

    lines: list[bytes]
    done: asyncio.Future[None]
    key: str | None = None
    if_version: int | None = None
    administers: bool = True
    answers: list[KeptAnswer] = field(default_factory=list)
    begun: float = field(default_factory=time.perf_counter)

    @property
    def complete(self) -> bool:
        """Whether every line has its answer."""
        return len(self.answers) == len(self.lines)

    def key_of(self, number: int) -> str | None:
        """The key of one line."""
        return self.key if self.key is None or len(self.lines) == 1 else f"{self.key}#{number}"


class Writer:
    """Decides on the events of all clients.

    Parameters
    ----------
    engine, reader, state
        As for `placer online`; nobody else uses them to change anything.
    metrics
        Counts what is decided.
    most_waiting
        Requests that wait, before `Overloaded`.
    """

    def __init__(
        self, engine: Engine, reader: Reader, state: State, metrics: Metrics, most_waiting: int = MOST_WAITING
    ) -> None:
        self.engine = engine
        self.reader = reader
        self.state = state
        self.metrics = metrics
        self.failure: BaseException | None = None
        self._most_waiting = most_waiting
        self._answers = state.answers
        self._waiting: deque[Submission] = deque()
        self._decided: list[Submission] = []
        self._arrived = asyncio.Event()
        self._committed = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._stopping = False
        self._disk = ThreadPoolExecutor(1, "disk")

    @property
    def version(self) -> int:
        """The number of the last event."""
        return self.engine.events

    @property
    def stopping(self) -> bool:
        """Whether nothing more is decided."""
        return self._stopping

    @property
    def full(self) -> bool:
        """Whether a request would be turned away."""
        return len(self._waiting) >= self._most_waiting

    async def submit(
        self,
        lines: list[bytes],
        key: str | None = None,
        if_version: int | None = None,
        *,
        administers: bool = True,
    ) -> list[KeptAnswer]:
        """The answers to these events, in order, once all are committed.

        Raises
        ------
        Overloaded
            When too many wait; nothing was decided.
        Stopped
            When the service ends; what was committed is in the state.
        """
        if self._stopping:
            raise Stopped
        if self.full:
            raise Overloaded
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        one = Submission(lines, done, key, if_version, administers)
        self._waiting.append(one)
        self._arrived.set()
        await done
        return one.answers

    async def settled(self) -> None:
        """Wait until all that was decided is committed, so that what is read now is never taken back."""
        while not self._settled.is_set():
            await self._settled.wait()
        if self.failure is not None:
            raise Stopped

    async def changed(self, seconds: float) -> None:
        """Wait for the next commit, or so long, or for the end of the service."""
        try:
            async with asyncio.timeout(seconds):
                await self._committed.wait()
        except TimeoutError:
            return

    def stop(self) -> None:
        """Decide what waits, and nothing more."""
        self._stopping = True
        self._arrived.set()
        self._committed.set()

    async def run(self) -> None:
        """Decide and commit until `stop`."""
        loop = asyncio.get_running_loop()
        try:
            while self._waiting or not self._stopping:
                if not self._waiting:
                    self._arrived.clear()
                    await self._arrived.wait()
                    continue
                self._settled.clear()
                self._decide_some()
                begun = time.perf_counter()
                await loop.run_in_executor(self._disk, self.state.commit)
                self.metrics.committed(time.perf_counter() - begun)
                self._settle()
        except BaseException as failure:
            self._fail(failure)
            raise
        finally:
            self._disk.shutdown(wait=False)

    def _settle(self) -> None:
        self._settled.set()
        finished, self._decided = self._decided, []
        committed, self._committed = self._committed, asyncio.Event()
        committed.set()
        for one in finished:
            if not one.done.done():  # the client may have left
                one.done.set_result(None)

    def _fail(self, failure: BaseException) -> None:
        """What is in memory is ahead of the disk: answer nobody, and end."""
        shown = traceback.format_exception(failure)
        print(json.dumps({"log": "failure", "error": repr(failure), "trace": shown}), file=sys.stderr, flush=True)
        self.failure, self._stopping = failure, True
        self._settled.set()
        self._committed.set()
        for one in (*self._decided, *self._waiting):
            if not one.done.done():
                one.done.set_exception(Stopped())
        self._waiting.clear()

    def _decide_some(self) -> None:
        """Decide on at most `TOGETHER` events; submissions that are complete leave the queue."""
        budget = TOGETHER
        while self._waiting and budget > 0:
            one = self._waiting[0]
            while not one.complete and budget > 0:
                number = len(one.answers)
                one.answers.append(self._answer(one, one.lines[number], one.key_of(number)))
                budget -= 1
            if one.complete:
                self._decided.append(self._waiting.popleft())
                self.metrics.answered(time.perf_counter() - one.begun)

    def _answer(self, one: Submission, line: bytes, key: str | None) -> KeptAnswer:
        if key is None:
            return self._decide(one, line, b"")
        digest = hashlib.sha256(line).digest()
        known = self._answers.find(key)
        if known is None:
            answer = self._decide(one, line, digest)
            if answer.status != FORBIDDEN:
                self._answers.keep(key, answer)
            return answer
        if known.digest == digest:
            return known
        return KeptAnswer(digest, MALFORMED, _error(f"the key {key!r} was used for another request"))

    def _decide(self, one: Submission, line: bytes, digest: bytes) -> KeptAnswer:
        try:
            event = self.reader.read(line)
            if not one.administers and isinstance(event, OF_ADMINISTRATORS):
                return KeptAnswer(digest, FORBIDDEN, _error("the token does not allow events of NICs"))
            if self._is_outdated(event, one.if_version):
                return KeptAnswer(digest, CHANGED, _error("the NIC has changed since that version: ask again"))
            decision = self.engine.handle(event)
        except Refused as refused:
            status = MALFORMED if isinstance(refused, Malformed) else CONFLICT
            self.metrics.refused(status)
            return KeptAnswer(digest, status, refusal_line(refused))
        answer = decision_line(event, decision)
        if not isinstance(decision, Lookup):
            self.state.record(event, decision, self.engine.fleet, answer)
        self.metrics.decided(event, decision)
        return KeptAnswer(digest, DONE, f'{answer[:-1]}, "version": {self.engine.events}}}')

    def _is_outdated(self, event: FleetEvent, if_version: int | None) -> bool:
        if if_version is None or not isinstance(event, Arrive) or event.nic is None:
            return False
        return self.engine.versions.of(event.nic) > if_version


def _error(message: str) -> str:
    return json.dumps({"ok": False, "error": message})
