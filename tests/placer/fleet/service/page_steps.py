"""What tests of the page do in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


def wait_for(page: Page, selector: str, words: str) -> None:
    """Until the element has these words."""
    page.locator(selector, has_text=words).first.wait_for()


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
