"""The page of `placer run`: which plan to choose, the evidence for it, and what to look into."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf

import pandas as pd

from placer.evaluate.columns import page_columns
from placer.evaluate.evaluation import Evaluation
from placer.evaluate.wastage import mark_of, reference, wastage_notes, wastage_text
from placer.explain.waste import Waste, waste_of
from placer.model.arrival import Arrival
from placer.model.day import has_days
from placer.model.fleet import Fleet
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, PredictorOracle
from placer.model.plan import Plan, replay_plan
from placer.policy.rules import LOOK_AHEAD
from placer.report.html import charts
from placer.report.html.page import Chart, Figure, Page, Section, Tile
from placer.report.text import recommendation as choice
from placer.report.text.run import load_notes, note_measurements, risk_notes, truth_note
from placer.report.text.table import count_nics
from placer.run import Comparison
from placer.strategies.contention_aware import ContentionAware
from profiles import CoLocation
from profiles.files.lines import STDIN

STANDARD_INPUT = "standard input"


def page_of_run(comparison: Comparison, trace: str) -> Page:
    """The page of a run. `comparison`: all strategies on one trace. `trace`: name of the trace."""
    trace = STANDARD_INPUT if trace == STDIN else trace
    chosen = choice.choose_plan(comparison)
    return Page(
        title=f"Placement of {len(comparison.arrivals):,} NFs: {trace}",
        summary=_summary(comparison, chosen),
        tiles=_tiles(comparison, chosen),
        sections=tuple(sections_of_run(comparison, chosen)),
    )


def _summary(comparison: Comparison, chosen: Evaluation) -> tuple[str, ...]:
    if chosen.violated is None:
        violations = "SLA violations are unknown: there is no ground truth."
        if chosen.expected_violations_pct is not None:
            violations += f" {choice.violations_sentence(comparison, chosen)}"
    else:
        violations = choice.violations_sentence(comparison, chosen)
    notes = [truth_note(comparison).replace("\n", " "), *load_notes(comparison), *risk_notes(comparison)]
    return (
        f"{choice.plan_name(chosen)} places {len(chosen.plan.placed):,} NF instances on {count_nics(chosen.nics)}.",
        f"{violations} {_optimum_sentence(comparison)}",
        *wastage_notes(comparison, [chosen]),
        *choice.rejection_lines(comparison),
        *choice.spare_lines(chosen),
        *choice.further_lines(comparison),
        *note_measurements(comparison),
        " ".join(notes),
    )


def _optimum_sentence(comparison: Comparison) -> str:
    optimum = comparison.optimum
    if optimum.plan.rejected:
        placed, rejected = len(optimum.plan.placed), optimum.plan.rejected
        return f"The optimum places {placed:,} on {count_nics(optimum.nics)} and rejects {rejected:,}."
    if optimum.proven:
        return f"The optimum is {count_nics(optimum.nics)}, proven: no plan without SLA violations uses fewer."
    bound = count_nics(optimum.nics_lower_bound)
    return f"The optimum is between {bound}, the lower bound, and {count_nics(optimum.nics)}."


def _tiles(comparison: Comparison, chosen: Evaluation) -> tuple[Tile, ...]:
    optimum = comparison.optimum
    wastage = wastage_text(comparison.wastage_pct(chosen), mark_of(comparison, chosen))
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


# The sections of a run's page. A section whose table is empty has no chart, or is left out.


def sections_of_run(comparison: Comparison, chosen: Evaluation) -> Iterator[Section]:
    """All sections, in reading order; `chosen` is the plan that those of a single plan show."""
    names = [choice.plan_name(plan) for plan in comparison.plans]
    cores = max((kind.cores for kind in comparison.catalogue.kinds), default=1)
    _, caption = _reference_line(comparison)
    bars = _bars(comparison)
    figures = [Figure("nics", f"NICs and wastage of every strategy. The line: {caption}.", nics_chart(comparison))]
    if bars["pct"].notna().all():
        chart = charts.percentages(bars, "SLA violations, % of instances")
        figures.append(Figure("violations", "Instances whose throughput is ever below their SLA.", chart))
    yield Section(
        "strategies",
        "NICs and SLA violations by strategy",
        "Compare both charts: few NICs are of no use where SLAs are violated.",
        tuple(figures),
        strategies_table(comparison).dropna(axis="columns", how="all"),
        expanded=True,
        notes=tuple(wastage_notes(comparison, comparison.plans)),
    )
    yield over_time_section(nics_over_time(comparison), *_reference_line(comparison))
    yield occupancy_section(occupancy(comparison), co_locations(chosen.plan), cores, choice.plan_name(chosen))
    loaded = any(not arrival.workload.is_saturated for arrival in comparison.arrivals)
    reference = "alone or of the offered rate" if loaded else "alone"
    yield from agreement_section(compare_with_truth(comparison), names, reference)
    yield from _of_predictor(comparison, chosen)
    yield from violations_section(violations(chosen), choice.plan_name(chosen))


def nics_chart(comparison: Comparison) -> Chart:
    """NICs of every strategy as bars with their wastage; the optimum is a line."""
    return charts.nics(_bars(comparison), *_reference_line(comparison))


def _bars(comparison: Comparison) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "strategy": choice.plan_name(plan),
            "nics": plan.nics,
            "wastage": wastage_text(comparison.wastage_pct(plan), mark_of(comparison, plan)),
            "pct": plan.violations_pct,
        }
        for plan in comparison.plans
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
    caption = f"Average cores used per NIC at the peak, by NF (each NIC has {cores})."
    return Section(
        "occupancy",
        "NFs on the NICs",
        f"The table lists the co-locations of {plan} at its peak.",
        (Figure("occupancy", caption, charts.occupancy(occupancy, cores)),) if len(occupancy) else (),
        co_locations,
    )


def agreement_section(table: pd.DataFrame, strategies: Sequence[str], of: str = "alone") -> Iterator[Section]:
    """Predicted against true throughput, as of `compare_with_truth`, in % of what `of` says. Colours are those of all
    `strategies`."""
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
        (Figure("predicted-and-true", caption, charts.agreement(table, strategies, of)),),
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
    if len(predictors) == len(oracles) and not has_days(comparison.arrivals):  # else peaks are never at once
        yield from drops_section(drops(chosen.plan, predictors), predictor, choice.plan_name(chosen))
    if chosen.plan.strategy.startswith(ContentionAware.name):
        waste = waste_of(comparison.arrivals, catalogue.kinds, oracles, LOOK_AHEAD)
        yield idle_section(idle_capacity(waste), waste.nics)


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


# A comparison as tables: the numbers behind every chart of its page.


RARE_KEYS = ("cost_wastage_pct", "rejected_by_priority")  # columns that most comparisons have not

MOST_CURVE_POINTS = 400
"""Points at most that a curve over time has."""

NicStates = Mapping[str, tuple[NicKind, CoLocation]]
"""Per NIC its kind and its co-location."""


def strategies_table(comparison: Comparison) -> pd.DataFrame:
    """A row per strategy: NICs, wastage, SLA violations, rejected arrivals, cost; `note` marks unfair comparisons."""
    columns = [column for column in page_columns() if column.key not in RARE_KEYS or column.where(comparison)]
    return pd.DataFrame(
        {column.page: column.on_page(comparison, plan) for column in columns} for plan in comparison.plans
    )


def nics_over_time(comparison: Comparison) -> pd.DataFrame:
    """`strategy`, `time` (s) and `nics` in use from then on; of many moments, the maximum of each interval."""
    curves = [pd.DataFrame(columns=["time", "nics", "strategy"])]
    for plan in comparison.plans:
        fleet = _empty_fleet(plan.plan)
        moments = [(max(time, 0.0), len(fleet.nics)) for time, _ in replay_plan(plan.plan, fleet)]
        curve = pd.DataFrame(moments, columns=["time", "nics"])
        interval = max(-(-len(curve) // MOST_CURVE_POINTS), 1)
        maxima = curve.groupby(curve.index // interval)["nics"].idxmax()
        curves.append(curve.loc[maxima].assign(strategy=choice.plan_name(plan)))
    return pd.concat([curve for curve in curves if len(curve)] or curves[:1], ignore_index=True)


def peak_co_locations(plan: Plan) -> NicStates:
    """Kind and co-location of every NIC when most NICs are in use, and of such moments when most instances run."""
    fleet = _empty_fleet(plan)
    peak: tuple[int, int] = (0, 0)
    nics: NicStates = {}
    for _ in replay_plan(plan, fleet):
        if (len(fleet.nics), fleet.tenants) > peak:
            peak = len(fleet.nics), fleet.tenants
            nics = {nic.id: (nic.kind, nic.co_location) for nic in fleet.nics.values()}
    return nics


def occupancy(comparison: Comparison) -> pd.DataFrame:
    """`strategy`, `nf` and the `cores` that NFs of that name use on the average NIC at the peak."""
    rows = []
    for plan in comparison.plans:
        nics = peak_co_locations(plan.plan)
        cores: Counter[str] = Counter()
        for kind, co_location in nics.values():
            for workload in co_location:
                cores[workload.nf] += kind.cores_for(workload)
        rows += [(choice.plan_name(plan), nf, used / len(nics)) for nf, used in sorted(cores.items())]
    return pd.DataFrame(rows, columns=["strategy", "nf", "cores"])


def co_locations(plan: Plan) -> pd.DataFrame:
    """A row per co-location at the peak, the most frequent first."""
    seen: Counter[tuple[str, str]] = Counter()
    for kind, co_location in peak_co_locations(plan).values():
        nfs = Counter(workload.nf for workload in co_location)
        seen[kind.model, " + ".join(f"{count} {nf}" if count > 1 else nf for nf, count in nfs.items())] += 1
    rows = [
        (co_location, model, nics)
        for (model, co_location), nics in sorted(seen.items(), key=lambda one: (-one[1], one[0]))
    ]
    return pd.DataFrame(rows, columns=["NFs that share a NIC", "NIC model", "NICs"])


def compare_with_truth(comparison: Comparison) -> pd.DataFrame:
    """`strategy`, `nf`, lowest `predicted` and `true` throughput in % of alone, and how many `instances` are equal. Of
    an instance at an offered rate, it is in % of that."""
    rows = []
    for plan in comparison.plans:
        if plan.plan.predictor is None or plan.stays is None or plan.expected is None:
            continue
        for placement in plan.plan.placed:
            expected, true = plan.expected[placement.arrival.id], plan.stays[placement.arrival.id]
            rows.append(
                (
                    choice.plan_name(plan),
                    placement.arrival.workload.nf,
                    100 * expected.throughput_kpps / (expected.solo_kpps or inf),
                    100 * true.throughput_kpps / (true.solo_kpps or inf),
                )
            )
    columns = ["strategy", "nf", "predicted", "true"]
    table = pd.DataFrame(rows, columns=columns).round(2)
    return table.groupby(columns, as_index=False, sort=False).size().rename(columns={"size": "instances"})


def drops(plan: Plan, oracles: Sequence[PredictorOracle]) -> pd.DataFrame:
    """`nf`, `resource` and the mean predicted `drop` (% of alone) that contention for it alone causes at the peak."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    nics = peak_co_locations(plan).values()
    for kind in dict.fromkeys(kind for kind, _ in nics):
        of_kind = [co_location for other, co_location in nics if other is kind]
        for co_location, answers in zip(of_kind, oracles[kind.index].predictor.predict(of_kind), strict=True):
            for workload, answer in zip(co_location, answers, strict=True):
                for resource, drop in answer.drops.items():
                    found[workload.nf, resource].append(100 * drop / answer.solo_kpps)
    rows = [(nf, resource, sum(values) / len(values)) for (nf, resource), values in sorted(found.items())]
    return pd.DataFrame(rows, columns=["nf", "resource", "drop"])


def idle_capacity(waste: Waste) -> pd.DataFrame:
    """`cause`, idle capacity in `NICs` and as `pct` of all NICs in use."""
    rows = [(cause, idle, 100 * idle / waste.nics) for cause, idle in waste.idle.items()]
    return pd.DataFrame(rows, columns=["cause", "NICs", "pct"])


VIOLATION_COLUMNS = (
    "instance", "NF", "NIC", "co-located with", "offered, kpps", "required, kpps", "predicted, kpps", "true, kpps",
    "short by, %",
)  # fmt: skip


def violations(evaluation: Evaluation) -> pd.DataFrame:
    """A row per instance whose SLA is violated, the worst first; of loads over the day, in the part that is worst."""
    tenants = defaultdict(list)
    for placement in evaluation.plan.placed:
        tenants[placement.nic].append(placement.arrival)
    rows = []
    for placement in evaluation.plan.placed:
        arrival, stay = placement.arrival, (evaluation.stays or {}).get(placement.arrival.id)
        if stay is None or stay.sla_met:
            continue
        expected = (evaluation.expected or {}).get(arrival.id)
        others = [
            tenant.workload.nf
            for tenant in tenants[placement.nic]
            if tenant is not arrival and _overlap(tenant, arrival)
        ]
        rows.append(
            (
                arrival.id,
                arrival.workload.nf,
                placement.nic,
                ", ".join(others),
                None if arrival.workload.is_saturated else stay.offered_kpps,
                stay.required_kpps,
                expected.throughput_kpps if expected else None,
                stay.throughput_kpps,
                100 * (1 - stay.throughput_kpps / stay.required_kpps),
            )
        )
    table = pd.DataFrame(rows, columns=list(VIOLATION_COLUMNS))
    if not table["offered, kpps"].notna().any():
        table = table.drop(columns="offered, kpps")
    return table.sort_values("short by, %", ascending=False, kind="stable")


def _overlap(one: Arrival, other: Arrival) -> bool:
    """Whether both run at some moment."""
    first, second = sorted((one, other), key=lambda arrival: arrival.begins)
    return first.departure is None or first.departure > second.begins


def _empty_fleet(plan: Plan) -> Fleet:
    kinds = {placement.kind.index: placement.kind for placement in plan.placed if placement.kind}
    return Fleet([kinds[index] for index in sorted(kinds)])
