"""Flows with aging, as functions that count them describe it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.nfs.references.reference import Bounds

Key = tuple[int, int, int, int, int]


@dataclass(slots=True)
class Seen:
    """A flow."""

    last_us: int
    mark: int = 0


@dataclass(slots=True)
class Flows:
    """A table in which a flow that was silent for a timeout starts again with its next packet.

    When a silent flow is removed is free: within another timeout, if bursts are frequent enough to look at all entries.
    So `aged` has bounds.
    """

    timeout_us: int
    capacity: int = 1 << 19
    """Packets of further flows are counted as untracked; which ones these are is exact while none is removed."""
    seen: dict[Key, Seen] = field(default_factory=dict)
    counted: Counter[str] = field(default_factory=Counter)
    now_us: int = 0

    def count(self, key: Key, length: int, now_us: int) -> Seen:
        """Count a packet of a flow; returns the flow."""
        self.now_us = now_us
        flow = self.seen.get(key)
        if flow is None and len(self.seen) >= self.capacity:
            self.counted["untracked"] += 1
            return Seen(now_us)
        if flow is None or now_us - flow.last_us >= self.timeout_us:
            self.counted["restarted"] += flow is not None
            self.counted["started"] += 1
            flow = self.seen[key] = Seen(now_us)
        flow.last_us = now_us
        self.counted["packets"] += 1
        self.counted["bytes"] += length
        return flow

    def counters(self) -> dict[str, int | Bounds]:
        """The counters of a function with such a table, in which all flows fit."""
        silent = [self.now_us - flow.last_us for flow in self.seen.values()]
        again = self.counted["restarted"]
        least = again + sum(pause > 2 * self.timeout_us for pause in silent)
        most = again + sum(pause >= self.timeout_us for pause in silent)
        exact = {name: self.counted[name] for name in ("packets", "bytes", "started", "untracked")}
        return {**exact, "aged": (least, most)}
