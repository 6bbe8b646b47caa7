"""Sizing: how many NICs a fleet needs as its trace grows, and which option is cheapest within a budget of violations.

Every option is evaluated at next year's arrivals. The curves of an option use only the risk that is best there.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from placer.inputs.arrivals import MOST_ARRIVALS, read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.inputs.models import Say
from placer.model.catalogue import Catalogue
from placer.progress import Progress
from placer.run import choose_predictors, strategy_names
from placer.studies.execute import execute
from placer.studies.executors import Executor
from placer.studies.growth import Growth, arrivals_csv, grow
from placer.studies.run_task import RunTask, Value, at_each_risk
from placer.studies.statistics import summarize
from placer.studies.study_tasks import fleet_name, refuse_same_names
from profiles import InputError

TODAY = "today"
"""The axis of the unchanged trace; the other axes are the fields of `Growth`."""

OPTION = ("fleet", "strategy", "predictor", "risk")
"""Columns of what a planner can choose."""

POINT = ("axis", "factor")

Point = tuple[str, float, Growth]
"""Axis, factor and growth."""


@dataclass(frozen=True)
class Sizing:
    """A question about next year's fleet.

    Parameters
    ----------
    arrivals
        Path of today's trace.
    next_year
        The arrivals to buy for, as a factor of today's.
    growth
        Factors of the curve over arrivals.
    sla, flows, packet_size
        Factors of the other curves, all at next year's arrivals; empty draws none.
    budget_pct
        Allowed SLA violations, % of the instances.
    strategies, predictors, risks, fleets
        The options; risks and fleets as of a study.
    draws
        How many traces are drawn for every point.
    seed
        Seed of all draws.
    models, testbed
        As of `Cards`.
    time_limit
        Seconds for the optimum where it is among the strategies.
    """

    arrivals: str
    next_year: float = 1.5
    growth: tuple[float, ...] = (1.0, 2.0, 4.0, 7.0, 10.0)
    sla: tuple[float, ...] = ()
    flows: tuple[float, ...] = ()
    packet_size: tuple[float, ...] = ()
    budget_pct: float = 2.0
    strategies: tuple[str, ...] = ("greedy", "contention-aware")
    predictors: tuple[str, ...] = ("tomur",)
    risks: tuple[float, ...] = (0.05, 0.25, 0.5)
    fleets: tuple[Path, ...] = ()
    draws: int = 5
    seed: int = 0
    models: Path | None = None
    testbed: str | None = None
    time_limit: float = 10.0


@dataclass(frozen=True)
class Recommendation:
    """What to buy.

    Parameters
    ----------
    option
        Fleet, strategy, predictor and risk, by column name.
    today
        NICs that the option needs for today's trace.
    nics, low, high
        NICs that it needs next year: the median, and the range of at least four draws in five.
    violations_pct
        SLA violations next year, % of the instances, mean of all draws; None without a ground truth.
    rejected
        Arrivals rejected next year, at most in nine draws in ten.
    within_budget
        Whether it keeps the budget and rejects no arrival; False where no option does.
    """

    option: dict[str, Value]
    today: int
    nics: int
    low: int
    high: int
    violations_pct: float | None
    rejected: int
    within_budget: bool

    @property
    def more(self) -> int:
        """NICs to buy: enough for at least nine draws in ten."""
        return max(self.high - self.today, 0)


def size(sizing: Sizing, out: Path, progress: Progress, *, executor: Executor | None = None) -> pd.DataFrame:
    """The rows of every run; `out` keeps them, and runs whose results it holds are not repeated.

    Raises
    ------
    InputError
        When a name, the trace, a fleet or the models are refused.
    """
    tasks = option_tasks(sizing, progress.say)
    with progress.task("options") as advance:
        options = execute(tasks, out, executor=executor, advance=advance)
    tasks += curve_tasks(sizing, options_of(options, sizing), progress.say)
    with progress.task("curves") as advance:
        return execute(tasks, out, executor=executor, advance=advance)


def option_tasks(sizing: Sizing, say: Say) -> list[RunTask]:
    """Every option, for today's trace and for next year's."""
    strategies = strategy_names(sizing.strategies)
    tasks: list[RunTask] = []
    for cards, catalogue in _catalogues(sizing, say):
        predictors = tuple(choose_predictors(sizing.predictors, catalogue))
        for labels, text in _traces(sizing, cards, catalogue, [_today(), _next_year(sizing)]):
            task = _task(sizing, labels, text, cards, strategies, predictors)
            tasks += at_each_risk(task, sizing.risks, catalogue)
    return tasks


def curve_tasks(sizing: Sizing, options: pd.DataFrame, say: Say) -> list[RunTask]:
    """Every other point, at the best risk of every fleet, strategy and predictor."""
    best = best_risks(options)
    points = [point for point in points_of(sizing) if point != _next_year(sizing)]
    tasks: list[RunTask] = []
    for cards, catalogue in _catalogues(sizing, say):
        of_fleet = best[best["fleet"] == fleet_name(cards.fleet)]
        for labels, text in _traces(sizing, cards, catalogue, points):
            for option in of_fleet[list(OPTION)].to_dict("records"):
                predictor = sizing.predictors[0] if pd.isna(option["predictor"]) else option["predictor"]
                risks = () if pd.isna(option["risk"]) else (option["risk"],)
                task = _task(sizing, labels, text, cards, (option["strategy"],), (predictor,))
                tasks += at_each_risk(task, risks, catalogue)
    return tasks


def points_of(sizing: Sizing) -> list[Point]:
    """Axis, factor and growth of every point of every curve."""
    arrivals = sorted({*sizing.growth, sizing.next_year})
    points = [("arrivals", factor, Growth(arrivals=factor)) for factor in arrivals]
    for axis in (field.name for field in fields(Growth) if field.name != "arrivals"):
        for factor in sorted(set(getattr(sizing, axis))):
            factors = {"arrivals": sizing.next_year, axis: factor}
            points.append((axis, factor, Growth(**factors)))
    return points


def recommendation_of(results: pd.DataFrame, sizing: Sizing) -> Recommendation:
    """The cheapest option next year that keeps the budget and rejects no arrival; else the one closest to that."""
    best = _best(options_of(results, sizing))
    violations = best["violations_mean_pct"]
    return Recommendation(
        option={name: None if pd.isna(best[name]) else best[name] for name in OPTION},
        today=int(best["today"]),
        nics=int(best["nics"]),
        low=int(best["nics_low"]),
        high=int(best["nics_high"]),
        violations_pct=None if pd.isna(violations) else float(violations),
        rejected=int(best["rejected_high"]),
        within_budget=bool(best["within_budget"]),
    )


def options_of(results: pd.DataFrame, sizing: Sizing) -> pd.DataFrame:
    """A row per option: its statistics next year, its NICs `today`, and whether it is `within_budget`."""
    statistics = summarize(results, (*POINT, *OPTION))
    then = statistics[(statistics["axis"] == "arrivals") & (statistics["factor"] == sizing.next_year)]
    now = statistics[statistics["axis"] == TODAY].set_index(list(OPTION))["nics"].rename("today")
    table = then.merge(now, left_on=list(OPTION), right_index=True)
    # unknown SLA violations, where there is no ground truth, exclude no option
    few = table["violations_mean_pct"].fillna(0.0) <= sizing.budget_pct
    return table.assign(within_budget=few & (table["rejected_high"] == 0)).reset_index(drop=True)


def best_risks(options: pd.DataFrame) -> pd.DataFrame:
    """The best option next year of every fleet, strategy and predictor; rows of `options_of`."""
    groups = options.groupby([name for name in OPTION if name != "risk"], sort=False, dropna=False)
    return options.loc[[_best(rows).name for _, rows in groups]]


def _best(options: pd.DataFrame) -> pd.Series[Any]:
    """The cheapest option within the budget; where there is none, the one with fewest rejections and violations."""
    kept = options[options["within_budget"]]
    if kept.empty:
        return options.sort_values(["rejected_high", "violations_mean_pct", "cost_high"]).iloc[0]
    return kept.sort_values(["cost_high", "violations_mean_pct"]).iloc[0]


def _task(
    sizing: Sizing,
    labels: dict[str, Value],
    text: str,
    cards: Cards,
    strategies: tuple[str, ...],
    predictors: tuple[str, ...],
) -> RunTask:
    """A run without the optimum: what to buy depends on what the options need."""
    return RunTask(labels, text, cards, strategies, predictors, sizing.time_limit, with_optimum=False)


def _today() -> Point:
    return TODAY, 1.0, Growth()


def _next_year(sizing: Sizing) -> Point:
    return "arrivals", sizing.next_year, Growth(arrivals=sizing.next_year)


def _catalogues(sizing: Sizing, say: Say) -> Iterator[tuple[Cards, Catalogue]]:
    refuse_same_names("--fleet", sizing.fleets)
    for fleet in sizing.fleets or (None,):
        cards = Cards(models=sizing.models, testbed=sizing.testbed, fleet=fleet)
        with ExitStack() as stack:
            yield cards, open_catalogue(cards, stack, say)


def _traces(
    sizing: Sizing, cards: Cards, catalogue: Catalogue, points: Sequence[Point]
) -> Iterator[tuple[dict[str, Value], str]]:
    """Labels and CSV text of every trace: today's once, of every other point as many as there are draws."""
    described = catalogue.models[0].testbed
    if described is None and (sizing.flows or sizing.packet_size):
        raise InputError.of("--models", "came from a profile that declares no range of traffic: it cannot grow")
    attributes = dict(described.attributes) if described else {}
    trace = read_arrivals(sizing.arrivals, catalogue.default_traffic, catalogue.check)
    _refuse_too_many(len(trace) * sum(growth.arrivals for _, _, growth in points_of(sizing)) * sizing.draws)
    for axis, factor, growth in points:
        for number in range(1 if axis == TODAY else sizing.draws):
            rng = random.Random(f"{sizing.seed}/{number}")
            drawn = trace if axis == TODAY else grow(trace, growth, attributes, rng)
            yield (
                {"axis": axis, "factor": factor, "draw": number, "fleet": fleet_name(cards.fleet)},
                arrivals_csv(drawn),
            )


def _refuse_too_many(arrivals: float) -> None:
    if arrivals > MOST_ARRIVALS:
        message = f"all draws of all points are {arrivals:,.0f} arrivals, the limit is {MOST_ARRIVALS:,}"
        raise InputError.of("--draws", message, hint="take fewer draws or smaller factors")
