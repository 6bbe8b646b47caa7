"""The files of the page: all are served, load nothing from elsewhere, and have colours with contrast."""

from __future__ import annotations

import re

import pytest

from placer.fleet.service.page import page_files

THEMES = ("light", "dark")
WORDS = ("ink", "soft", "accent", "bad", "warn", "good")
GROUNDS = ("ground", "raised")


def text(path: str) -> str:
    """A file of the page."""
    return page_files()[path].content.decode()


def colours(theme: str) -> dict[str, str]:
    light, dark = re.findall(r":root \{(.*?)\}", text("/page/page.css"), flags=re.DOTALL)
    return dict(re.findall(r"--([\w-]+): (#\w{6});", light if theme == "light" else dark))


def luminance(colour: str) -> float:
    """As of WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """From 1 to 21."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_defined() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)


@pytest.mark.parametrize("theme", THEMES)
def test_words_have_contrast(theme: str) -> None:
    """4.5 for text; 3 for edges of fields and for bars (WCAG AA)."""
    named = colours(theme)
    pairs = [(word, ground, 4.5) for word in WORDS for ground in GROUNDS]
    pairs += [("on-accent", "accent", 4.5), ("full", "track", 3), ("edge", "ground", 3), ("edge", "raised", 3)]
    found = {(one, other): contrast(named[one], named[other]) for one, other, _ in pairs}
    assert {pair: found[pair[:2]] for pair in pairs if found[pair[:2]] < pair[2]} == {}


def test_both_themes_have_the_same_colours() -> None:
    assert colours("light").keys() == colours("dark").keys()
    used = set(re.findall(r"var\(--([\w-]+)\)", text("/page/page.css")))
    assert used == colours("light").keys()


def test_every_file_that_is_named_is_served() -> None:
    """Scripts and styles of the page and imports of scripts; nothing is served that is not used."""
    named = {f"/{path}" for path in re.findall(r'(?:href|src)="(page/[^"]+)"', text("/"))}
    for path in [path for path in page_files() if path.endswith(".js")]:
        named |= {f"/page/{name}" for name in re.findall(r'from "\./([\w.]+)"', text(path))}
    assert named | {"/"} == page_files().keys()


def test_no_script_or_style_is_inline() -> None:
    """Nor does any text become markup, or come from elsewhere."""
    assert re.findall(r"<style|style=|\son\w+=|<script(?! type=\"module\" src=)", text("/")) == []
    everything = "".join(text(path) for path in page_files() if path != "/page/page.svg")
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://", everything) == []


def test_files_are_short() -> None:
    assert [path for path in page_files() if text(path).count("\n") > 300] == []
