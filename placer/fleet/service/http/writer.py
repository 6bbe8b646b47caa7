"""The writer: the one place that decides on events and writes them, however many clients send them.

Events that wait are decided on one after the other and committed together. While the disk writes, the next ones
gather. An answer, and whatever was read of the fleet, leaves only when all that it rests on is committed.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from placer.fleet.engine import Engine
from placer.fleet.events import FleetEvent
from placer.fleet.protocol import Reader
from placer.fleet.service.http.deciding import Decider
from placer.fleet.service.http.metrics import Metrics
from placer.fleet.service.http.ownership import Quotas
from placer.fleet.service.http.tokens import EVERYBODY, AccessToken
from placer.fleet.service.http.turns import LEAST_LINES, Part, Submission
from placer.fleet.service.log import log
from placer.fleet.state.saved import KeptAnswer, SavedState, Unreachable, Unwritable
from placer.fleet.what_if import Steps

MAX_EVENTS_PER_COMMIT = 64
"""Most events that are decided on together: what a commit takes is shared, and nobody waits long for one."""

LONGEST_RUN = 16  # times as many events of one long request that are committed together, as long as nobody else waits

READ_AT_ONCE = 8  # lines that are read before the first of them is decided on

LONGEST_TURN_S = 0.01
"""Seconds after which no further event is decided before those that were are committed, and others have had a turn."""

SHARED_TURN_S = 0.002
"""Seconds of a turn that long requests have where single events wait for the same commit; `LEAST_LINES` are decided."""

MOST_QUESTIONS, LONGEST_QUESTION_S = 64, 10.0
"""Questions that are answered in turns, further ones are refused; and the seconds that one may take."""

MOST_WAITING = 128  # requests in the queue; further ones are refused, to be retried later
RETRY_SECONDS = 1.0  # how long after a failure the state is written again
PATIENCE_SECONDS = 2.0  # how long a request waits for a state that cannot be written or reached

MAINTAINED_EVERY_S, PAUSE_S = 1.0, 0.05
"""How often the state is looked after while nothing else is done, and how soon again where there is more to do."""

NO_QUOTAS = Quotas({})

UNKNOWN = "it is not known whether it was decided: send it again with the same Idempotency-Key"

_Found = TypeVar("_Found")


class Overloaded(Exception):
    """More requests wait than are taken."""


class Stopped(Exception):
    """The service is stopping, and decides nothing more."""


class Writer(Decider):
    """Decides on the events of all clients.

    `engine`, `reader`, `state`: as for `placer online`; nobody else uses them to change anything. `most_waiting`:
    requests that wait, before `Overloaded`. `quotas`: as of `Decider`. `trouble`: why the state cannot be written or
    reached for now; None while it can.
    """

    takes_back = False  # whether what was decided may be taken back before it is committed

    def __init__(
        self,
        engine: Engine,
        reader: Reader,
        state: SavedState,
        metrics: Metrics,
        most_waiting: int = MOST_WAITING,
        quotas: Quotas = NO_QUOTAS,
    ) -> None:
        super().__init__(engine, reader, state, quotas)
        self.metrics = metrics
        self.failure: BaseException | None = None
        self.trouble: str | None = None
        self._since = self._maintained = 0.0
        self._most_waiting = most_waiting
        self._most_decided = MAX_EVENTS_PER_COMMIT
        metrics.watch_queue(self._waiting)
        self._batch: list[Part] = []
        self._arrived = asyncio.Event()
        self._committed = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._reading = 0
        self._questions = 0
        self._turn = asyncio.Lock()
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
        token: AccessToken = EVERYBODY,
        reader: Reader | None = None,
    ) -> list[KeptAnswer]:
        """The answers to these events of a token, in order, once all are committed; `reader` reads them, if given.

        Raises Overloaded when too many wait; nothing was decided. Raises Stopped when the service ends; what was
        committed is in the state. Raises Unreachable when the state cannot be written or reached for now; unless its
        message says otherwise, nothing was decided.
        """
        if self._stopping:
            raise Stopped
        if self.trouble is not None:
            raise Unreachable(self.trouble)
        if self.full:
            self.metrics.count_overload()
            raise Overloaded
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        submission = Submission(lines, done, reader or self.reader, key, if_version, token)
        self._waiting.add(submission)
        self._arrived.set()
        await done
        return submission.answers

    @property
    def age_s(self) -> int | None:
        """Seconds since the state was written or reached last; None while it can be."""
        return None if self.trouble is None else int(time.monotonic() - self._since)

    async def settle(self) -> None:
        """Wait until all that was decided is committed, so that what is read now is never taken back.

        While the state cannot be written or reached, what is read may have up to one batch that is not committed.
        """
        self._reading += 1
        try:
            while not self._settled.is_set():
                await self._settled.wait()
        finally:
            self._reading -= 1
        if self.failure is not None:
            raise Stopped

    async def work_through(self, steps: Steps[_Found]) -> _Found:
        """The answer to a question, whose steps take turns with decisions and with those of other questions.

        Steps are taken while the disk writes, too; the answer waits until all that it rests on is committed.

        Raises Overloaded when too many questions are asked, or this one takes too long. Raises Stopped when the service
        ends.
        """
        if self._questions >= MOST_QUESTIONS:
            self.metrics.count_overload()
            raise Overloaded
        self._questions += 1
        until = time.monotonic() + LONGEST_QUESTION_S
        try:
            while time.monotonic() < until:
                async with self._turn:
                    if self.takes_back:
                        await self.settle()
                    if self.failure is not None:
                        raise Stopped
                    try:
                        next(steps)
                    except StopIteration as end:
                        found: _Found = end.value
                        break
                    await asyncio.sleep(0)
            else:
                raise Overloaded
            await self.settle()
            return found
        finally:
            self._questions -= 1
            steps.close()

    async def wait_for_change(self, seconds: float) -> None:
        """Wait for the next commit, or so long, or for the end of the service."""
        try:
            async with asyncio.timeout(seconds):
                await self._committed.wait()
        except TimeoutError:
            return

    async def with_state(self, work: Callable[[], _Found]) -> _Found:
        """What `work` returns, which reads the state, or writes a row of its own there."""
        return work() if self.trouble is None else await self._on_disk(work)  # between two attempts to write

    def stop(self) -> None:
        """Decide what waits, and nothing more."""
        self._stopping = True
        self._arrived.set()
        self._committed.set()

    async def run(self) -> None:
        """Decide and commit until `stop`."""
        try:
            while self._waiting or not self._stopping:
                if not self._waiting:
                    await self._idle()
                    continue
                self._batch = self._waiting.take(self._most_decided)
                await self._decide_and_commit()
                self._settle()
                await asyncio.sleep(0)  # answers leave, and who waits for `settle` reads, before the next batch
                if time.monotonic() > self._maintained + MAINTAINED_EVERY_S:
                    await self._maintain()
        except BaseException as failure:
            self._fail(failure)
            raise
        finally:
            self._disk.shutdown(wait=False)

    async def _idle(self) -> None:
        """Wait for a submission; meanwhile look after the state."""
        more = await self._maintain() if time.monotonic() > self._maintained + MAINTAINED_EVERY_S else False
        while not self._waiting and not self._stopping:
            self._arrived.clear()
            try:
                async with asyncio.timeout(PAUSE_S if more else MAINTAINED_EVERY_S):
                    await self._arrived.wait()
            except TimeoutError:
                more = await self._maintain()

    async def _maintain(self) -> bool:
        """Look after the state, while nobody else uses it; returns whether there is more to do."""
        self._settled.clear()
        more = await self._written(self.state.maintain)
        self._settled.set()
        self._maintained = time.monotonic()
        return more

    async def _decide_and_commit(self) -> None:
        self._settled.clear()
        self._batch = self._decide_all(self._batch)
        for _ in range(1, LONGEST_RUN):
            if not self._only_a_rest_waits:
                break
            await asyncio.sleep(0)  # who comes now is not kept waiting
            if not self._only_a_rest_waits:
                break
            self._batch += self._decide_all(self._waiting.take(self._most_decided))
        self.state.write()  # here: in the other thread, each row would wait until this one pauses
        await self._commit(self.state.commit)

    @property
    def _only_a_rest_waits(self) -> bool:
        """Whether nobody waits, for a decision or for its commit, but a long request for its rest."""
        if self._reading or len(self._waiting) != 1:
            return False
        (rest,) = self._waiting
        return rest.taken > 0 and all(part.of is rest for part in self._batch)

    async def _commit(self, commit: Callable[[], None]) -> None:
        begun = time.perf_counter()
        await self._written(commit)
        self.metrics.count_commit(time.perf_counter() - begun)

    async def _written(self, work: Callable[[], _Found]) -> _Found:
        """What `work` returns, which writes the state; it is called again until that is possible."""
        giving_up = None
        try:
            while True:
                try:
                    found = await self._on_disk(work)
                    break
                except Unwritable as failure:
                    if self._stopping:
                        raise
                    self._lose(str(failure))
                    giving_up = giving_up or asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._give_up)
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            if giving_up is not None:
                giving_up.cancel()
        self._find()
        return found

    def _lose(self, trouble: str) -> None:
        """The state cannot be written or reached: take no events, and let the others read what is in memory."""
        if self.trouble is None:
            log("the state is away", trouble=trouble)
            self.metrics.count_outage()
            self._since = time.monotonic()
        self.trouble = trouble
        self._settled.set()

    def _find(self) -> None:
        """The state can be written and reached."""
        if self.trouble is not None:
            log("the state is back", after_s=self.age_s)
        self.trouble = None

    def _give_up(self) -> None:
        """Answer those who have waited long enough; what was decided is committed later all the same."""
        begun = [part.of for part in self._batch]
        for request in (*begun, *self._waiting):
            if not request.done.done():
                unknown = f"{self.trouble}; {UNKNOWN}" if request.taken else self.trouble
                request.done.set_exception(Unreachable(unknown))
        self._waiting.clear()

    async def _on_disk(self, work: Callable[[], _Found]) -> _Found:
        """What `work` returns, which waits for the disk or the database."""
        return await asyncio.get_running_loop().run_in_executor(self._disk, work)

    def _settle(self) -> None:
        self._count()
        self._settled.set()
        finished, self._batch = self._batch, []
        committed, self._committed = self._committed, asyncio.Event()
        committed.set()
        for part in finished:
            submission = part.of
            if part.last == len(submission.lines) and not submission.done.done():  # the client may have left
                submission.done.set_result(None)

    def _count(self) -> None:
        """Count what was decided, now that it is committed."""
        for event, decision in self._counted:
            self.metrics.count_decision(event, decision)
        for status in self._refused:
            self.metrics.count_refusal(status)
        self._forget_counts()

    def _forget_counts(self) -> None:
        self._counted, self._refused = [], []

    def _fail(self, failure: BaseException) -> None:
        """What is in memory is ahead of the disk: answer nobody, and end."""
        shown = traceback.format_exception(failure)
        log("failure", error=repr(failure), trace=shown)
        self.failure, self._stopping = failure, True
        self._settled.set()
        self._committed.set()
        for request in (*(part.of for part in self._batch), *self._waiting):
            if not request.done.done():
                request.done.set_exception(Stopped())
        self._waiting.clear()

    def _read_ahead(self, parts: Sequence[Part]) -> Iterator[FleetEvent | None]:
        """The event of each line, of which a few are read at once: the same work many times over is faster than in
        turn. Those behind the end of a turn are read again in another."""
        lines = ((part.of, line) for part in parts for line in part.of.lines[part.first : part.last])
        while some := [*islice(lines, READ_AT_ONCE)]:
            yield from [self._read(submission, line) for submission, line in some]

    def _decide_all(self, parts: Sequence[Part]) -> list[Part]:
        """Decide on them for as long as a turn lasts; returns those that were decided on, the others wait again.

        Single events go first, and a long request has only a short time of a turn in which they wait for the commit.
        The next turn takes hardly more than this one had time for.
        """
        parts = sorted(parts, key=lambda part: part.of.is_long)
        events = self._read_ahead(parts)
        until, decided = time.perf_counter() + LONGEST_TURN_S, list[Part]()
        limit, least = until, 1  # lines that are decided on whatever the time is
        for at, part in enumerate(parts):
            submission, number, begun = part.of, part.first, False
            if at and submission.is_long and not parts[at - 1].of.is_long:
                limit, least = min(until, time.perf_counter() + SHARED_TURN_S), LEAST_LINES
            while number < part.last and (time.perf_counter() < limit or least > 0):
                least, begun = least - 1, True
                given = self._answer(submission, submission.lines[number], next(events), submission.key_of(number))
                if given is None:
                    break
                submission.answers.append(given)
                number += 1
            decided.append(Part(submission, part.first, number))
            if number < part.last:
                self._waiting.put_back([Part(submission, number, part.last), *parts[at + 1 :]], begun=begun)
                if time.perf_counter() >= until:
                    count = sum(done.last - done.first for done in decided)
                    self._most_decided = min(max(count + count // 4, READ_AT_ONCE), MAX_EVENTS_PER_COMMIT)
                return decided
        if time.perf_counter() < until:
            self._most_decided = min(2 * self._most_decided, MAX_EVENTS_PER_COMMIT)
        return decided
