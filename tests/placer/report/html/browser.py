"""Headless Chromium, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


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
