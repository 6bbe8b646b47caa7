"""Headless Chromium, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
)  # fmt: skip


@contextmanager
def chromium(*options: str) -> Iterator[Browser]:
    """A running browser, with further options; the test is skipped where none is installed."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pages are not tested in a browser"
    )
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium is installed: pages are not tested in a browser")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=[*OPTIONS, *options])
        yield browser
        browser.close()


def show(page: Page, path: Path) -> None:
    """Open the file and wait for its charts."""
    page.goto(path.as_uri())
    page.wait_for_selector(".chart:not([data-drawn])", state="detached", timeout=20_000)


@contextmanager
def shown(browser: Browser, path: Path, width: int, theme: str) -> Iterator[Page]:
    """The file on a screen of this width, which it fits; with no word on the console, and without a network."""
    said: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)  # type: ignore[arg-type]
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append("" if request.url.startswith(("file:", "data:")) else request.url))
    show(page, path)
    yield page
    assert page.evaluate("document.documentElement.scrollWidth") <= width and not any(said), said
    page.close()
