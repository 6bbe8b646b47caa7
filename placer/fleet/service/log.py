"""The log of the service: a line of JSON on stderr for each event, with its time (RFC 3339, UTC)."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime

LINES_PER_SECOND = 10  # lines of one kind that clients can cause at will


def log(event: str, /, **values: object) -> None:
    """Write one line. A full disk or a closed pipe does not disturb the service."""
    with suppress(OSError):
        print(
            json.dumps({"time": show_time(datetime.now(UTC).timestamp()), "log": event, **values}),
            file=sys.stderr,
            flush=True,
        )


def show_time(seconds: float) -> str:
    """A time, seconds since 1970, as of RFC 3339 in UTC."""
    at = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return f"{at}Z"


class LimitedLog:
    """Writes `LINES_PER_SECOND` lines, then counts the others of that second, and writes the count when it is over."""

    def __init__(self) -> None:
        self._second = 0.0
        self._lines = 0

    def log(self, event: str, /, **values: object) -> None:
        """Write one line, or count it."""
        now = time.monotonic()
        if now >= self._second + 1 and self._lines <= LINES_PER_SECOND:
            self._second, self._lines = now, 0
        self._lines += 1
        if self._lines <= LINES_PER_SECOND:
            log(event, **values)
        elif self._lines == LINES_PER_SECOND + 1:
            asyncio.get_running_loop().call_later(1, self._log_count, event)

    def _log_count(self, event: str) -> None:
        log("lines left out", of=event, count=self._lines - LINES_PER_SECOND)
        self._lines = 0


class JsonFormatter(logging.Formatter):
    """Writes what libraries log as `log` does."""

    def format(self, record: logging.LogRecord) -> str:
        failure = {"failure": self.formatException(record.exc_info)} if record.exc_info else {}
        line = {
            "time": show_time(record.created),
            "log": record.levelname.lower(),
            **failure,
            "message": record.getMessage(),
        }
        return json.dumps(line)
