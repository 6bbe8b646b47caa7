"""What clients send to the writer, and how far it has come with it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from placer.fleet.events import Move, Rebalance
from placer.fleet.protocol import Reader
from placer.fleet.state.saved import KeptAnswer


@dataclass(slots=True)
class Rebalancing:
    """A rebalancing of the whole fleet, of which a few NICs are looked at in each turn."""

    event: Rebalance
    nics: list[str]
    """Those that are still to be looked at in this pass over the fleet."""
    moves: list[Move] = field(default_factory=list)
    moves_before: int = 0
    """How many there were before this pass."""


@dataclass(slots=True)
class Submission:
    """Events that one request sends, and their answers so far.

    `done`: is set when all answers are committed. `key`: the idempotency key of the request; None without.
    `if_version`: an arrival that names its NIC is refused where that NIC is newer than this version; None for any
    version. `administers`: whether events of NICs are allowed. `reader`: reads the lines. `taken`: how many lines are
    in this batch or in earlier ones. `rebalancing`: the one that the next line asks for, where it is under way.
    """

    lines: list[bytes]
    done: asyncio.Future[None]
    reader: Reader
    key: str | None = None
    if_version: int | None = None
    administers: bool = True
    taken: int = 0
    rebalancing: Rebalancing | None = None
    answers: list[KeptAnswer] = field(default_factory=list)

    def key_of(self, number: int) -> str | None:
        return self.key if self.key is None or len(self.lines) == 1 else f"{self.key}#{number}"


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of a submission that are decided on together: from one on, and up to another."""

    of: Submission
    first: int
    last: int
