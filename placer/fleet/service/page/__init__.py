"""The page of `placer serve`: static files, which ask the service for all that they show. Read `page.js` first."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""Sent with every file of the page: nothing from elsewhere is loaded, and no text becomes markup."""


@dataclass(frozen=True)
class PageFile:
    """A file as it is sent."""

    media_type: str
    content: bytes


def page_files() -> dict[str, PageFile]:
    """All files of the page by the path under which they are served; `/` is the page itself."""
    found = (path for path in files(__name__).iterdir() if path.name.rpartition(".")[2] in MEDIA_TYPES)
    return {
        "/" if path.name == "index.html" else f"/page/{path.name}": PageFile(
            MEDIA_TYPES[path.name.rpartition(".")[2]], path.read_bytes()
        )
        for path in found
    }
