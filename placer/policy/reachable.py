"""What NICs can become: the patterns above theirs in which every tenant still gets what it requires."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placer.policy.kernels import mark_reachable
from placer.policy.pattern_table import PatternTable

REACHABLE = b"\x01"
"""The flag of a pattern that a NIC can become."""

REMEMBERED_BYTES = 8_000_000
"""Memory for flags that are remembered: most NICs have tenants and requirements that another had before."""

KEY_BYTES = 300
"""Of a pattern with requirements, about."""


class ReachablePatterns:
    """Flags of the patterns above a pattern, itself first.

    Parameters
    ----------
    table
        The patterns.
    """

    def __init__(self, table: PatternTable) -> None:
        self._table = table
        self._required = np.zeros(len(table.workloads))
        self._flags = np.zeros(len(table.counts), dtype=np.bool_)
        self._known: dict[tuple[object, ...], bytes] = {}
        self._bytes = 0

    def flags(self, pattern: int, required: dict[int, float]) -> bytes:
        """The flags where each column of the pattern requires so much throughput (kpps)."""
        key = (pattern, *required.items())
        known = self._known.get(key)
        return self._remember(key, self._marked(pattern, required)) if known is None else known

    def without(self, flags: bytes, pattern: int, blocked: Iterable[int]) -> bytes:
        """The same flags, where some patterns must not be reached."""
        above, left = self._table.above(pattern), bytearray(flags)
        for number in blocked:
            place = int(np.searchsorted(above, number))
            if place < len(above) and above[place] == number:
                left[place] = 0
        return bytes(left)

    def _marked(self, pattern: int, required: dict[int, float]) -> bytes:
        for column, kpps in required.items():
            self._required[column] = kpps
        table, above = self._table, self._table.above(pattern)
        mark_reachable(pattern, above, table.members, table.kpps, self._required, self._flags)
        return self._flags[: len(above)].tobytes()

    def _remember(self, key: tuple[object, ...], flags: bytes) -> bytes:
        self._bytes += len(flags) + KEY_BYTES
        if self._bytes > REMEMBERED_BYTES:
            self._known.clear()
            self._bytes = 0
        self._known[key] = flags
        return flags


def goes_on(flags: bytes) -> bool:
    """Whether a NIC can become anything else than it is."""
    return flags.find(REACHABLE, 1) > 0
