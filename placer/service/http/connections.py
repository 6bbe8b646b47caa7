"""Connections: a client has a limited time, and a limited number of bytes, for the head of a request.

Without that, a few thousand clients that begin a request and never end it would keep out all others.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
"""Seconds from the start of a connection, or of a further request on it, to the end of the request's headers."""

LARGEST_HEAD = 65_536
"""Bytes of a request up to the end of its headers."""


class LimitedConnection(HttpToolsProtocol):
    """A connection that is closed where the head of a request is too slow or too large."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._head_bytes = 0
        self._too_slow: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """As of asyncio's protocols."""
        super().connection_made(transport)
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """As of asyncio's protocols."""
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """As of asyncio's protocols."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._too_slow is not None and self._head_bytes > LARGEST_HEAD:
            self.transport.close()

    def on_message_begin(self) -> None:
        """As of the parser."""
        super().on_message_begin()
        if self._too_slow is None:
            self._begin_head()

    def on_headers_complete(self) -> None:
        """As of the parser."""
        self._end_head()
        super().on_headers_complete()

    def _begin_head(self) -> None:
        self._head_bytes = 0
        self._too_slow = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _end_head(self) -> None:
        if self._too_slow is not None:
            self._too_slow.cancel()
            self._too_slow = None
