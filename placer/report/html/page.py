"""A page: its content, and how it becomes one HTML file that needs no network."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import altair as alt
import pandas as pd
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from placer.report.html import theme

Chart = alt.Chart | alt.LayerChart

DISTRIBUTION_NAME = "nf-placer"
"""Whose version a page names, and no date: the same program and input give the same bytes."""

VEGA_LIBRARY = "window.vegaEmbed = vegaEmbed;"
"""The part of Vega, Vega-Lite and Vega-Embed that a page uses."""


@dataclass(frozen=True)
class Figure:
    """A chart, its name, which is also the name of its files, and a caption for readers who cannot see it."""

    name: str
    caption: str
    chart: Chart


@dataclass(frozen=True)
class Picture:
    """A finished drawing, as SVG in light colours, with a caption for readers who cannot see it."""

    name: str
    caption: str
    svg: bytes

    @property
    def source(self) -> str:
        """The drawing as a data URL."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.svg).decode()}"


@dataclass(frozen=True)
class Section:
    """A heading, a text, figures, and a sortable table with the numbers of the figures."""

    name: str
    """Identifies the section in links."""
    title: str
    """The heading."""
    text: str
    """A few sentences."""
    figures: tuple[Figure | Picture, ...] = ()
    """Charts and pictures in reading order."""
    table: pd.DataFrame | None = None
    """The numbers."""
    expanded: bool = False
    """Whether the table is visible at once, not on demand."""
    notes: tuple[str, ...] = ()
    """Below the table: what its reader must know."""

    @property
    def charts(self) -> list[Figure]:
        """The figures that the page draws."""
        return [figure for figure in self.figures if isinstance(figure, Figure)]


@dataclass(frozen=True)
class Tile:
    """A key number and its label."""

    value: str
    label: str


@dataclass(frozen=True)
class Page:
    """The content of a page."""

    title: str
    summary: tuple[str, ...]
    """Paragraphs, the decision first."""
    tiles: tuple[Tile, ...]
    """Key numbers."""
    sections: tuple[Section, ...]
    """Sections in reading order."""
    made_by: str = ""
    """The command that makes the page again; empty where there is none."""


def render(page: Page) -> str:
    """The page as HTML. The same page gives the same bytes."""
    return (
        _templates()
        .get_template("page.html.j2")
        .render(
            page=page,
            light=theme.variables(dark=False),
            dark=theme.variables(dark=True),
            css=_part("page.css"),
            js=_part("page.js"),
            version=version(DISTRIBUTION_NAME),
            charts=_charts_library() if any(section.charts for section in page.sections) else "",
        )
    )


def spec_of(chart: Chart, colour: theme.Colour) -> dict[str, Any]:
    """The chart as Vega-Lite, in the colours of a page or of a paper; `usermeta` holds the width of its names."""
    spec: dict[str, Any] = chart.to_dict()
    spec["config"] = theme.config(colour)
    return spec


@cache
def _templates() -> Environment:
    templates = Environment(loader=PackageLoader("placer.report.html", "."), autoescape=True, undefined=StrictUndefined,
                            trim_blocks=True, lstrip_blocks=True)  # fmt: skip
    templates.globals.update(columns=_columns, rows=_rows, spec=_spec)
    return templates


@cache
def _part(name: str) -> Markup:
    return Markup((files("placer.report.html") / name).read_text(encoding="utf-8"))  # a file of ours # noqa: S704


@cache
def _charts_library() -> Markup:
    """Vega, Vega-Lite and Vega-Embed as one script, from the package of the converter."""
    return Markup(vl_convert.javascript_bundle(VEGA_LIBRARY).replace("</script", "<\\/script"))  # a library # noqa: S704


def _spec(chart: Chart) -> Markup:
    """The chart as JSON that cannot end the script element around it."""
    return Markup(json.dumps(spec_of(chart, theme.on_page), sort_keys=True).replace("<", "\\u003c"))  # noqa: S704


def _columns(table: pd.DataFrame) -> list[tuple[str, bool]]:
    """Names of columns, and whether each holds numbers."""
    return [(str(name), pd.api.types.is_numeric_dtype(kind)) for name, kind in table.dtypes.items()]


def _rows(table: pd.DataFrame) -> list[Sequence[tuple[str, str]]]:
    """Per cell, what is displayed and what it is sorted by."""
    places = [_places(table.iloc[:, column]) for column in range(table.shape[1])]
    return [
        [(_show(value, digits), _sort_key(value)) for value, digits in zip(row, places, strict=True)]
        for row in table.itertuples(index=False)
    ]


def _places(column: pd.Series[Any]) -> int:
    """Digits after the point, the same in a whole column so that its numbers line up."""
    if not pd.api.types.is_float_dtype(column):
        return 0
    sizes = column.abs()
    if (sizes.dropna() % 1 == 0).all():
        return 0
    least = sizes[sizes > 0].min()
    return 0 if least >= 1000 else 1 if least >= 1 else 2


def _show(value: object, places: int) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:,.{places}f}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _sort_key(value: object) -> str:
    if isinstance(value, (int, float)):
        return "" if math.isnan(value) else repr(value)
    return "" if value is None or value is pd.NA else str(value)
