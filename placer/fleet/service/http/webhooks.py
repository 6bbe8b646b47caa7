"""Webhooks: every event of the log is posted to an address, signed, in order and at least once.

The body is lines as of `GET /v1/log`. The header `Placer-Signature: t=SECONDS,v1=HEX` holds the time of sending and
HMAC-SHA256 of `SECONDS.BODY` with the shared secret. A batch is sent again until it is answered with 2xx; a receiver
knows what it has seen by the numbers of the events. How far an address has come is kept in the state.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from placer.fleet.service.http.routes import log_line
from placer.fleet.service.http.writer import Stopped, Writer
from placer.fleet.service.log import log
from placer.fleet.state.saved import LoggedRow, Unreachable
from placer.fleet.state.saved_learning import WEBHOOK_PREFIX
from profiles import InputError

MAX_EVENTS_PER_REQUEST = 100
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0  # seconds before a batch is sent again; doubled each time
REQUEST_SECONDS = 10.0  # seconds that a receiver may take for a request, in all

LAG_STEP_S = 1.0
"""Seconds between two looks at how many events there are, from which it is known since when some are missing."""

SHORTEST_SECRET = 16  # bytes of a secret, at least

LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")


class Webhook:
    """Posts the log to one address."""

    def __init__(
        self, address: str, secret: bytes, writer: Writer, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.address = address
        self._secret = secret
        self._writer = writer
        self._client = httpx.AsyncClient(
            timeout=REQUEST_SECONDS, follow_redirects=False, trust_env=False, transport=transport
        )
        self._name = row_of(address)
        self._confirmed: int | None = None
        self._lost_until = 0  # the last event that was counted as lost
        self._complete_at = time.monotonic()
        self._seen: deque[tuple[int, float]] = deque()
        writer.metrics.watch_webhook(self.lag)

    @property
    def sent(self) -> int:
        """The number of the last event that the receiver has acknowledged."""
        return int(self._writer.state.find_note(self._name) or 0)

    def lag(self) -> tuple[int, float]:
        """How far the receiver is behind: events, and seconds since it had all; 0 where another agent sends."""
        events = 0 if self._confirmed is None else max(self._writer.version - self._confirmed, 0)
        return events, time.monotonic() - self._complete_at if events else 0.0

    async def run(self) -> None:
        """Send until cancelled."""
        pause = FIRST_PAUSE_S
        try:
            while not self._writer.stopping:
                await self._writer.settle()
                if not self._seen or time.monotonic() - self._seen[-1][1] >= LAG_STEP_S:
                    self._seen.append((self._writer.version, time.monotonic()))
                rows = None if self._writer.trouble else await self._find_rows()
                if rows is None:
                    self._confirmed = None
                    await asyncio.sleep(pause)
                elif not rows:
                    await self._writer.wait_for_change(LONGEST_PAUSE_S)
                    self._seen.clear()
                    self._complete_at = time.monotonic()
                elif await self._post("".join(f"{log_line(*row)}\n" for row in rows).encode()):
                    await self._keep(rows[-1][0])
                    pause = FIRST_PAUSE_S
                else:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE_S)
        except Stopped:
            return
        finally:
            await self._client.aclose()

    async def _find_rows(self) -> list[LoggedRow] | None:
        """Events to be sent; None where another agent sends them, or the state cannot be reached.

        Counts events that the log no longer has.
        """
        try:
            sent, rows = await self._writer.with_state(self._due)
        except Unreachable:
            return None
        if rows and (lost := rows[0][0] - 1 - max(sent, self._lost_until)) > 0:
            log("events were not kept until a webhook had them", address=self.address, events=lost)
            self._writer.metrics.count_lost(lost)
            self._lost_until = rows[0][0] - 1
        return rows

    def _due(self) -> tuple[int, list[LoggedRow] | None]:
        """The number of the last event that was sent, and those that follow; None where another agent sends them."""
        if not self._writer.state.leads(self._name):
            return 0, None
        self._confirmed = self.sent
        return self._confirmed, self._writer.state.log_after(self._confirmed, MAX_EVENTS_PER_REQUEST)

    async def _post(self, body: bytes) -> bool:
        headers = {
            "Content-Type": "application/x-ndjson",
            "Placer-Signature": signature(self._secret, body, time.time()),
        }
        try:
            async with (
                asyncio.timeout(REQUEST_SECONDS),
                self._client.stream("POST", self.address, content=body, headers=headers) as answer,
            ):
                if not answer.is_success:  # what it says besides is not read
                    log("a webhook was refused", address=self.address, status=answer.status_code)
                return answer.is_success
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            log("a webhook was not delivered", address=self.address, error=repr(error))
            return False

    async def _keep(self, number: int) -> None:
        await self._writer.settle()
        if self._writer.trouble is not None:  # they are sent again
            return
        await self._writer.with_state(partial(self._note, number))
        self._confirmed = number
        while self._seen and self._seen[0][0] <= number:
            self._complete_at = self._seen.popleft()[1]

    def _note(self, number: int) -> None:
        try:
            self._writer.state.note(self._name, number, self._name)
            self._writer.state.commit()
        except Unreachable:
            return  # they are sent again


def row_of(address: str) -> str:
    """The row of what is learnt that says how far the webhook of an address has come."""
    return f"{WEBHOOK_PREFIX}{address}"


def signature(secret: bytes, body: bytes, seconds: float) -> str:
    """The header of a body that is sent at this time."""
    at = str(int(seconds))
    return f"t={at},v1={hmac.new(secret, at.encode() + b'.' + body, hashlib.sha256).hexdigest()}"


def webhook_maker(address: str, secret: Path | None) -> Callable[[Writer], Webhook]:
    """What makes the webhook once there is a writer.

    Raises InputError when the address would send the log in the clear, or there is no good secret.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        parts = urlsplit("")
    if "@" in parts.netloc:
        hint = "requests are signed: leave it out"
        raise InputError.of("--webhook", "has a user or a password, which the log would show", hint=hint)
    if parts.hostname is None or not (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK_HOSTS)
    ):
        raise InputError.of("--webhook", f"'{address}' is no https:// address", hint="http only to this machine")
    if secret is None or not secret.is_file():
        raise InputError.of("--webhook-secret", "names no file", hint="as made by: openssl rand -hex 32 > secret")
    shared = secret.read_bytes().strip()
    if len(shared) < SHORTEST_SECRET:
        raise InputError.of("--webhook-secret", f"{secret} has less than {SHORTEST_SECRET} bytes")
    return lambda writer: Webhook(address, shared, writer)
