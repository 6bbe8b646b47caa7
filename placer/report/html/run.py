"""The page of `placer run`: the decision, then what speaks for it, then what to look into."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from placer.evaluate.evaluation import Evaluation
from placer.explain.waste import waste_of
from placer.inputs.arrivals import STDIN
from placer.model.oracle import PredictorOracle
from placer.optimal.trace_optimum import NAME as OPTIMAL
from placer.policy.rules import LOOK_AHEAD
from placer.report.html import charts
from placer.report.html import run_tables as figures
from placer.report.html.page import Figure, Page, Section, Tile
from placer.report.text.run import risk_told, truth_told
from placer.run import Comparison
from placer.strategies.contention_aware import ContentionAware

BUDGET_PCT = 2.0
"""Share of broken SLAs up to which a plan is one that somebody may choose."""

INPUT = "standard input"

Frame = pd.DataFrame


def page_of_run(comparison: Comparison, trace: str) -> Page:
    """What a run found, on a page.

    Parameters
    ----------
    comparison
        All strategies on one trace.
    trace
        What the trace is called.
    """
    trace = INPUT if trace == STDIN else trace
    chosen = chosen_of(comparison)
    sections = [_strategies(comparison), _over_time(comparison), _occupancy(comparison, chosen)]
    sections += [*_agreement(comparison), *_explained(comparison, chosen), *_broken(chosen)]
    return Page(
        title=f"Placement of {len(comparison.arrivals):,} NFs: {trace}",
        summary=_summary(comparison, chosen),
        tiles=_tiles(comparison, chosen),
        sections=tuple(sections),
    )


def chosen_of(comparison: Comparison) -> Evaluation:
    """The plan that a planner would take: places most, within the budget of broken SLAs, on fewest NICs.

    The optimum is no choice: it knows the future.
    """
    online = [one for one in comparison.evaluations if one.plan.strategy != OPTIMAL]
    return min(online or comparison.evaluations, key=_worth)


def _worth(one: Evaluation) -> tuple[int, float, float]:
    broken = one.violations_pct or 0.0
    return one.plan.rejected, max(broken - BUDGET_PCT, 0.0), one.cost


def _summary(comparison: Comparison, chosen: Evaluation) -> tuple[str, ...]:
    placed, optimum = len(chosen.plan.placed), comparison.optimum
    if optimum.plan.rejected:
        least = f"The optimum places {len(optimum.plan.placed):,} on {optimum.nics:,} NICs."
    elif optimum.proven:
        least = f"No plan that keeps every SLA does with fewer than {optimum.nics:,}: that is proven."
    else:
        least = f"The best possible lies between {optimum.nics_lower_bound:,} and {optimum.nics:,} NICs."
    if chosen.violated is None:
        broken = "Whether SLAs break is unknown: nobody told the truth."
    else:
        broken = f"{chosen.violated:,} of {placed:,} instances ({chosen.violations_pct:.1f} %) fall below their SLA."
    rejected = [f"{chosen.plan.rejected:,} instances found no place."] if chosen.plan.rejected else []
    return (
        f"{placed:,} NF instances go on {chosen.nics:,} NICs, placed by {figures.name_of(chosen)}.",
        " ".join([broken, *rejected, least]),
        *_thriftier(comparison, chosen),
        " ".join([truth_told(comparison).replace("\n", " "), *risk_told(comparison)]),
    )


def _thriftier(comparison: Comparison, chosen: Evaluation) -> Iterator[str]:
    """Who would do with fewer NICs if it broke fewer SLAs, which it does at a lower risk."""
    for one in comparison.evaluations:
        predictor, broken = one.plan.predictor, one.violations_pct or 0.0
        heeds = predictor is not None and comparison.catalogue.heeds_risk(predictor)
        if heeds and one.nics < chosen.nics and broken > BUDGET_PCT:
            yield (
                f"{figures.name_of(one)} takes {one.nics:,} and breaks {broken:.1f} % of SLAs, more than the "
                f"{BUDGET_PCT:g} % that a choice may; at a lower --risk it breaks fewer."
            )


def _tiles(comparison: Comparison, chosen: Evaluation) -> tuple[Tile, ...]:
    optimum = comparison.optimum
    against = "the proven optimum" if optimum.proven else "the lower bound"
    least = f"{optimum.nics:,}" if optimum.proven else f"{optimum.nics_lower_bound:,}–{optimum.nics:,}"
    broken = "unknown" if chosen.violations_pct is None else f"{chosen.violations_pct:.1f} %"
    return (
        Tile(f"{chosen.nics:,}", "NICs to have"),
        Tile(f"{comparison.wastage_pct(chosen):+.1f} %", f"over {against}"),
        Tile(broken, "of SLAs broken"),
        Tile(least, "NICs are the fewest possible"),
        Tile(_crowd(chosen), "instances per NIC when most are in use"),
    )


def _crowd(chosen: Evaluation) -> str:
    seated = figures.fullest(chosen.plan)
    return f"{sum(len(co_location) for _, co_location in seated.values()) / len(seated):.2f}" if seated else "–"


def _strategies(comparison: Comparison) -> Section:
    table, line, told = figures.strategies_table(comparison), *_optimum_line(comparison)
    rows = [
        {"strategy": figures.name_of(one), "nics": one.nics, "over": f"{comparison.wastage_pct(one):+.1f} %",
         "pct": one.violations_pct}
        for one in comparison.evaluations
    ]  # fmt: skip
    bars = pd.DataFrame(rows)
    drawn = [
        Figure(
            "nics",
            f"NICs of every strategy, and how far over the line they are. The line: {told}.",
            charts.nics(bars, line, told),
        )
    ]
    if bars["pct"].notna().all():
        title = "instances below their SLA, %"
        drawn.append(Figure("violations", "Instances that ever fall below their SLA.", charts.shares(bars, title)))
    return Section(
        "strategies",
        "NICs and broken SLAs by strategy",
        "Few NICs are worth nothing if they break SLAs: both charts belong together.",
        tuple(drawn),
        table.dropna(axis="columns", how="all"),
        in_sight=True,
    )


def _optimum_line(comparison: Comparison) -> tuple[int, str]:
    optimum = comparison.optimum
    if optimum.proven:
        return optimum.nics, f"the optimum, {optimum.nics:,} NICs, proven"
    return optimum.nics_lower_bound, f"the lower bound, {optimum.nics_lower_bound:,} NICs"


def _over_time(comparison: Comparison) -> Section:
    curves, (line, told) = figures.nics_over_time(comparison), _optimum_line(comparison)
    told_too = f"NICs in use while instances arrive and leave. The dashed line: {told}."
    return Section(
        "over-time",
        "NICs over time",
        "What a strategy needs is its peak.",
        (Figure("nics-over-time", told_too, charts.over_time(curves, line, told)),) if len(curves) else (),
        curves.groupby("strategy", sort=False).agg(peak=("nics", "max"), end=("nics", "last")).reset_index(),
    )


def _occupancy(comparison: Comparison, chosen: Evaluation) -> Section:
    table = figures.occupancy(comparison)
    cores = max((kind.cores for kind in comparison.catalogue.kinds), default=1)
    caption = f"Of the {cores} cores of a NIC, how many NFs of each name take on average at the fullest moment."
    return Section(
        "occupancy",
        "Who is on the NICs",
        f"The table has the companies of {figures.name_of(chosen)}.",
        (Figure("occupancy", caption, charts.occupied(table, cores)),) if len(table) else (),
        figures.co_locations(chosen.plan),
    )


def _agreement(comparison: Comparison) -> Iterator[Section]:
    table = figures.predicted_and_true(comparison)
    if table.empty:
        return
    gaps = table.assign(error=(table["predicted"] - table["true"]).abs() * table["instances"])
    by = gaps.groupby(["strategy", "nf"], sort=False)[["instances", "error"]].sum().reset_index()
    numbers = by.assign(error=by["error"] / by["instances"]).rename(columns={"nf": "NF", "error": "mean error, points"})
    names = [figures.name_of(one) for one in comparison.evaluations]
    caption = "Lowest throughput of every instance. Below the diagonal it got less than predicted, above more."
    yield Section(
        "agreement",
        "Predicted and true throughput",
        "An SLA breaks where the truth is below the prediction by more than the margin that the plan left.",
        (Figure("predicted-and-true", caption, charts.agreement(table, names)),),
        numbers,
    )


def _explained(comparison: Comparison, chosen: Evaluation) -> Iterator[Section]:
    """What costs throughput, and what keeps room from being used, as the chosen plan's own predictor has it."""
    predictor = chosen.plan.predictor
    if predictor is None:
        return
    oracles = ContentionAware(comparison.catalogue, predictor).oracles
    predicting = [oracle for oracle in oracles if isinstance(oracle, PredictorOracle)]
    lost = figures.drops(chosen.plan, predicting) if len(predicting) == len(oracles) else Frame()
    if len(lost):
        caption = "What contention for each resource alone would cost; the dearest one is what the NF feels."
        yield Section(
            "drops",
            "What company costs, by resource",
            f"Predicted by {predictor} for {figures.name_of(chosen)} at the fullest moment.",
            (Figure("drop-by-resource", caption, charts.dropped(lost)),),
            lost.rename(columns={"nf": "NF", "drop": "mean drop, %"}),
        )
    if chosen.plan.strategy == ContentionAware.name:
        waste = waste_of(comparison.arrivals, comparison.catalogue.kinds, oracles, LOOK_AHEAD)
        rows = [{"cause": cause, "NICs": idle, "pct": 100 * idle / waste.nics} for cause, idle in waste.idle.items()]
        idle = sum(waste.idle.values())
        told = f"Room worth {idle:,.1f} of {waste.nics:,} NICs idles, for these reasons."
        figure = Figure(
            "waste-by-cause", "Idle room at the fullest moment.", charts.shares(Frame(rows), "% of all NICs", "cause")
        )
        numbers = Frame(rows).rename(columns={"NICs": "room, in NICs", "pct": "% of all NICs"})
        yield Section("waste", "Why room idles", told, (figure,) if rows else (), numbers if rows else None)


def _broken(chosen: Evaluation) -> Iterator[Section]:
    if not chosen.violated:
        return
    yield Section(
        "broken",
        "Instances below their SLA",
        f"By {figures.name_of(chosen)}, the worst first; placer explain TRACE ID tells what else there was.",
        table=figures.broken(chosen),
        in_sight=True,
    )
