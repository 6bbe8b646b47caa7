"""Charts of a simulated production over the events of its trace."""

from __future__ import annotations

import altair as alt
import pandas as pd

from placer.report.html.charts import TALL, layers, sized
from placer.report.html.page import Chart

TURN = "turn"
"""The column of events at which an NF changes."""


def over_events(curves: pd.DataFrame, figure: str, title: str, by: str, turns: pd.DataFrame) -> Chart:
    """A step curve per value of `by`; a line marks each event at which an NF changes."""
    names = list(dict.fromkeys(curves[by]))
    lines = (
        alt.Chart(curves)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("event:Q", title="event", axis=alt.Axis(grid=False, tickCount=8, format=",~f")),
            y=alt.Y(f"{figure}:Q", title=title, scale=alt.Scale(zero=figure != "factor")),
            color=alt.Color(
                f"{by}:N", scale=alt.Scale(domain=names), legend=alt.Legend(values=names, symbolOpacity=1), title=None
            ),
            strokeDash=alt.StrokeDash(f"{by}:N", scale=alt.Scale(domain=names), legend=None),
            tooltip=[f"{by}:N", alt.Tooltip("event:Q", format=","), alt.Tooltip(f"{figure}:Q", format=",.2~f")],
        )
    )
    marks = alt.Chart(turns).mark_rule(style="guide").encode(x=f"{TURN}:Q", tooltip=["what:N"])
    return sized(layers(lines, marks) if len(turns) else layers(lines), TALL, names)
