"""Routes that decide: one event, and many at once."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from placer.service.http.answers import JSON, lines, refusal
from placer.service.http.posted import Posted
from placer.service.http.writer import Writer

LONGEST_EVENT = 1_000_000
"""Bytes of one event."""

MOST_EVENTS = 100_000
"""Events of one request."""

LONGEST_KEY = 256
"""Characters of an idempotency key."""


@dataclass(frozen=True)
class EventRoutes:
    """`POST /v1/events` and `POST /v1/events:batch`."""

    writer: Writer

    async def one(self, posted: Posted) -> Response:
        """Decide on one event."""
        body = posted.body
        if len(body) > LONGEST_EVENT:
            return refusal(413, f"an event is larger than {LONGEST_EVENT:,} bytes")
        key, if_version = posted.header(b"idempotency-key"), posted.header(b"if-version")
        wrong = _wrong_headers(key, if_version)
        if wrong is not None:
            return wrong
        (found,) = await self.writer.submit(
            [body], key, None if if_version is None else int(if_version), administers=posted.administers
        )
        return Response(found.text, found.status, media_type=JSON)

    async def batch(self, posted: Posted) -> Response:
        """Decide on a line each; the status of each answer is in its line."""
        key = posted.header(b"idempotency-key")
        wrong = _wrong_headers(key, None)
        if wrong is not None:
            return wrong
        events = [line for line in posted.body.split(b"\n") if line.strip()]
        if any(len(event) > LONGEST_EVENT for event in events):
            return refusal(413, f"an event is larger than {LONGEST_EVENT:,} bytes")
        if len(events) > MOST_EVENTS:
            return refusal(413, f"the request has more than {MOST_EVENTS:,} events")
        if not events:
            return refusal(422, "there is no event: give one JSON object per line")
        found = await self.writer.submit(events, key, administers=posted.administers)
        return lines(one.text for one in found)


def _wrong_headers(key: str | None, if_version: str | None) -> Response | None:
    if key is not None and not (0 < len(key) <= LONGEST_KEY and key.isprintable()):
        return refusal(422, f"Idempotency-Key: give 1 to {LONGEST_KEY} printable characters")
    if if_version is not None and not (if_version.isascii() and if_version.isdigit() and len(if_version) < 16):
        return refusal(422, "If-Version: give the `version` of an answer")
    return None
