"""Random numbers from a seed, the same as those of `nfs/core/random.h`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

WORD_MASK = (1 << 64) - 1


class SplitMix:
    """SplitMix64 (Steele, Lea and Flood, 2014)."""

    def __init__(self, seed: int) -> None:
        self._state = seed & WORD_MASK

    def next(self) -> int:
        """A number of 64 bits."""
        self._state = self._state + 0x9E3779B97F4A7C15 & WORD_MASK
        value = self._state
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & WORD_MASK
        value = (value ^ value >> 27) * 0x94D049BB133111EB & WORD_MASK
        return value ^ value >> 31

    def below(self, n: int) -> int:
        """A number from 0 to n - 1, where n has at most 32 bits."""
        return (self.next() >> 32) * n >> 32

    def one_of(self, choices: Sequence[T]) -> T:
        """One of them."""
        return choices[self.below(len(choices))]
