"""The sections of a run's page. A section whose table is empty has no chart, or is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from placer.evaluate.evaluation import Evaluation
from placer.explain.waste import waste_of
from placer.model.oracle import Oracle, PredictorOracle
from placer.policy.rules import LOOK_AHEAD
from placer.report.html import charts, run_tables
from placer.report.html.page import Chart, Figure, Section
from placer.report.text.recommendation import plan_name
from placer.report.wastage import (
    is_marked,
    wastage_notes,
    wastage_text,
)
from placer.run import Comparison
from placer.strategies.contention_aware import ContentionAware


def sections_of_run(comparison: Comparison, chosen: Evaluation) -> Iterator[Section]:
    """All sections, in reading order; `chosen` is the plan that those of a single plan show."""
    names = [plan_name(one) for one in comparison.plans]
    cores = max((kind.cores for kind in comparison.catalogue.kinds), default=1)
    yield _strategies(comparison)
    yield over_time_section(run_tables.nics_over_time(comparison), *_reference_line(comparison))
    yield occupancy_section(
        run_tables.occupancy(comparison), run_tables.co_locations(chosen.plan), cores, plan_name(chosen)
    )
    yield from agreement_section(run_tables.predicted_and_true(comparison), names)
    yield from _of_predictor(comparison, chosen)
    yield from violations_section(run_tables.violations(chosen), plan_name(chosen))


def nics_chart(comparison: Comparison) -> Chart:
    """NICs of every strategy as bars with their wastage; the optimum is a line."""
    return charts.nics(_bars(comparison), *_reference_line(comparison))


def _bars(comparison: Comparison) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "strategy": plan_name(one),
            "nics": one.nics,
            "wastage": wastage_text(comparison.wastage_pct(one), is_marked(comparison, one)),
            "pct": one.violations_pct,
        }
        for one in comparison.plans
    )


def _strategies(comparison: Comparison) -> Section:
    _, caption = _reference_line(comparison)
    bars = _bars(comparison)
    figures = [Figure("nics", f"NICs and wastage of every strategy. The line: {caption}.", nics_chart(comparison))]
    if bars["pct"].notna().all():
        chart = charts.percentages(bars, "SLA violations, % of instances")
        figures.append(Figure("violations", "Instances whose throughput is ever below their SLA.", chart))
    return Section(
        "strategies",
        "NICs and SLA violations by strategy",
        "Compare both charts: few NICs are of no use where SLAs are violated.",
        tuple(figures),
        run_tables.strategies_table(comparison).dropna(axis="columns", how="all"),
        expanded=True,
        notes=tuple(wastage_notes(comparison, comparison.plans)),
    )


def over_time_section(curves: pd.DataFrame, line: int, caption: str) -> Section:
    """NICs in use over time; `curves` as of `nics_over_time`, with a line at the optimum or its lower bound."""
    text = f"NICs in use while instances arrive and depart. The dashed line: {caption}."
    return Section(
        "over-time",
        "NICs over time",
        "A strategy needs as many NICs as it uses at its peak.",
        (Figure("nics-over-time", text, charts.nics_over_time(curves, line, caption)),) if curves["nics"].any() else (),
        curves.groupby("strategy", sort=False).agg(peak=("nics", "max"), end=("nics", "last")).reset_index(),
    )


def occupancy_section(occupancy: pd.DataFrame, co_locations: pd.DataFrame, cores: int, plan: str) -> Section:
    """Cores by NF on the average NIC of every strategy, and the co-locations of one plan."""
    caption = f"Of the {cores} cores of a NIC, how many NFs of each name use on average at the peak."
    return Section(
        "occupancy",
        "NFs on the NICs",
        f"The table lists the co-locations of {plan} at its peak.",
        (Figure("occupancy", caption, charts.occupancy(occupancy, cores)),) if len(occupancy) else (),
        co_locations,
    )


def agreement_section(table: pd.DataFrame, strategies: Sequence[str]) -> Iterator[Section]:
    """Predicted against true throughput, as of `predicted_and_true`; colours are those of all `strategies`."""
    if table.empty:
        return
    errors = table.assign(error=(table["predicted"] - table["true"]).abs() * table["instances"])
    sums = errors.groupby(["strategy", "nf"], sort=False)[["instances", "error"]].sum().reset_index()
    means = sums.assign(error=sums["error"] / sums["instances"])
    caption = "Lowest throughput of every instance. Below the diagonal it is less than predicted, above it is more."
    yield Section(
        "agreement",
        "Predicted and true throughput",
        "An SLA is violated where the true throughput is below the prediction by more than the margin of the plan.",
        (Figure("predicted-and-true", caption, charts.agreement(table, strategies)),),
        means.rename(columns={"nf": "NF", "error": "mean error, points"}),
    )


def _of_predictor(comparison: Comparison, chosen: Evaluation) -> Iterator[Section]:
    """What costs throughput and why capacity is idle, as the predictor of the chosen plan has it."""
    predictor = chosen.plan.predictor
    if predictor is None:
        return
    catalogue = comparison.catalogue
    at_its_risk = catalogue if chosen.plan.risk is None else replace(catalogue, risk=chosen.plan.risk)
    oracles: Sequence[Oracle] = ContentionAware(at_its_risk, predictor).oracles
    predictors = [oracle for oracle in oracles if isinstance(oracle, PredictorOracle)]
    if len(predictors) == len(oracles):
        yield from drops_section(run_tables.drops(chosen.plan, predictors), predictor, plan_name(chosen))
    if chosen.plan.strategy.startswith(ContentionAware.name):
        waste = waste_of(comparison.arrivals, catalogue.kinds, oracles, LOOK_AHEAD)
        yield idle_section(run_tables.idle_capacity(waste), waste.nics)


def drops_section(table: pd.DataFrame, predictor: str, plan: str) -> Iterator[Section]:
    """Predicted throughput drop by NF and resource, as of `drops`."""
    if table.empty:
        return
    caption = "Throughput drop that contention for each resource alone would cause; the largest is the bottleneck."
    yield Section(
        "drops",
        "Throughput drop by resource",
        f"Predicted by {predictor} for {plan} at its peak.",
        (Figure("drop-by-resource", caption, charts.drops(table)),),
        table.rename(columns={"nf": "NF", "drop": "mean drop, %"}),
    )


def idle_section(table: pd.DataFrame, nics: int) -> Section:
    """Idle capacity at the peak by cause, as of `idle_capacity`, of so many NICs in use."""
    title = "Idle capacity by cause"
    if table.empty:
        text = "No capacity is idle at the peak: every core of the NICs in use is taken."
        return Section("waste", title, text if nics else "No NIC is in use.")
    text = f"Capacity worth {table['NICs'].sum():,.1f} of {nics:,} NICs is idle at the peak, for these causes."
    chart = charts.percentages(table, "% of all NICs", "cause")
    return Section(
        "waste",
        title,
        text,
        (Figure("waste-by-cause", "Idle capacity at the peak.", chart),),
        table.rename(columns={"NICs": "idle capacity, NICs", "pct": "% of all NICs"}),
    )


def violations_section(table: pd.DataFrame, plan: str) -> Iterator[Section]:
    """Instances whose SLA is violated, as of `violations`."""
    if table.empty:
        return
    text = f"Of {plan}, the worst first; placer explain TRACE ID shows the alternatives of an arrival."
    yield Section("sla-violations", "SLA violations", text, table=table, expanded=True)


def _reference_line(comparison: Comparison) -> tuple[int, str]:
    """Where charts draw the line against which wastage is measured, and what it is."""
    optimum = comparison.optimum
    if optimum.proven:
        return optimum.nics, f"the optimum, {optimum.nics:,} NICs, proven"
    return optimum.nics_lower_bound, f"the lower bound, {optimum.nics_lower_bound:,} NICs"
