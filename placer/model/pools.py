"""Pools: which NICs are an agent's own, where several agents decide on one fleet.

An agent prefers its own NICs, so that two of them seldom decide on the same one. Who owns which never matters for what
is right: every commit is checked by the versions of its NICs.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pool:
    """The NICs of one agent: every so many numbers one. `rank`: of the agent among those that are alive, from 0.
    `agents`: how many are alive."""

    rank: int = 0
    agents: int = 1

    def owns(self, number: int) -> bool:
        """Whether the NIC of this number is in the pool."""
        return number % self.agents == self.rank

    def next_after(self, number: int) -> int:
        """The next number that is in the pool."""
        return number + 1 + (self.rank - number - 1) % self.agents


WHOLE_POOL = Pool()  # the pool of an agent that is alone


# A journal of a fleet: changes that can be taken back, because another agent was faster.


Undo = Callable[[], object]


class FleetJournal:
    """How to take back every change since it began, the last one first."""

    def __init__(self) -> None:
        self._undos: list[Undo] = []

    def __len__(self) -> int:
        return len(self._undos)

    def note(self, undo: Undo) -> None:
        """Remember how to take back a change that was just made."""
        self._undos.append(undo)

    def take_back(self, to: int = 0) -> None:
        """Take back every change but the first so many."""
        while len(self._undos) > to:
            self._undos.pop()()
