"""What clients send to the writer, how far it has come with it, and whose turn is next.

Tokens whose requests wait have turns in proportion to their weights. A turn is a line, or a NIC that a rebalancing
looks at. The next one is of the token whose turns so far, divided by its weight, are fewest. Shares are those of
deficit round robin; but turns that were given and not used, because time was up, are taken back by a subtraction.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from placer.fleet.engine import Engine
from placer.fleet.events import Move, Rebalance
from placer.fleet.protocol import Reader
from placer.fleet.service.http.tokens import EVERYBODY, AccessToken
from placer.fleet.state.saved import KeptAnswer

LEAST_LINES = 4  # lines of a long request that are decided in a turn with single events, so that it comes to its end


@dataclass(slots=True)
class Rebalancing:
    """A rebalancing of the whole fleet, of which a few NICs are looked at in each turn; of a dry run on a copy."""

    event: Rebalance
    nics: list[str]  # those that are still to be looked at in this pass over the fleet
    engine: Engine
    moves: list[Move] = field(default_factory=list)
    moves_before: int = 0  # how many there were before this pass


@dataclass(slots=True, eq=False)
class Submission:
    """Events that one request sends, and their answers so far.

    `done`: is set when all answers are committed. `key`: the idempotency key of the request; None without.
    `if_version`: an arrival that names its NIC is refused where that NIC is newer than this version; None for any
    version. `token`: who sends them. `reader`: reads the lines. `taken`: how many lines are in this batch or in earlier
    ones. `rebalancing`: the one that the next line asks for, where it is under way.
    """

    lines: list[bytes]
    done: asyncio.Future[None]
    reader: Reader
    key: str | None = None
    if_version: int | None = None
    token: AccessToken = EVERYBODY
    taken: int = 0
    rebalancing: Rebalancing | None = None
    answers: list[KeptAnswer] = field(default_factory=list)

    @property
    def is_long(self) -> bool:
        """Whether others of its client go before its rest."""
        return len(self.lines) > 1 or self.rebalancing is not None

    def key_of(self, number: int, *, other: bool = False) -> str | None:
        """The key under which the answer to a line is kept, of which each token has its own; `other`: under which it
        would be if several lines had been sent instead of one, or one instead of several."""
        if self.key is None:
            return None
        own = self.key if self.token.name is None else f"{self.token.name}\n{self.key}"
        if (len(self.lines) == 1) is other:
            return f"{own}#{number}"
        _, mark, last = self.key.rpartition("#")
        return f"{own}\n" if mark and last.isdecimal() else own  # no client can send the key of a line


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of a submission that are decided on together: from one on, and up to another."""

    of: Submission
    first: int
    last: int


@dataclass(slots=True)
class _Client:
    """What waits of one token, and the turns that it had, divided by its weight."""

    had: float = 0.0
    waiting: deque[Submission] = field(default_factory=deque)


class Turns:
    """The requests that wait, first come first within a token; the rest of a long one goes behind the others of it."""

    def __init__(self) -> None:
        self._clients: dict[AccessToken, _Client] = {}

    def __len__(self) -> int:
        return sum(len(client.waiting) for client in self._clients.values())

    def __iter__(self) -> Iterator[Submission]:
        for client in self._clients.values():
            yield from client.waiting

    def add(self, submission: Submission) -> None:
        """Let a request wait. A token that had nothing to do gains nothing by that."""
        client = self._clients.setdefault(submission.token, _Client())
        if not client.waiting:
            others = [other.had for other in self._clients.values() if other.waiting]
            latest = max(other.had for other in self._clients.values())
            client.had = max(client.had, min(others, default=latest))
        client.waiting.append(submission)

    def clear(self) -> None:
        """Let nothing wait."""
        for client in self._clients.values():
            client.waiting.clear()

    def take(self, most: int) -> list[Part]:
        """The next lines in turn, at most so many; consecutive ones of a request are one part."""
        parts: list[Part] = []
        begun: list[Submission] = []
        while most > 0 and (busy := [client for client in self._clients.values() if client.waiting]):
            client = min(busy, key=lambda client: client.had)
            submission = client.waiting[0]
            alone = len(busy) == 1
            count = min(most if alone else 1, len(submission.lines) - submission.taken)
            if alone and submission.is_long:  # there is room for those behind it
                count = min(count, max(most - len(client.waiting) + 1, LEAST_LINES))
            first = parts.pop().first if parts and parts[-1].of is submission else submission.taken
            submission.taken += count
            parts.append(Part(submission, first, submission.taken))
            self.charge(submission, count)
            most -= count
            if submission.taken == len(submission.lines):
                client.waiting.popleft()
            elif alone:
                client.waiting.rotate(-1)
            elif submission not in begun:
                begun.append(submission)
        for submission in begun:
            waiting = self._clients[submission.token].waiting
            if waiting and waiting[0] is submission:
                waiting.rotate(-1)
        return parts

    def charge(self, submission: Submission, turns: int) -> None:
        """Count so many turns of a request; fewer than none takes them back."""
        self._clients[submission.token].had += turns / submission.token.weight

    def put_back(self, parts: Sequence[Part], *, begun: bool) -> None:
        """Let the last lines that were taken wait again, in their order.

        Where the first part was begun and is of a long request, the rest of that goes behind the others of its token.
        """
        for part in reversed(parts):
            self.charge(part.of, part.first - part.last)
            part.of.taken = part.first
            waiting = self._clients[part.of.token].waiting
            if part.of in waiting:
                waiting.remove(part.of)
            if begun and part is parts[0] and part.of.is_long:
                waiting.append(part.of)
            else:
                waiting.appendleft(part.of)
