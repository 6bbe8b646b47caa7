"""Answers over HTTP: JSON, lines of JSON, and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from starlette.responses import Response

RETRY_AFTER = "1"
"""Seconds after which a request that was turned away may come again."""

JSON, LINES = "application/json", "application/x-ndjson"


def answer(value: object, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(json.dumps(value), status, media_type=JSON)


def lines(texts: Iterable[str]) -> Response:
    """Lines of JSON."""
    return Response("".join(f"{text}\n" for text in texts), media_type=LINES)


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Why a request is refused."""
    return Response(json.dumps({"ok": False, "error": message}), status, dict(headers or {}), JSON)
