"""Who may send a request: by its token, and by its size."""

from __future__ import annotations

from starlette.responses import Response

from placer.service.http.answers import refusal
from placer.service.http.posted import LARGEST_BODY
from placer.service.http.tokens import ADMIN, ASK, DECIDE, Tokens

OPEN_PATHS = ("/healthz", "/readyz", "/openapi.json")
"""Paths that need no token, besides the page itself."""

PAGE_PATHS = ("/page/",)

TOO_LARGE = f"the request is larger than {LARGEST_BODY:,} bytes"

Headers = list[tuple[bytes, bytes]]


class AccessControl:
    """Checks requests before anything is done for them.

    Parameters
    ----------
    tokens
        Who may do what.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def check(self, path: str, headers: Headers) -> Response | bool:
        """Why a request is refused; if it is not, whether who sent it may change NICs."""
        if path in OPEN_PATHS or path == "/" or path.startswith(PAGE_PATHS):
            return False
        found = dict(headers)
        scopes = self._tokens.scopes(found.get(b"authorization", b"").decode("latin-1") or None)
        if scopes is None:
            return refusal(401, "a known token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        needed = DECIDE if path.startswith(("/v1/events", "/k8s/v1/bind")) else ASK
        if needed not in scopes:
            return refusal(403, f"the token does not have the scope '{needed}'")
        length = found.get(b"content-length", b"0")
        if length.isdigit() and int(length) > LARGEST_BODY:
            return refusal(413, TOO_LARGE)
        return ADMIN in scopes
