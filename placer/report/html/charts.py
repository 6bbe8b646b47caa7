"""The charts of pages, each drawn from a table that has at least one row. Colours come from the theme."""

from collections.abc import Iterable, Sequence

import altair as alt
import pandas as pd

from placer.report.html.page import Chart

ROW_HEIGHT, TWO_LINE_ROW_HEIGHT = 26, 34  # height of a bar with its gap, pixels; of one whose name has two lines
LINE_BREAK = ", "
"""Where a name is broken into lines: a strategy and its predictor are too long for one on a narrow page."""
SPLIT_LABEL = f"split(datum.label, '{LINE_BREAK}')"
TALL_HEIGHT = 280
LETTER_WIDTH, SYMBOL_WIDTH, AXIS_WIDTH = 6, 22, 50
"""Largest width in pixels of a letter, of a symbol in a legend, and of an axis of numbers."""

LABEL_SPACE = 1.45  # length of an axis relative to its longest bar, so that a label fits after the bar

NICS_TITLE = "NICs in use"


def nics_over_time(curves: pd.DataFrame, optimum: int, caption: str) -> Chart:
    """NICs in use over time, a step curve per strategy, the optimum as a line."""
    hours = curves.assign(hours=curves["time"] / 3600)
    lines = (
        alt.Chart(hours)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("hours:Q", title="hours since the start", axis=alt.Axis(grid=False, tickCount=8, format=",~f")),
            y=alt.Y("nics:Q", title=NICS_TITLE),
            color=_by("strategy", curves),
            tooltip=["strategy:N", alt.Tooltip("hours:Q", format=".2f"), "nics:Q"],
        )
    )
    line = (
        alt.Chart(pd.DataFrame({"nics": [optimum]}))
        .mark_rule(style="optimum")
        .encode(y="nics:Q", tooltip=alt.value(caption))
    )
    return fit_to_page(layers(lines, line), TALL_HEIGHT, curves["strategy"])


def nics(table: pd.DataFrame, optimum: int, caption: str) -> Chart:
    """NICs of every strategy as bars, labelled with their wastage; the optimum is a line."""
    bars = alt.Chart(table).encode(y=_name("strategy"), x=_label("nics", "NICs", table))
    line = alt.Chart(pd.DataFrame({"nics": [optimum]})).encode(x="nics:Q")
    return fit_to_page(
        layers(
            bars.mark_bar().encode(tooltip=["strategy:N", "nics:Q", "wastage:N"]),
            bars.mark_text(align="left", dx=5).encode(text="wastage:N"),
            line.mark_rule(style="optimum").encode(tooltip=alt.value(caption)),
        ),
        _height(table["strategy"]),
    )


def percentages(table: pd.DataFrame, title: str, category: str = "strategy") -> Chart:
    """A labelled bar per category: column `pct`."""
    bars = alt.Chart(table).encode(y=_name(category), x=_label("pct", title, table))
    return fit_to_page(
        layers(
            bars.mark_bar().encode(tooltip=[f"{category}:N", alt.Tooltip("pct:Q", format=".2f")]),
            bars.mark_text(align="left", dx=5).encode(text=alt.Text("pct:Q", format=".1f")),
        ),
        _height(table[category]),
    )


def intervals(table: pd.DataFrame, figure: str, title: str) -> Chart:
    """A point per strategy at the middle of a figure, on a line from its low to its high."""
    place = alt.Chart(table).encode(y=_name("strategy"))
    tooltip = ["strategy:N", *(alt.Tooltip(f"{figure}{end}:Q", format=".2f") for end in ("_low", "", "_high"))]
    all_zero = not table[[figure, f"{figure}_low", f"{figure}_high"]].any(axis=None)
    scale = alt.Scale(domain=[0, 1]) if all_zero else alt.Undefined
    lines = place.mark_rule(style="range").encode(
        x=alt.X(f"{figure}_low:Q", title=title, axis=alt.Axis(tickCount=5), scale=scale), x2=f"{figure}_high:Q"
    )
    points = place.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X(f"{figure}:Q", title=title), tooltip=tooltip
    )
    return fit_to_page(layers(lines, points), _height(table["strategy"]))


def occupancy(table: pd.DataFrame, cores: int) -> Chart:
    """Cores of the average NIC by the NF that uses them; the cores of a NIC are a line."""
    bars = (
        alt.Chart(table)
        .mark_bar()
        .encode(
            y=_name("strategy"),
            x=alt.X("cores:Q", title="cores used per NIC", scale=alt.Scale(domain=[0, cores])),
            color=_by("nf", table),
            tooltip=["strategy:N", "nf:N", alt.Tooltip("cores:Q", format=".2f")],
        )
    )
    whole = alt.Chart(pd.DataFrame({"cores": [cores]})).mark_rule(style="guide").encode(x="cores:Q")
    return fit_to_page(layers(bars, whole), _height(table["strategy"].unique()), table["nf"], table["strategy"])


def agreement(table: pd.DataFrame, strategies: Sequence[str], of: str) -> Chart:
    """Predicted against true throughput, in % of what `of` says; on the diagonal they agree. Colours are those of all
    `strategies`."""
    low = float(min(table["predicted"].min(), table["true"].min())) - 1
    scale = alt.Scale(domain=[low, 101], zero=False, nice=False)
    points = (
        alt.Chart(table)
        .mark_point(filled=True, opacity=0.7)
        .encode(
            x=alt.X("predicted:Q", title=f"predicted, % of {of}", scale=scale, axis=alt.Axis(tickCount=6)),
            y=alt.Y("true:Q", title=f"true, % of {of}", scale=scale),
            color=_by("strategy", table, strategies),
            shape=alt.Shape("strategy:N", sort=None, legend=None),
            size=alt.Size("instances:Q", legend=None, scale=alt.Scale(range=[25, 160])),
            tooltip=["strategy:N", "nf:N", "predicted:Q", "true:Q", "instances:Q"],
        )
    )
    ends = pd.DataFrame({"predicted": [low, 101.0], "true": [low, 101.0]})
    diagonal = alt.Chart(ends).mark_line(style="guide", strokeWidth=1).encode(x="predicted:Q", y="true:Q")
    return fit_to_page(layers(diagonal, points), 360, table["strategy"])


def drops(table: pd.DataFrame) -> Chart:
    """Predicted drop by NF, a bar per resource."""
    return fit_to_page(
        alt.Chart(table)
        .mark_bar()
        .encode(
            y=alt.Y("nf:N", title=None, sort=None),
            yOffset=alt.YOffset("resource:N"),
            x=alt.X("drop:Q", title="mean predicted drop, % of alone", axis=alt.Axis(tickCount=5)),
            color=_by("resource", table),
            tooltip=["nf:N", "resource:N", alt.Tooltip("drop:Q", format=".2f")],
        ),
        ROW_HEIGHT * 1.4 * table["nf"].nunique(),
        table["resource"],
        table["nf"],
    )


def bottlenecks(table: pd.DataFrame, attribute: str, resources: Sequence[str]) -> Chart:
    """Throughput along an attribute, a curve per `source`, points coloured by `bottleneck`; flows on a log axis.
    Colours are those of all `resources`."""
    scale = alt.Scale(type="log") if attribute == "flows" else alt.Undefined
    numbers = "~s" if attribute == "flows" else ",~f"
    x = alt.X(f"{attribute}:Q", scale=scale, axis=alt.Axis(grid=False, tickCount=6, format=numbers))
    base = alt.Chart(table).encode(x=x, y=alt.Y("kpps:Q", title="throughput, kpps"))
    lines = base.mark_line(style="guide", strokeWidth=1).encode(detail="source:N")
    points = base.mark_point(size=70).encode(
        color=_by("bottleneck", table, resources),
        shape=alt.Shape("source:N", sort=None, legend=alt.Legend(title=None)),
        tooltip=["source:N", f"{attribute}:Q", "kpps:Q", "bottleneck:N"],
    )
    return fit_to_page(layers(lines, points), TALL_HEIGHT, table["bottleneck"])


def bands(table: pd.DataFrame, x: str, title: str, y_title: str = NICS_TITLE) -> Chart:
    """A curve per `option` through `middle` over `x`, with a band from `low` to `high`."""
    base = alt.Chart(table).encode(
        x=alt.X(f"{x}:Q", title=title, axis=alt.Axis(grid=False, tickCount=6, format=",~f")), color=_by("option", table)
    )
    tooltip = ["option:N", f"{x}:Q", "low:Q", "middle:Q", "high:Q"]
    return fit_to_page(
        layers(
            base.mark_area(opacity=0.25).encode(y=alt.Y("low:Q", title=y_title), y2="high:Q"),
            base.mark_line(point=True).encode(y=alt.Y("middle:Q", title=y_title), tooltip=tooltip),
        ),
        TALL_HEIGHT,
        table["option"],
    )


def layers(*charts: alt.Chart) -> alt.LayerChart:
    return alt.LayerChart(layer=list(charts))


def _by(column: str, table: pd.DataFrame, known: Sequence[str] = ()) -> alt.Color:
    """A colour per value; `known` lists all values where the table may lack some, so that colours stay the same."""
    values = list(dict.fromkeys(table[column]))
    legend = alt.Legend(values=values, symbolOpacity=1, labelExpr=SPLIT_LABEL)
    return alt.Color(f"{column}:N", scale=alt.Scale(domain=list(known or values)), legend=legend, title=None)


def _label(column: str, title: str, table: pd.DataFrame) -> alt.X:
    """An axis with space for a label after the longest bar, on a narrow page, too."""
    longest = float(table[column].max())
    scale = alt.Scale(domain=[0, longest * LABEL_SPACE if longest > 0 else 1], nice=False)
    return alt.X(f"{column}:Q", title=title, axis=alt.Axis(tickCount=5), scale=scale)


def _name(column: str) -> alt.Y:
    return alt.Y(f"{column}:N", title=None, sort=None, axis=alt.Axis(labelExpr=SPLIT_LABEL))


def _height(names: Iterable[str]) -> int:
    """Of a chart with a bar per name."""
    of = [len(name.split(LINE_BREAK)) for name in names]
    return len(of) * (ROW_HEIGHT if max(of, default=1) == 1 else TWO_LINE_ROW_HEIGHT)


def fit_to_page(chart: Chart, height: float, legend: Iterable[str] = (), rows: Iterable[str] = ()) -> Chart:
    """As wide as the page; `usermeta` holds the width of a name in the legend and of the axis, for narrow pages."""
    widths = {
        "legend": LETTER_WIDTH * _longest(legend) + SYMBOL_WIDTH,
        "axis": max(LETTER_WIDTH * _longest(rows), AXIS_WIDTH),
    }
    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    return chart.properties(width="container", height=height, autosize=fit, usermeta=widths)


def _longest(names: Iterable[str]) -> int:
    """Letters of the longest line."""
    return max((len(line) for name in names for line in name.split(LINE_BREAK)), default=0)
