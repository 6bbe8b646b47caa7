"""Routes of the page for people: files that are served as they are."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from placer.service.page import HEADERS, PageFile, page_files


def page_routes() -> list[Route]:
    """`/` and `/page/...`."""
    return [_route(path, file) for path, file in page_files().items()]


def _route(path: str, file: PageFile) -> Route:
    async def answer(request: Request) -> Response:
        return Response(file.content, media_type=file.media_type, headers=HEADERS)

    return Route(path, answer)
