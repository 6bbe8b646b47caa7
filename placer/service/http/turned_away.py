"""Events that are turned away because too many wait: which, how, and when they are answered.

There may be many more of them than of others, so they are turned away before anything is done for them. The answer
waits a little: a client that comes again as soon as it is answered would otherwise take the time of those that wait.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable

from placer.service.http.answers import RETRY_AFTER
from placer.service.http.writer import Writer

EVENTS = "/v1/events"

OVERLOAD = "too many requests wait: come again"

TURNED_AWAY = json.dumps({"ok": False, "error": OVERLOAD}).encode()
"""The answer to an event while too many wait."""

TURNED_AWAY_HEADERS = (
    (b"content-type", b"application/json"),
    (b"retry-after", RETRY_AFTER.encode()),
    (b"content-length", str(len(TURNED_AWAY)).encode()),
)

HELD_SECONDS = 0.01
"""How long such an answer waits."""

ANSWER = b"HTTP/1.1 429 Too Many Requests\r\n%b\r\n%b" % (
    b"".join(b"%b: %b\r\n" % header for header in TURNED_AWAY_HEADERS),
    TURNED_AWAY,
)


class TurnedAway:
    """Decides which requests a connection turns away by itself, and answers them later.

    Parameters
    ----------
    writer
        Says whether too many wait.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._held: deque[tuple[float, Callable[[], None]]] = deque()

    def takes(self, path: str) -> bool:
        """Whether a request for this path is turned away: an event while too many wait."""
        if path != EVENTS or not self._writer.full:
            return False
        self._writer.metrics.overloaded()
        return True

    def answer_later(self, answer: Callable[[], None]) -> None:
        """Call this when the answer is due."""
        loop = asyncio.get_running_loop()
        due = loop.time() + HELD_SECONDS
        if not self._held:
            loop.call_at(due, self._refuse)
        self._held.append((due, answer))

    def _refuse(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._held and self._held[0][0] <= now:
            self._held.popleft()[1]()
        if self._held:
            loop.call_at(self._held[0][0], self._refuse)
