"""The page of a simulated production: what feedback is worth, then violations, NICs, drift and models over time."""

from collections.abc import Iterator

import altair as alt
import pandas as pd

from placer.fleet.simulated.outcome import BY_HAND, WITH_FEEDBACK, WITHOUT_FEEDBACK, FleetOutcome, Production
from placer.report.html import Figure, Page, Section, Tile
from placer.report.html.charts import TALL_HEIGHT, fit_to_page, layers
from placer.report.html.page import Chart
from placer.report.text.production import format_found_drift, notes
from placer.report.text.table import count_nics
from profiles.files.lines import STDIN

STANDARD_INPUT = "standard input"


def page_of_production(production: Production, trace: str) -> Page:
    """The page of a simulation; `trace` is the name of the trace."""
    trace = STANDARD_INPUT if trace == STDIN else trace
    learned = production.fleet(WITH_FEEDBACK)
    return Page(
        title=f"Production, simulated: {production.arrivals:,} arrivals, {trace}",
        summary=(_comparison(production), " ".join(_drift_sentences(production)), " ".join(notes(production))),
        tiles=tuple(_tiles(production, learned)),
        sections=tuple(_sections(production)),
    )


def _comparison(production: Production) -> str:
    return " ".join(
        f"{fleet.name.capitalize()}, {fleet.violations_pct:.2f} % of {fleet.placed:,} instances violate their SLA, on "
        f"{count_nics(fleet.nics)}."
        for fleet in production.fleets
    )


def _drift_sentences(production: Production) -> Iterator[str]:
    learned = production.fleet(WITH_FEEDBACK)
    for drift in production.drifts:
        found = learned.count_until_found(drift)
        after = "is not found" if found is None else f"is found after {format_found_drift(learned, drift)}"
        yield f"The drift of {drift.nf} {after} of that NF."
    yield f"False alarms: {learned.false_alarms:,}."


def _tiles(production: Production, learned: FleetOutcome) -> Iterator[Tile]:
    for name in (WITHOUT_FEEDBACK, WITH_FEEDBACK, BY_HAND):
        fleet = production.fleet(name)
        late = fleet.late_violations_pct
        pct, what = (fleet.violations_pct, "") if late is None else (late, " after drift")
        yield Tile(f"{pct:.2f} %", f"SLA violations{what}, {name}")
    yield Tile(f"{learned.nics:,}", f"NICs, {WITH_FEEDBACK}")
    yield Tile(f"{learned.readings:,}", "readings")


def _sections(production: Production) -> Iterator[Section]:
    rows = [
        {
            "fleet": fleet.name,
            "event": point.event,
            "nics": point.nics,
            "violating_pct": 100.0 * point.violating / point.tenants if point.tenants else 0.0,
            "model": point.model,
        }
        for fleet in production.fleets
        for point in fleet.points
    ]
    curves, turns = pd.DataFrame(rows), _turns(production)
    yield Section("fleets", "The compared fleets", _fleets_text(), table=_fleets(production), expanded=True)
    yield _over_time(
        "violations", "SLA violations over time", "Tenants that are below their SLA at that time, by the ground truth.",
        "violating_pct", "tenants below their SLA, %", curves, turns,
    )  # fmt: skip
    yield _over_time("nics", "NICs over time", "NICs in use.", "nics", "NICs in use", curves, turns)
    beliefs = _beliefs(production)
    if len(beliefs):
        text = "How many times its predicted throughput an NF is believed to have, and truly has."
        caption = "Believed and true factors of drift."
        figure = Figure("drift", caption, over_events(beliefs, "factor", "factor of drift", "curve", turns))
        yield Section("drift", "Drift over time", text, (figure,), _alarms(production))
    yield _over_time(
        "models", "Models over time", "The version of the models that decide.", "model", "version", curves, turns
    )


def _over_time(
    name: str, title: str, text: str, figure: str, axis: str, curves: pd.DataFrame, turns: pd.DataFrame
) -> Section:
    chart = over_events(curves, figure, axis, "fleet", turns)
    table = curves.pivot(index="event", columns="fleet", values=figure).reset_index()
    table.columns.name = None
    return Section(name, title, text, (Figure(name, text, chart),), table[["event", *dict.fromkeys(curves["fleet"])]])


def _fleets_text() -> str:
    return (
        f"{WITHOUT_FEEDBACK.capitalize()}, models stay as they were trained. {WITH_FEEDBACK.capitalize()}, "
        f"measurements correct them. {BY_HAND.capitalize()}, they get the true factor at the very event of each drift, "
        "which nobody knows in production."
    )


def _fleets(production: Production) -> pd.DataFrame:
    columns = {
        "fleet": "name", "NICs": "nics", "SLA violations, %": "violations_pct", "after drift, %": "late_violations_pct",
        "placed": "placed", "rejected": "rejected", "moves": "moves", "false alarms": "false_alarms",
    }  # fmt: skip
    rows = [[getattr(fleet, name) for name in columns.values()] for fleet in production.fleets]
    return pd.DataFrame(rows, columns=list(columns))


def _turns(production: Production) -> pd.DataFrame:
    rows = []
    for drift in production.drifts:
        rows.append({TURN_COLUMN: drift.start, "what": f"{drift.nf}: {drift.factor:g} times its throughput"})
        if drift.end is not None:
            rows.append({TURN_COLUMN: drift.end, "what": f"{drift.nf}: as before"})
    return pd.DataFrame(rows, columns=[TURN_COLUMN, "what"])


def _beliefs(production: Production) -> pd.DataFrame:
    """Believed factors with feedback beside the true ones, which are those of the fleet that is corrected by hand."""
    rows = [
        {"curve": f"{nf}, {kind}", "event": point.event, "factor": factor}
        for name, kind in ((WITH_FEEDBACK, "believed"), (BY_HAND, "true"))
        for point in production.fleet(name).points
        for nf, factor in point.believed.items()
    ]
    return pd.DataFrame(rows)


def _alarms(production: Production) -> pd.DataFrame | None:
    alarms = production.fleet(WITH_FEEDBACK).alarms
    if not alarms:
        return None
    rows = [(alarm.event, alarm.nf, alarm.factor, alarm.readings, "yes" if alarm.false else "no") for alarm in alarms]
    return pd.DataFrame(rows, columns=["event", "NF", "factor", "readings", "false"])


# Charts of a simulated production over the events of its trace.


TURN_COLUMN = "turn"  # the column of events at which an NF changes


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
    marks = alt.Chart(turns).mark_rule(style="guide").encode(x=f"{TURN_COLUMN}:Q", tooltip=["what:N"])
    return fit_to_page(layers(lines, marks) if len(turns) else layers(lines), TALL_HEIGHT, names)
