"""The columns of a comparison: what is reported of each plan, in every format.

A column is one entry of `RESULT_COLUMNS`. Its key names it in JSON, in CSV, in the DataFrame of
`PlacementResult.table` and in docs/formats; those with a heading are in the table on a terminal, those with a page
heading in the HTML report."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from placer.evaluate import wastage
from placer.evaluate.evaluation import Evaluation, to_buy
from placer.model.arrival import have_priorities
from placer.model.day import has_days
from placer.model.fleet import Fleet
from placer.model.nic_kind import NicKind
from placer.model.plan import Plan, replay_plan

MOST_PRIORITIES = 3  # priorities that a cell of a table lists at most

Value = Callable[[wastage.Compared, Evaluation], object]
Cell = Callable[[wastage.Compared, Evaluation], str]


@dataclass(frozen=True)
class TableColumn:
    """One figure of a plan.

    `key`: its name for programs; empty where only people see it. `value`: the figure, as JSON holds it: rounded, None
    where it is not known. `help`: what it is, in a line, with its unit. `heading`, `cell`: its heading in the text
    table, and how the figure is written there. `page`, `page_value`: its heading in the HTML report, and the figure
    there; by default `value`. `where`: whether the tables for people have it. `in_json`: whether the output for
    programs has it. `in_studies`: the figure in the results of studies, which know no optimum; None where they have no
    such column."""

    key: str
    value: Value
    help: str
    heading: str = ""
    cell: Cell | None = None
    page: str = ""
    page_value: Value | None = None
    where: Callable[[wastage.Compared], bool] = lambda compared: True
    in_json: Callable[[wastage.Compared, Evaluation], bool] = lambda compared, evaluation: True
    in_studies: Callable[[Sequence[NicKind], Evaluation], float | None] | None = None

    def text(self, compared: wastage.Compared, evaluation: Evaluation) -> str:
        """The cell of the text table."""
        return str(self.value(compared, evaluation)) if self.cell is None else self.cell(compared, evaluation)

    def on_page(self, compared: wastage.Compared, evaluation: Evaluation) -> object:
        """The cell of the HTML report."""
        return (self.page_value or self.value)(compared, evaluation)


def decisions_per_s(evaluation: Evaluation) -> float:
    """Arrivals decided per second of placing."""
    return len(evaluation.plan.placements) / max(evaluation.plan.seconds, 1e-9)


def round_figure(value: float | None) -> float | None:
    """A figure as outputs for programs have it."""
    return None if value is None else round(value, 4)


def whole(value: float) -> float | int:
    """A cost without decimals where it has none."""
    return int(value) if float(value).is_integer() else value


def percent(value: float | None, unknown: str) -> str:
    """A share as the table has it."""
    return unknown if value is None else f"{value:.1f} %"


def expects_violations(compared: wastage.Compared) -> bool:
    """Whether violations are expected of some plan."""
    return any(evaluation.expected_violations_pct is not None for evaluation in compared.plans)


def _align(compared: wastage.Compared, evaluation: Evaluation, pct: float | None) -> str:
    """A wastage with its mark; where some plan is marked, the wastage of others is aligned with it."""
    mark = wastage.mark_of(compared, evaluation)
    widest = max(len(wastage.mark_of(compared, other)) for other in compared.plans)
    return wastage.wastage_text(pct, mark) + " " * (widest + bool(widest) - len(mark) - bool(mark))


def _of_budget(name: str) -> Value:
    """A figure of a plan that was made for a budget with all arrivals known."""

    def value(compared: wastage.Compared, evaluation: Evaluation) -> object:
        found = getattr(evaluation.plan.within, name)
        if name == "reserve_pct":
            return round_figure(found)
        return whole(found) if name == "lower_bound" else found

    return value


def _has_budget(compared: wastage.Compared, evaluation: Evaluation) -> bool:
    return evaluation.plan.within is not None


def _is_measured(compared: wastage.Compared, evaluation: Evaluation) -> bool:
    return any(evaluation.measured_pct is not None for evaluation in compared.plans)


def spare_cores_pct(kinds: Sequence[NicKind], evaluation: Evaluation) -> float | None:
    """Cores that no NF uses when most NICs are in use, per 100 cores of these NICs; None where none is in use."""
    fleet = Fleet(kinds)
    peak, cores, used = 0, 0, 0
    for _ in replay_plan(evaluation.plan, fleet):
        if len(fleet.nics) > peak:
            peak = len(fleet.nics)
            cores = sum(nic.kind.cores for nic in fleet.nics.values())
            used = sum(nic.kind.cores_taken(nic.co_location) for nic in fleet.nics.values())
    return round_figure(100.0 * (1.0 - used / cores)) if cores else None


def _spare_by_model(compared: wastage.Compared, evaluation: Evaluation) -> dict[str, int]:
    added = evaluation.spare.added if evaluation.spare else None
    return dict(sorted(Counter(kind.model for kind in added or ()).items()))


def _changes_over_day(compared: wastage.Compared, evaluation: Evaluation) -> bool:
    return has_days(placement.arrival for placement in evaluation.plan.placements)


def _peak_nics(compared: wastage.Compared, evaluation: Evaluation) -> int:
    """The NICs by peaks; what a strategy needs that places by peaks anyway."""
    return evaluation.nics if evaluation.plan.peak_nics is None else evaluation.plan.peak_nics


def _has_priorities(compared: wastage.Compared, evaluation: Evaluation) -> bool:
    return have_priorities(placement.arrival for placement in evaluation.plan.placements)


def losses_by_name(plan: Plan) -> dict[str, int]:
    """How many arrivals of each priority the plan rejects, as JSON holds it."""
    return {str(priority): count for priority, count in plan.rejected_by_priority.items()}


def _lost_by_priority(compared: wastage.Compared, evaluation: Evaluation) -> str:
    """The priorities of which arrivals are rejected, each with how many; `-` for none."""
    lost = [f"{priority}: {count:,}" for priority, count in evaluation.plan.rejected_by_priority.items() if count]
    more = len(lost) - MOST_PRIORITIES
    return ", ".join([*lost[:MOST_PRIORITIES], *([f"+{more:,}"] if more > 0 else [])]) or "-"


RESULT_COLUMNS = (
    TableColumn(
        "strategy", lambda compared, judged: judged.plan.strategy, "which rule placed", "strategy", page="strategy"
    ),
    TableColumn(
        "predictor",
        lambda compared, judged: judged.plan.predictor,
        "which predictor it used; strategies that predict nothing have none",
        "predictor",
        lambda compared, judged: judged.plan.predictor or "-",
        page="predictor",
        page_value=lambda compared, judged: judged.plan.predictor or "-",
    ),
    TableColumn(
        "nics",
        lambda compared, judged: judged.nics,
        "NICs at the peak",
        "NICs",
        lambda compared, judged: f"{judged.nics:,}",
        "NICs",
    ),
    TableColumn(
        "spare_nics",
        lambda compared, judged: judged.spare_nics,
        "empty NICs beside these with which the NICs or domains of `--spare` and `--spare-domains` may fail",
        "spare",
        lambda compared, judged: "none left" if judged.lacks_spare else f"{judged.spare_nics or 0:,}",
        "spare NICs",
        where=lambda compared: any(judged.spare is not None for judged in compared.plans),
        in_json=lambda compared, judged: judged.spare is not None,
    ),
    TableColumn(
        "spare_by_model",
        _spare_by_model,
        "the same by model; empty where the fleet has not enough of them",
        in_json=lambda compared, judged: judged.spare is not None,
    ),
    TableColumn(
        "peak_nics",
        _peak_nics,
        "the same of its plan as if each instance had its peak all day",
        "by peaks",
        lambda compared, judged: f"{_peak_nics(compared, judged):,}",
        where=lambda compared: _changes_over_day(compared, compared.plans[0]),
        in_json=lambda compared, judged: _changes_over_day(compared, judged),
    ),
    TableColumn(
        "wastage_pct",
        lambda compared, judged: round_figure(compared.wastage_pct(judged)),
        "NICs beyond the reference, %",
        "wastage",
        lambda compared, judged: _align(compared, judged, compared.wastage_pct(judged)),
        "wastage, %",
        lambda compared, judged: compared.wastage_pct(judged),
    ),
    TableColumn(
        "wastage_against",
        lambda compared, judged: wastage.reference(compared).replace(" ", "_"),
        "the reference of wastage: `optimum`, or `lower_bound` where the optimum is not proven",
    ),
    TableColumn(
        "",
        lambda compared, judged: None,
        "",
        page="note",
        page_value=lambda compared, judged: wastage.MARK_MEANINGS.get(wastage.mark_of(compared, judged)),
    ),
    TableColumn(
        "sla_violations_pct",
        lambda compared, judged: round_figure(judged.violations_pct),
        "instances that violate their SLA by the ground truth, per 100 placed",
        "SLA violations",
        lambda compared, judged: percent(judged.violations_pct, "unknown"),
        "SLA violations, %",
        lambda compared, judged: judged.violations_pct,
    ),
    TableColumn(
        "expected_violations_pct",
        lambda compared, judged: round_figure(judged.expected_violations_pct),
        "the same as the predictor expects it, by its measured errors",
        "expected",
        lambda compared, judged: percent(judged.expected_violations_pct, "-"),
        "expected, %",
        lambda compared, judged: judged.expected_violations_pct,
        where=expects_violations,
    ),
    TableColumn(
        "violated",
        lambda compared, judged: judged.violated,
        "number of instances that violate their SLA",
        page="SLA violations",
    ),
    TableColumn(
        "rejected",
        lambda compared, judged: judged.plan.rejected,
        "arrivals without a NIC",
        "rejected",
        lambda compared, judged: f"{judged.plan.rejected:,}",
        "rejected",
    ),
    TableColumn(
        "rejected_by_priority",
        lambda compared, judged: losses_by_name(judged.plan),
        "arrivals without a NIC of each priority",
        "by priority",
        _lost_by_priority,
        "rejected by priority",
        _lost_by_priority,
        where=lambda compared: any(_has_priorities(compared, judged) for judged in compared.plans[:1]),
        in_json=_has_priorities,
    ),
    TableColumn("seconds", lambda compared, judged: round(judged.plan.seconds, 4), "time of placing, s"),
    TableColumn(
        "decisions_per_s",
        lambda compared, judged: round(decisions_per_s(judged), 1),
        "arrivals decided per second",
        "decisions/s",
        lambda compared, judged: f"{decisions_per_s(judged):,.0f}",
    ),
    TableColumn(
        "cost",
        lambda compared, judged: whole(judged.whole_cost),
        "cost of the NICs at the peak, spare ones included",
        "cost",
        lambda compared, judged: f"{judged.whole_cost:,.6g}",
        "cost",
        lambda compared, judged: judged.whole_cost,
        where=wastage.costs_differ,
    ),
    TableColumn(
        "cost_wastage_pct",
        lambda compared, judged: round_figure(compared.cost_wastage_pct(judged)),
        "cost beyond the reference, %",
        "cost wastage",
        lambda compared, judged: _align(compared, judged, compared.cost_wastage_pct(judged)),
        "cost wastage, %",
        lambda compared, judged: compared.cost_wastage_pct(judged),
        where=wastage.costs_differ,
    ),
    TableColumn(
        "to_buy",
        lambda compared, judged: to_buy(judged.plan, compared.catalogue.kinds, judged.spare),
        "NICs to buy, by model",
    ),
    TableColumn("budget_pct", lambda compared, judged: compared.catalogue.budget_pct, "SLA violations to accept, %"),
    TableColumn(
        "keeps_budget",
        lambda compared, judged: (
            None if compared.catalogue.budget_pct is None else wastage.keeps_budget(compared, judged)
        ),
        "whether it has no more SLA violations than that",
    ),
    TableColumn(
        "risk", lambda compared, judged: judged.plan.risk, "the chance that an NF is slower than placement assumes"
    ),
    TableColumn(
        "comparable",
        lambda compared, judged: not wastage.is_marked(compared, judged),
        "whether its wastage can be compared with that of the optimum",
    ),
    TableColumn(
        "short_by_pct",
        lambda compared, judged: round_figure(judged.short_by_pct),
        "how far the worst instance is below the throughput of its SLA, %",
    ),
    TableColumn(
        "spare_cores_pct",
        lambda compared, judged: spare_cores_pct(compared.catalogue.kinds, judged),
        "cores that no NF uses when most NICs are in use, %",
        page="spare cores, %",
        in_studies=spare_cores_pct,
    ),
    TableColumn("reserve_pct", _of_budget("reserve_pct"), "what was kept back of the budget, %", in_json=_has_budget),
    TableColumn(
        "bound_nics", _of_budget("nics_lower_bound"), "no plan within the budget uses fewer NICs", in_json=_has_budget
    ),
    TableColumn("lower_bound", _of_budget("lower_bound"), "no plan within the budget costs less", in_json=_has_budget),
    TableColumn(
        "proven", _of_budget("proven"), "whether it is the cheapest plan within the budget", in_json=_has_budget
    ),
    TableColumn("scope", _of_budget("scope"), "among which plans", in_json=_has_budget),
    TableColumn(
        "measured_runs", lambda compared, judged: judged.measured_runs, "runs that were measured", in_json=_is_measured
    ),
    TableColumn(
        "measured_pct",
        lambda compared, judged: round_figure(judged.measured_pct),
        "instances all of whose co-locations were measured, %",
        in_json=_is_measured,
    ),
    TableColumn(
        "unmeasured",
        lambda compared, judged: None if judged.measured_runs is None else [list(nfs) for nfs in judged.unmeasured],
        "the NFs of each co-location that was not measured",
        in_json=_is_measured,
    ),
)

BY_KEY = {column.key: column for column in RESULT_COLUMNS}

TABLE_KEYS = (
    "strategy", "predictor", "nics", "spare_nics", "peak_nics", "cost", "wastage_pct", "cost_wastage_pct",
    "sla_violations_pct", "expected_violations_pct", "rejected", "rejected_by_priority", "decisions_per_s",
)  # fmt: skip
"""First of the columns of the text table, in this order; others with a heading follow."""

PAGE_KEYS = (
    "strategy", "predictor", "nics", "spare_nics", "wastage_pct", "", "violated", "sla_violations_pct",
    "expected_violations_pct", "rejected", "rejected_by_priority", "cost", "cost_wastage_pct",
)  # fmt: skip
"""First of the columns of the HTML report; others with a page heading follow."""


def table_columns(compared: wastage.Compared) -> list[TableColumn]:
    """The columns of the text table, in their order."""
    keys = dict.fromkeys([*TABLE_KEYS, *(column.key for column in RESULT_COLUMNS if column.heading)])
    return [BY_KEY[key] for key in keys if BY_KEY[key].where(compared)]


def page_columns() -> list[TableColumn]:
    """The columns of the HTML report, in their order; cost wastage is left out where all NICs cost the same."""
    return [
        BY_KEY[key] for key in dict.fromkeys([*PAGE_KEYS, *(column.key for column in RESULT_COLUMNS if column.page)])
    ]


def figures_of(compared: wastage.Compared, evaluation: Evaluation) -> dict[str, object]:
    """All figures of a plan by key, as JSON holds them."""
    return {
        column.key: column.value(compared, evaluation)
        for column in RESULT_COLUMNS
        if column.key and column.in_json(compared, evaluation)
    }
