"""Colours of pages and plots: pages switch between two themes by CSS variables, files for papers are light."""

from collections.abc import Callable
from typing import Any

INK_COLOURS: dict[str, tuple[str, str]] = {
    "ground": ("#ffffff", "#14171c"),
    "raised": ("#f4f6f8", "#1d2229"),
    "ink": ("#1a1f26", "#e8ebef"),
    "soft": ("#566070", "#a3adba"),
    "line": ("#d5dae1", "#38404b"),
    "accent": ("#0b5cad", "#7db8f5"),
    "bad": ("#b3261e", "#ff8a80"),
}
"""Light and dark colour by purpose."""

CATEGORY_COLOURS: tuple[tuple[str, str], ...] = (
    ("#2f6fb4", "#6ea8e6"),
    ("#d27b24", "#f0a556"),
    ("#2b8a66", "#58c79a"),
    ("#b5446e", "#e884aa"),
    ("#7358b0", "#ab93e3"),
    ("#8a7a18", "#d3c24d"),
    ("#27899c", "#5ec4d6"),
    ("#8c4a2f", "#cf8b6c"),
    ("#5a6675", "#9aa7b8"),
    ("#a83a3a", "#ef7d7d"),
    ("#5d8f2b", "#98cf62"),
    ("#3d4aa3", "#8390f0"),
)
"""Light and dark colours of categories, in order of use."""

DARKENING_FILTER = "invert(.91) hue-rotate(180deg)"
"""CSS filter that turns light colours of a picture into dark ones and keeps hues."""

Colour = Callable[[str], str]  # returns a colour by its name in `INK_COLOURS`, or `c1`, `c2`, ..


def on_page(name: str) -> str:
    """The colour in the theme of the page, which readers can switch."""
    return f"var(--{name})"


def on_paper(name: str) -> str:
    """The light colour."""
    return _name()[name][0]


def variables(dark: bool) -> str:
    """CSS declarations of all colours of a theme."""
    colours = " ".join(f"--{name}: {pair[dark]};" for name, pair in _name().items())
    return f"{colours} --picture: {DARKENING_FILTER if dark else 'none'};"


def config(colour: Colour) -> dict[str, Any]:
    """A Vega-Lite configuration in which every colour comes from `colour`."""
    ink, soft, line = colour("ink"), colour("soft"), colour("line")
    words = {
        "labelColor": ink,
        "titleColor": soft,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    }
    return {
        "background": None,
        "font": "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif",
        "view": {"stroke": None},
        "axis": words
        | {"gridColor": line, "domainColor": line, "tickColor": line, "labelLimit": 240, "labelOverlap": "greedy"}
        | {"labelSeparation": 3},
        "legend": words
        | {
            "orient": "top", "labelFontSize": 11, "symbolSize": 70, "columnPadding": 6, "labelOffset": 3,
            "labelLimit": 300, "title": None,
        },
        "text": {"color": ink, "fontSize": 12},
        "bar": {"color": colour("c1")},
        "line": {"strokeWidth": 2, "color": colour("c1")},
        "point": {"color": colour("c1")},
        "range": {"category": [colour(f"c{number}") for number in range(1, len(CATEGORY_COLOURS) + 1)]},
        "style": {
            "optimum": {"stroke": colour("bad"), "color": colour("bad"), "strokeDash": [6, 4], "strokeWidth": 2},
            "range": {"stroke": colour("c1"), "color": colour("c1"), "strokeWidth": 3, "opacity": 0.5},
            "guide": {"stroke": soft, "strokeDash": [3, 3]},
        },
    }  # fmt: skip


def _name() -> dict[str, tuple[str, str]]:
    return INK_COLOURS | {f"c{number}": pair for number, pair in enumerate(CATEGORY_COLOURS, start=1)}
