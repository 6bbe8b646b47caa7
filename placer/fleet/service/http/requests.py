"""What is noted of every request: a count by route and status, its seconds, and a line of the log where it failed."""

from __future__ import annotations

import json
from typing import Any

from starlette.types import Scope

from placer.fleet.service.http.metrics import Metrics
from placer.fleet.service.log import LimitedLog, log

REFUSED_BY_DOORS = (401, 403, 421)
"""Statuses of clients that have no business here; they are logged, as failures of the service are."""

NO_ROUTE = "none"  # the route of a request that has none: of an unknown path, or not HTTP at all
LONGEST_SHOWN = 256  # characters of what a client has sent, in a line of the log


class RequestLog:
    """Counts requests, and logs those that the doors refuse or the service fails on.

    `metrics`: None while the service is opened. `everything`: log all requests.
    """

    def __init__(self, metrics: Metrics | None, *, everything: bool = False) -> None:
        self._metrics = metrics
        self._everything = everything
        self._limited = LimitedLog()

    def note(self, scope: Scope, route: str, status: int, seconds: float) -> None:
        """Note a request as it is answered, after what it changes is committed."""
        if self._metrics is not None:
            self._metrics.count_request(route, status, seconds)
        if self._everything:
            log("request", **_shown(scope, route, status, seconds))
        elif status in REFUSED_BY_DOORS or status >= 500:
            self._limited.log("request", **_shown(scope, route, status, seconds))


def _shown(scope: Scope, route: str, status: int, seconds: float) -> dict[str, Any]:
    state, client = scope["state"], scope["client"]
    forwarded = next((value for name, value in scope["headers"] if name == b"x-forwarded-for"), None)
    return {
        "client": f"{client[0]}:{client[1]}" if client else None,
        **({} if forwarded is None else {"forwarded_for": forwarded.decode("latin-1")[:LONGEST_SHOWN]}),
        "actor": state.get("actor"),
        "method": scope["method"],
        "route": route,
        "path": scope["path"][:LONGEST_SHOWN],
        **_event(route, state.get("body", b"")),
        "status": status,
        "ms": round(1000 * seconds, 3),
    }


def _event(route: str, body: bytes) -> dict[str, Any]:
    """The kind of an event and its instance or NIC; how many events a batch has; nothing for what is no event."""
    if route.endswith(":batch"):
        return {"events": sum(1 for line in body.splitlines() if line.strip())}
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(event, dict):
        return {}
    return {key: event[key][:LONGEST_SHOWN] for key in ("event", "id", "nic") if isinstance(event.get(key), str)}
