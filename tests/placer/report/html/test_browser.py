"""The page in a browser: charts are drawn, tables sorted, themes switched, by keyboard and without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from placer.report.html import Page as Content
from tests.placer.report.html.browser import chromium, show, shown

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTHS = (1280, 390)
THEMES = ("light", "dark")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as started:
        yield started


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Page]:
    """The page on a wide screen in light, all charts drawn."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    show(page, report)
    yield page
    page.close()


@pytest.mark.long
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
def test_every_chart_is_drawn_and_fits(browser: Browser, report: Path, page: Content, width: int, theme: str) -> None:
    """On both screens and in both themes charts have marks, the page fits the screen, and the console stays empty."""
    with shown(browser, report, width, theme) as tab:
        for figure in (figure for section in page.sections for figure in section.figures):
            assert tab.locator(f"#chart-{figure.name} svg path").count() > 3, figure.name


@pytest.mark.long
def test_a_table_is_sorted_by_keyboard(opened: Page) -> None:
    """Enter on a heading sorts upwards, again downwards, and the heading reports the order to screen readers."""
    heading = opened.locator("#strategies th", has_text="NICs")
    heading.locator("button").focus()
    opened.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    cells = opened.locator("#strategies tbody td:nth-child(3)")
    upwards = [int(text) for text in cells.all_text_contents()]
    assert upwards == sorted(upwards)
    opened.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert [int(text) for text in cells.all_text_contents()] == upwards[::-1]


@pytest.mark.long
def test_the_theme_is_switched_by_keyboard(opened: Page) -> None:
    """The button switches the colours of page and charts, and reports that it is pressed."""
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    word = "getComputedStyle(document.querySelector('.chart svg text')).fill"
    before = opened.evaluate(ground), opened.evaluate(word)
    opened.locator("#theme").focus()
    opened.keyboard.press("Space")
    after = opened.evaluate(ground), opened.evaluate(word)
    assert opened.locator("#theme").get_attribute("aria-pressed") == "true"
    assert before[0] == "rgb(255, 255, 255)"
    assert all(one != other for one, other in zip(before, after, strict=True))


@pytest.mark.long
def test_print_is_light_and_without_controls(opened: Page) -> None:
    """Even in the dark theme paper is white, without buttons and section links."""
    opened.locator("#theme").click()
    opened.emulate_media(media="print")
    assert opened.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert not opened.locator("nav").is_visible()
    assert not opened.locator("#theme").is_visible()


@pytest.mark.long
def test_the_page_is_structured_for_screen_readers(opened: Page) -> None:
    """The first tab stop skips to the content; every section has a name, every table and figure a caption."""
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.textContent") == "Skip to the content"
    sections = opened.locator("main > section")
    assert sections.count() == opened.locator("main > section:is([aria-label], [aria-labelledby])").count()
    assert opened.locator("table").count() == opened.locator("table caption").count()
    assert opened.locator("h1").count() == 1
    assert opened.evaluate("document.querySelectorAll('figure:not(:has(figcaption))').length") == 0
