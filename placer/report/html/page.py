"""A page: what it says, and how that becomes one HTML file that asks no network for anything."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from placer.report.html import theme
from profiles.aside import file_aside

Chart = alt.Chart | alt.LayerChart

LIBRARY = "window.vegaEmbed = vegaEmbed;"
"""What a page needs of Vega, Vega-Lite and Vega-Embed."""


@dataclass(frozen=True)
class Figure:
    """A chart with its name, which names its files too, and one sentence for those who do not see it."""

    name: str
    caption: str
    chart: Chart


@dataclass(frozen=True)
class Picture:
    """A drawing that was made elsewhere, as SVG in light colours, with one sentence for those who do not see it."""

    name: str
    caption: str
    svg: bytes

    @property
    def source(self) -> str:
        """The drawing itself, as an address that needs no network."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.svg).decode()}"


@dataclass(frozen=True)
class Section:
    """A heading, what it says, and its figures; the table is what they show, in numbers.

    Parameters
    ----------
    name
        Of the section in links.
    title
        The heading.
    told
        A few sentences.
    figures
        Charts and pictures in reading order.
    table
        The numbers; a column a field, a row a line. Sortable.
    in_sight
        Whether the table is shown at once, not on demand.
    notes
        What the reader of the table should know.
    """

    name: str
    title: str
    told: str
    figures: tuple[Figure | Picture, ...] = ()
    table: pd.DataFrame | None = None
    in_sight: bool = False
    notes: tuple[str, ...] = ()

    @property
    def charts(self) -> list[Figure]:
        """The figures that are drawn by the page."""
        return [figure for figure in self.figures if isinstance(figure, Figure)]


@dataclass(frozen=True)
class Tile:
    """A figure that everybody asks for first, and what it means."""

    value: str
    label: str


@dataclass(frozen=True)
class Page:
    """What a page says.

    Parameters
    ----------
    title
        Of the page.
    summary
        Paragraphs, the decision first.
    tiles
        The few figures that matter.
    sections
        In reading order.
    made_by
        The command that makes the page again; empty where none does.
    """

    title: str
    summary: tuple[str, ...]
    tiles: tuple[Tile, ...]
    sections: tuple[Section, ...]
    made_by: str = ""


def write_page(page: Page, path: Path) -> None:
    """Write the page aside, then rename."""
    with file_aside(path) as aside:
        aside.write_text(render(page), encoding="utf-8")


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
            charts=_charts_library() if any(section.charts for section in page.sections) else "",
        )
    )


def spec_of(chart: Chart, colour: theme.Colour) -> dict[str, Any]:
    """The chart as Vega-Lite, in the colours of a page or of a paper; `usermeta` tells the room that names take."""
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
    return Markup((files("placer.report.html") / name).read_text(encoding="utf-8"))


@cache
def _charts_library() -> Markup:
    """Vega, Vega-Lite and Vega-Embed as one script, out of the converter's own package."""
    return Markup(vl_convert.javascript_bundle(LIBRARY).replace("</script", "<\\/script"))


def _spec(chart: Chart) -> Markup:
    """The chart as JSON in which nothing ends the script element around it."""
    return Markup(json.dumps(spec_of(chart, theme.on_page), sort_keys=True).replace("<", "\\u003c"))


def _columns(table: pd.DataFrame) -> list[tuple[str, bool]]:
    """Names of columns, and whether they hold numbers."""
    return [(str(name), pd.api.types.is_numeric_dtype(kind)) for name, kind in table.dtypes.items()]


def _rows(table: pd.DataFrame) -> list[Sequence[tuple[str, str]]]:
    """Cells as shown, and as sorted."""
    places = [_places(table.iloc[:, column]) for column in range(table.shape[1])]
    return [
        [(_shown(value, digits), _sorted_by(value)) for value, digits in zip(row, places, strict=True)]
        for row in table.itertuples(index=False)
    ]


def _places(column: pd.Series[Any]) -> int:
    """Digits after the point, the same in a whole column so that its numbers stand one below the other."""
    if not pd.api.types.is_float_dtype(column):
        return 0
    sizes = column.abs()
    if (sizes.dropna() % 1 == 0).all():
        return 0
    least = sizes[sizes > 0].min()
    return 0 if least >= 1000 else 1 if least >= 1 else 2


def _shown(value: object, places: int) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:,.{places}f}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _sorted_by(value: object) -> str:
    if isinstance(value, (int, float)):
        return "" if math.isnan(value) else repr(value)
    return "" if value is None or value is pd.NA else str(value)
