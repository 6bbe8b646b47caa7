"""The writer of an agent that shares its fleet: it follows the others, and decides again where it was overtaken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Decision, Depart, FleetEvent, Lookup, Rebalance, RefusedForNow, Where
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import QUEUE
from placer.fleet.service.http import writer
from placer.fleet.service.http.deciding import STATUS_CHANGED, STATUS_CONFLICT, STATUS_FORBIDDEN, asked_for
from placer.fleet.service.http.metrics import Metrics
from placer.fleet.service.http.ownership import Quotas
from placer.fleet.service.http.turns import Submission
from placer.fleet.state.postgres.agreement import OPTIMISTIC_ATTEMPTS
from placer.fleet.state.postgres.batch import News
from placer.fleet.state.postgres.state import REBALANCING_TASK, SharedState
from placer.fleet.state.saved import KeptAnswer, Unreachable

FOLLOW_S = 0.1  # seconds after which an agent without requests looks what others have done


CAREFUL_BATCHES = 16  # batches that are decided on news only, after one that needed them: the next ones often do, too

REFUSED_BY_NEWS = (STATUS_CONFLICT, STATUS_CHANGED, STATUS_FORBIDDEN)  # what others have done may be why

NO_NEWS = News()

SILENT = "the database does not answer"

_Found = TypeVar("_Found")


class NeedsAll(Exception):
    """An event is about the whole fleet: nobody else may change it meanwhile."""


class NeedsNews(Exception):
    """What is to be answered has to rest on all that was committed before its request came."""


class SharedWriter(writer.Writer):
    """Decides on the events of the clients of one agent.

    A batch is first decided on what is known: if that is old, the commit fails. Only what no commit checks, as a
    rejection, is decided once more on what others have committed since.

    `engine`, `reader`, `state`, `metrics`, `most_waiting`, `quotas`: as of `Writer`.
    """

    in_turns = False  # nobody else may change the fleet meanwhile
    takes_back = True

    def __init__(
        self,
        engine: Engine,
        reader: Reader,
        state: SharedState,
        metrics: Metrics,
        most_waiting: int = writer.MOST_WAITING,
        quotas: Quotas = writer.NO_QUOTAS,
    ) -> None:
        super().__init__(engine, reader, state, metrics, most_waiting, quotas)
        self._shared = state
        self._agreement = state.agreement
        self._fresh = True
        self._careful = 0
        self._asking = ThreadPoolExecutor(1, "asking")
        state.attach(engine)
        metrics.watch(state.agreement)

    async def run(self) -> None:
        """As of `Writer`."""
        loop = asyncio.get_running_loop()
        self._shared.when_lost(partial(loop.call_soon_threadsafe, self._lose, "the database cannot be reached"))
        await super().run()

    async def with_state(self, work: Callable[[], _Found]) -> _Found:
        """As of `Writer`, beside the decisions; a database that does not answer holds up no other request.

        Raises Unreachable when it cannot be reached, or does not answer for too long.
        """
        if self.stopping:
            raise writer.Stopped
        if self.trouble is not None:
            raise Unreachable(self.trouble)
        try:
            async with asyncio.timeout(writer.PATIENCE_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._asking, work)
        except TimeoutError:
            raise Unreachable(SILENT) from None

    async def _on_disk(self, work: Callable[[], _Found]) -> _Found:
        """As of `Writer`; who waits is answered when the database has not answered for too long."""
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(writer.PATIENCE_SECONDS, *then) for then in ((self._lose, SILENT), (self._give_up,))]
        try:
            found = await super()._on_disk(work)
        finally:
            for timer in timers:
                timer.cancel()
        self._find()
        return found

    def stop(self) -> None:
        """As of `Writer`; a database that is gone is not waited for."""
        super().stop()
        self._shared.end()
        self._asking.shutdown(wait=False)

    async def _idle(self) -> None:
        self._arrived.clear()
        try:
            async with asyncio.timeout(FOLLOW_S):
                await self._arrived.wait()
        except TimeoutError:
            await self._follow()

    async def _follow(self) -> None:
        """Look what others have done."""
        await self._beat()
        news = await self._on_disk(self._agreement.fetch)
        self._agreement.follow(self.engine, news.batches)
        if news.batches:
            committed, self._committed = self._committed, asyncio.Event()
            committed.set()

    async def _decide_and_commit(self) -> None:
        keys = [key for part in self._batch for at in range(part.first, part.last) if (key := part.of.key_of(at))]
        keys += [key for part in self._batch if (key := part.of.key_of(0, other=True))]
        attempt, alone = 1, False
        await self._beat()
        self._fresh = self._careful > 0
        self._careful -= self._fresh
        while True:
            news = await self._fetch(keys, alone=alone) if self._fresh else NO_NEWS
            self._settled.clear()
            self._agreement.begin(self.engine, news, alone=alone)
            try:
                # decide on the batch; NeedsAll or NeedsNews where that is not possible so
                self.engine.selector.everywhere = alone
                try:
                    self._batch = self._decide_all(self._batch)
                finally:
                    self.engine.selector.everywhere = False
            except (NeedsAll, NeedsNews) as need:
                self._agreement.abandon(self.engine)
                alone = alone or isinstance(need, NeedsAll)
                self._careful = CAREFUL_BATCHES
            else:
                self._agreement.seal(self.engine)
                await self._commit(self._agreement.commit)
                shift = self._agreement.finish(self.engine)
                self._shared.leases.give_back(REBALANCING_TASK)
                if shift is not None:
                    self._raise_versions(shift)
                    return
                attempt += 1
                alone = alone or attempt > OPTIMISTIC_ATTEMPTS
            self._fresh = True
            self._forget_answers()

    async def _beat(self) -> None:
        """Say now and then that this agent is alive, and learn which NICs are its own."""
        if self._shared.beat_is_due:
            await self._on_disk(self._shared.beat)
            self.engine.fleet.belong_to(self._shared.pool)

    async def _fetch(self, keys: Sequence[str], *, alone: bool) -> News:
        """What others have done, as it is after all requests of the batch have come."""
        if alone:
            self.engine.selector.reach_out()
        return await self._on_disk(partial(self._agreement.fetch, keys, alone=alone))

    def _decide(self, one: Submission, line: bytes, read: FleetEvent | None, digest: bytes) -> KeptAnswer | None:
        answer = super()._decide(one, line, read, digest)
        if not self._fresh and answer is not None and answer.status in REFUSED_BY_NEWS:
            raise NeedsNews
        return answer

    def _handle(self, event: FleetEvent) -> Decision:
        optimistic, asked = not self._agreement.alone, asked_for(event)
        if optimistic and (self.engine.waiting or not isinstance(asked, Arrive | Depart | Where)):
            raise NeedsAll
        if optimistic and isinstance(asked, Arrive) and self.quotas.limit(self.engine, asked):
            raise NeedsAll  # others may place instances of the owner at the same time
        if isinstance(event, Rebalance) and not self._shared.leads(REBALANCING_TASK):
            raise RefusedForNow("another agent rebalances this fleet; retry later")
        decision = super()._handle(event)
        preempts = isinstance(event, Arrive) and len(decision.moves) > 1
        if optimistic and (preempts or (decision.status == "queued" and self.engine.when_full == QUEUE)):
            raise NeedsAll
        if not self._fresh and (isinstance(decision, Lookup) or decision.status not in ("placed", "reserved", "left")):
            raise NeedsNews
        return decision

    def _forget_answers(self) -> None:
        self._forget_counts()
        for part in self._batch:
            del part.of.answers[part.first :]

    def _raise_versions(self, by: int) -> None:
        """Others came first: events have higher numbers than was expected."""
        if not by:
            return
        for part in self._batch:
            answers = part.of.answers
            for at in range(part.first, part.last):
                if (version := answers[at].version) is not None:
                    answers[at] = replace(answers[at], version=version + by)
