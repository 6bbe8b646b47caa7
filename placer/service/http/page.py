"""The page for people: files that are served as they are."""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""Nothing but the page's own files is loaded, and no other page may show it."""


def page_routes() -> list[Route]:
    """`/` and `/page/...`; none where the page was not installed."""
    try:
        folder = files("placer.service.page")
    except ModuleNotFoundError:
        return []
    found = {one.name: one.read_bytes() for one in folder.iterdir() if one.name.endswith(tuple(TYPES))}
    routes = [Route(f"/page/{name}", _file(name, content)) for name, content in found.items()]
    return [*routes, Route("/", _file("index.html", found["index.html"]))] if "index.html" in found else routes


def _file(name: str, content: bytes):  # type: ignore[no-untyped-def]
    media = TYPES[name[name.rindex(".") :]]

    async def answer(request: Request) -> Response:
        return Response(content, media_type=media, headers=HEADERS)

    return answer
