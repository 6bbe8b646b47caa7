"""The page of `placer run`: which plan to choose, the evidence for it, and what to look into."""

from __future__ import annotations

from placer.evaluate.evaluation import Evaluation
from placer.inputs.lines import STDIN
from placer.report.html.page import Page, Tile
from placer.report.html.run_sections import sections_of_run
from placer.report.html.run_tables import peak_co_locations
from placer.report.text.counts import counted_nics
from placer.report.text.recommendation import budget_cost, missed_budget, plan_name, recommended_plan
from placer.report.text.run import measured_notes, risk_notes, truth_note
from placer.report.wastage import is_marked, reference, wastage_notes, wastage_text
from placer.run import Comparison

INPUT = "standard input"


def page_of_run(comparison: Comparison, trace: str) -> Page:
    """The page of a run.

    Parameters
    ----------
    comparison
        All strategies on one trace.
    trace
        Name of the trace.
    """
    trace = INPUT if trace == STDIN else trace
    chosen = recommended_plan(comparison)
    return Page(
        title=f"Placement of {len(comparison.arrivals):,} NFs: {trace}",
        summary=_summary(comparison, chosen),
        tiles=_tiles(comparison, chosen),
        sections=tuple(sections_of_run(comparison, chosen)),
    )


def _summary(comparison: Comparison, chosen: Evaluation) -> tuple[str, ...]:
    placed, rejected = len(chosen.plan.placed), chosen.plan.rejected
    if chosen.violated is None:
        violations = "SLA violations are unknown: there is no ground truth."
    else:
        violations = f"{chosen.violated:,} of {placed:,} instances ({chosen.violations_pct:.1f} %) violate their SLA."
    rejections = [f"{rejected:,} arrivals are rejected."] if rejected else []
    notes = [truth_note(comparison).replace("\n", " "), *risk_notes(comparison)]
    return (
        f"{plan_name(chosen)} places {placed:,} NF instances on {counted_nics(chosen.nics)}.",
        " ".join([violations, *rejections, _optimum_sentence(comparison)]),
        *wastage_notes(comparison, [chosen]),
        *missed_budget(comparison, chosen),
        *budget_cost(comparison, chosen),
        *measured_notes(comparison),
        " ".join(notes),
    )


def _optimum_sentence(comparison: Comparison) -> str:
    optimum = comparison.optimum
    if optimum.plan.rejected:
        placed, rejected = len(optimum.plan.placed), optimum.plan.rejected
        return f"The optimum places {placed:,} on {counted_nics(optimum.nics)} and rejects {rejected:,}."
    if optimum.proven:
        return f"The optimum is {counted_nics(optimum.nics)}, proven: no plan without SLA violations uses fewer."
    bound = counted_nics(optimum.nics_lower_bound)
    return f"The optimum is between {bound}, the lower bound, and {counted_nics(optimum.nics)}."


def _tiles(comparison: Comparison, chosen: Evaluation) -> tuple[Tile, ...]:
    optimum = comparison.optimum
    wastage = wastage_text(comparison.wastage_pct(chosen), is_marked(comparison, chosen))
    violations = "unknown" if chosen.violations_pct is None else f"{chosen.violations_pct:.1f} %"
    bounds = f"{optimum.nics:,}" if optimum.proven else f"{optimum.nics_lower_bound:,}–{optimum.nics:,}"
    return (
        Tile(f"{chosen.nics:,}", "NICs"),
        Tile(wastage, f"wastage against the {reference(comparison)}"),
        Tile(violations, "SLA violations"),
        Tile(bounds, "NICs, proven optimum" if optimum.proven else "NICs, bounds of the optimum"),
        Tile(_instances_per_nic(chosen), "instances per NIC at the peak"),
    )


def _instances_per_nic(chosen: Evaluation) -> str:
    nics = peak_co_locations(chosen.plan)
    return f"{sum(len(co_location) for _, co_location in nics.values()) / len(nics):.2f}" if nics else "–"
