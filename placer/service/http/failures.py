"""What is answered when a route fails."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import Response

from placer.online.saved import Unreachable
from placer.service.http.access import TOO_LARGE
from placer.service.http.answers import RETRY_AFTER, refusal
from placer.service.http.posted import TooLarge
from placer.service.http.turned_away import OVERLOAD
from placer.service.http.writer import Overloaded, Stopped

UNEXPECTED = 500


def failure_answer(failure: Exception, method: str) -> Response:
    """What is answered when a route fails."""
    match failure:
        case Overloaded():
            return refusal(429, OVERLOAD, {"Retry-After": RETRY_AFTER})
        case Stopped():
            return refusal(503, "the service is stopping", {"Retry-After": RETRY_AFTER})
        case Unreachable():
            return refusal(503, "the state cannot be reached: come again", {"Retry-After": RETRY_AFTER})
        case TooLarge():
            return refusal(413, TOO_LARGE)
        case HTTPException(status_code=404):
            return refusal(404, "there is no such path")
        case HTTPException(status_code=405):
            return refusal(405, f"{method} is not possible here", failure.headers)
    return refusal(UNEXPECTED, "the service failed; its log says how")
