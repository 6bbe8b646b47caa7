"""Sizing: how many NICs a fleet needs as its trace grows, and which option is cheapest within a budget of violations.
Every option is evaluated at next year's arrivals. Where contention-aware misses the budget there, it is asked to keep
smaller ones. The curves of an option use only the budget that is best there."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from placer.inputs.arrivals import MOST_ARRIVALS, STRICT_OPTIONS, TraceOptions, read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.inputs.models import Say
from placer.model.catalogue import Catalogue
from placer.placing import MEDIAN_RISK, RISK_DIVISORS
from placer.progress import Progress
from placer.run import choose_predictors, strategy_names
from placer.spare import Failures, refuse_too_many_failures
from placer.studies.execute import execute
from placer.studies.growth import Growth, arrivals_csv, grow, loads_by_name
from placer.studies.run_task import TO_BUY, RunTask, Value, fleet_name, refuse_same_names, variants
from placer.studies.statistics import HIGH_QUANTILE, SPARE_COLUMN, summarize
from profiles import InputError

GROWTH_AXES = ("arrivals", "load")
"""What may grow until next year: the number of arrivals, or their offered rates."""
OTHER_AXES = ("sla", "flows", "packet_size")
TODAY_AXIS = "today"
"""The axis of the unchanged trace; the other axes are the fields of `Growth`."""

OPTION_COLUMNS = ("fleet", "strategy", "predictor", "budget_pct", "risk")
POINT_COLUMNS = ("axis", "factor")

Point = tuple[str, float, Growth]


@dataclass(frozen=True)
class Sizing:
    """A question about next year's fleet.

    `arrivals`: path of today's trace.
    `growth_of`: one of `GROWTH_AXES`, what grows.
    `next_year`: the arrivals, or the load, to buy for, as a factor of today's.
    `growth`: factors of the curve over that.
    `sla`, `flows`, `packet_size`: factors of the other curves, all at next year's growth; empty draws none.
    `budget_pct`: allowed SLA violations, % of the instances.
    `strategies`, `predictors`, `budgets`, `fleets`: the options; fleets as of a study. Budgets are what
        contention-aware is asked to keep, at most `budget_pct`; empty means `budget_pct`, and smaller ones where it
        misses that.
    `draws`: how many traces are drawn for every point.
    `models`, `testbed`: as of `Cards`.
    `time_limit`: seconds for the optimum where it is among the strategies.
    `spare`, `spare_domains`: how many NICs and domains may fail; all numbers of NICs then include spare ones."""

    arrivals: str
    growth_of: str = "arrivals"
    next_year: float = 1.5
    growth: tuple[float, ...] = (1.0, 2.0, 4.0, 7.0, 10.0)
    sla: tuple[float, ...] = ()
    flows: tuple[float, ...] = ()
    packet_size: tuple[float, ...] = ()
    budget_pct: float = 2.0
    strategies: tuple[str, ...] = ("greedy", "contention-aware")
    predictors: tuple[str, ...] = ("tomur",)
    budgets: tuple[float, ...] = ()
    fleets: tuple[Path, ...] = ()
    draws: int = 5
    seed: int = 0
    models: Path | None = None
    testbed: str | None = None
    time_limit: float = 10.0
    trace_options: TraceOptions = STRICT_OPTIONS
    spare: int = 0
    spare_domains: int = 0

    @property
    def failures(self) -> Failures:
        """What may fail."""
        return Failures(self.spare, self.spare_domains)


@dataclass(frozen=True)
class Recommendation:
    """What to buy.

    `option`: fleet, strategy, predictor, and the budget that it was asked to keep, by column name.
    `today`: NICs that the option needs for today's trace.
    `nics`, `low`, `high`: NICs that it needs next year: the median, and the range of at least four draws in five.
    `violations_pct`: SLA violations next year, % of the instances, mean of all draws; None without a ground truth.
    `rejected`: arrivals rejected next year, at most in nine draws in ten.
    `within_budget`: whether it keeps the budget and rejects no arrival; False where no option does.
    `expected_violations_pct`: SLA violations to expect next year, as a mean; None where not known.
    `without_margin`: NICs that the same strategy needs next year by its median prediction, `high`; None where it has no
        margin.
    `to_buy`: by model, NICs that it needs next year beyond those that the fleet says are owned, in at least nine draws
        of ten; None where the fleet does not say.
    `spare`: how many of the NICs next year are for failures, at most in a draw; None where none were asked for, or the
        fleet has not enough of them, which is no option within the budget."""

    option: dict[str, Value]
    today: int
    nics: int
    low: int
    high: int
    violations_pct: float | None
    rejected: int
    within_budget: bool
    expected_violations_pct: float | None = None
    without_margin: int | None = None
    to_buy: dict[str, int] | None = None
    spare: int | None = None

    @property
    def known_violations_pct(self) -> float | None:
        """SLA violations next year by the ground truth; without one, those to expect; None where neither is known."""
        return self.expected_violations_pct if self.violations_pct is None else self.violations_pct

    @property
    def more(self) -> int:
        """NICs to buy: enough for at least nine draws in ten. Where the fleet does not say what is owned, it is what
        the option needs today."""
        return max(self.high - self.today, 0) if self.to_buy is None else sum(self.to_buy.values())


def size(sizing: Sizing, out: Path, progress: Progress, *, jobs: int = 1) -> pd.DataFrame:
    """The rows of every run; `out` keeps them, and runs whose results it holds are not repeated. Raises InputError when
    a name, the trace, a fleet or the models are refused."""
    tasks = option_tasks(sizing, progress.say)
    with progress.task("options") as advance:
        options = execute(tasks, out, jobs=jobs, advance=advance)
    if not sizing.budgets and misses_budget(options_of(options, sizing)):
        tasks += option_tasks(sizing, progress.say, [sizing.budget_pct / divisor for divisor in RISK_DIVISORS])
        with progress.task("smaller budgets") as advance:
            options = execute(tasks, out, jobs=jobs, advance=advance)
    tasks += curve_tasks(sizing, options_of(options, sizing), progress.say)
    with progress.task("curves") as advance:
        return execute(tasks, out, jobs=jobs, advance=advance)


def option_tasks(sizing: Sizing, say: Say, smaller: Sequence[float] = ()) -> list[RunTask]:
    """Every option, for today's trace and for next year's; with `smaller`, only those for these budgets."""
    strategies = strategy_names(sizing.strategies)
    tasks: list[RunTask] = []
    for cards, catalogue in _catalogues(sizing, say):
        predictors = tuple(choose_predictors(sizing.predictors, catalogue))
        for trace in _traces(sizing, cards, catalogue, [(TODAY_AXIS, 1.0, Growth()), _next_year(sizing)]):
            task = replace(trace, strategies=strategies, predictors=predictors)
            budgets = sizing.budgets or (sizing.budget_pct, *smaller)
            every = list(variants(task, catalogue, budgets=budgets, risks=() if smaller else (MEDIAN_RISK,)))
            tasks += every[1:] if smaller else every
    return tasks


def curve_tasks(sizing: Sizing, options: pd.DataFrame, say: Say) -> list[RunTask]:
    """Every other point, for the best budget of every fleet, strategy and predictor."""
    best = best_budgets(options)
    points = [point for point in points_of(sizing) if point != _next_year(sizing)]
    tasks: list[RunTask] = []
    for cards, catalogue in _catalogues(sizing, say):
        of_fleet = best[best["fleet"] == fleet_name(cards.fleet)]
        for trace in _traces(sizing, cards, catalogue, points):
            for option in of_fleet[list(OPTION_COLUMNS)].to_dict("records"):
                predictor = sizing.predictors[0] if pd.isna(option["predictor"]) else option["predictor"]
                task = replace(trace, strategies=(option["strategy"],), predictors=(predictor,))
                tasks += variants(task, catalogue, budgets=(option["budget_pct"],))
    return tasks


def points_of(sizing: Sizing) -> list[Point]:
    """Axis, factor and growth of every point of every curve."""
    grows = sizing.growth_of
    points = [(grows, factor, Growth(**{grows: factor})) for factor in sorted({*sizing.growth, sizing.next_year})]
    others = [(axis, factor) for axis in OTHER_AXES for factor in sorted(set(getattr(sizing, axis)))]
    return points + [(axis, factor, Growth(**{grows: sizing.next_year, axis: factor})) for axis, factor in others]


def recommendation_of(results: pd.DataFrame, sizing: Sizing) -> Recommendation:
    """The option for next year that keeps the budget, rejects least, and then costs least; else the closest one."""
    options = options_of(results, sizing)
    best = _best(options[~options["without_margin"]])
    violations, expected = best["violations_mean_pct"], best["expected_violations_pct"]
    return Recommendation(
        option={name: None if pd.isna(best[name]) else best[name] for name in (*OPTION_COLUMNS, "chosen_risk")},
        today=int(best["today"]),
        nics=int(best["nics"]),
        low=int(best["nics_low"]),
        high=int(best["nics_high"]),
        violations_pct=None if pd.isna(violations) else float(violations),
        rejected=int(best["rejected_high"]),
        within_budget=bool(best["within_budget"]),
        expected_violations_pct=None if pd.isna(expected) else float(expected),
        without_margin=_without_margin(options, best),
        to_buy=_to_buy(results, sizing, best),
        spare=int(best[SPARE_COLUMN]) if SPARE_COLUMN in best and not best["lacks_spare"] else None,
    )


def options_of(results: pd.DataFrame, sizing: Sizing) -> pd.DataFrame:
    """A row per option: its statistics next year, its NICs `today`, and whether it is `within_budget`. `few_violations`
    says whether SLA violations are within it, `within_budget` that no arrival is rejected, either. Plans by the median
    prediction, `without_margin`, are not for choice; they show what the budget costs."""
    statistics = summarize(results, (*POINT_COLUMNS, *OPTION_COLUMNS))
    then = statistics[(statistics["axis"] == sizing.growth_of) & (statistics["factor"] == sizing.next_year)]
    now = statistics[statistics["axis"] == TODAY_AXIS].set_index(list(OPTION_COLUMNS))["nics"].rename("today")
    table = then.merge(now, left_on=list(OPTION_COLUMNS), right_index=True)
    # without a ground truth the expected SLA violations count; where neither is known, no budget is known to be kept
    violations = table["violations_mean_pct"].fillna(table["expected_violations_pct"])
    few = violations <= sizing.budget_pct
    table = table.assign(
        known_violations_pct=violations,
        few_violations=few,
        within_budget=few & (table["rejected_high"] == 0),
        without_margin=table["risk"].notna(),
    )
    if SPARE_COLUMN in table:
        table["within_budget"] &= ~table["lacks_spare"]
    return table.reset_index(drop=True)


def misses_budget(options: pd.DataFrame) -> bool:
    """Whether an option that chooses its risk by a budget has too many SLA violations; rows of `options_of`."""
    chooses = options["chosen_risk"].notna() & ~options["without_margin"]
    return bool((chooses & ~options["few_violations"]).any())


def best_budgets(options: pd.DataFrame) -> pd.DataFrame:
    """The best option next year of every fleet, strategy and predictor; rows of `options_of`."""
    options = options[~options["without_margin"]]
    groups = options.groupby(["fleet", "strategy", "predictor"], sort=False, dropna=False)
    return options.loc[[_best(rows).name for _, rows in groups]]


def _best(options: pd.DataFrame) -> pd.Series[Any]:
    """Within the budget, the option that rejects least, then costs least; else the one with fewest SLA violations."""
    kept, dear = options[options["few_violations"]], ["rejected_high", "cost_high"]
    if SPARE_COLUMN in options:
        dear = ["lacks_spare", *dear]
    if kept.empty:
        return options.sort_values(["known_violations_pct", *dear]).iloc[0]
    return kept.sort_values([*dear, "known_violations_pct"]).iloc[0]


def _without_margin(options: pd.DataFrame, best: pd.Series[Any]) -> int | None:
    """NICs of the same strategy by its median prediction."""
    same = options[options["without_margin"]]
    for name in ("fleet", "strategy", "predictor"):
        same = same[same[name] == best[name]]
    return None if same.empty else int(same["nics_high"].iloc[0])


def _to_buy(results: pd.DataFrame, sizing: Sizing, option: pd.Series[Any]) -> dict[str, int] | None:
    """By model, the NICs to buy for an option next year; None where its fleet does not say what is owned."""
    rows = results[(results["axis"] == sizing.growth_of) & (results["factor"] == sizing.next_year)]
    for name in ("fleet", "strategy", "predictor", "budget_pct"):
        if name in rows:
            rows = rows[rows[name].isna() if pd.isna(option[name]) else rows[name] == option[name]]
    bought = rows.filter(like=TO_BUY).dropna(axis="columns", how="all")
    high = bought.quantile(HIGH_QUANTILE, interpolation="higher").astype(int).to_dict()
    return {str(name).removeprefix(TO_BUY): int(count) for name, count in high.items()} or None


def _next_year(sizing: Sizing) -> Point:
    return sizing.growth_of, sizing.next_year, Growth(**{sizing.growth_of: sizing.next_year})


def _catalogues(sizing: Sizing, say: Say) -> Iterator[tuple[Cards, Catalogue]]:
    refuse_same_names("--fleet", sizing.fleets)
    for fleet in sizing.fleets or (None,):
        cards = Cards(models=sizing.models, testbed=sizing.testbed, fleet=fleet)
        with ExitStack() as stack:
            catalogue = open_catalogue(cards, stack, say)
            refuse_too_many_failures(sizing.failures, catalogue.kinds)
            yield cards, catalogue


def _traces(sizing: Sizing, cards: Cards, catalogue: Catalogue, points: Sequence[Point]) -> Iterator[RunTask]:
    """Every trace, as a task for all strategies: today's once, of every other point as many as there are draws."""
    described = catalogue.main_models.testbed
    if described is None and (sizing.flows or sizing.packet_size):
        raise InputError.of("--models", "came from a profile that declares no range of traffic: it cannot grow")
    attributes = dict(described.attributes) if described else {}
    trace = read_arrivals(
        sizing.arrivals, catalogue.default_traffic, catalogue.check, sizing.trace_options, kinds=catalogue.kinds
    )
    if sizing.growth_of == "load" and all(arrival.workload.is_saturated for arrival in trace):
        hint = "fill rate_kpps or rate_gbps, or grow by count"
        raise InputError.of("--growth-of", f"no arrival of {sizing.arrivals} has a load", hint=hint)
    carries = cache(lambda workload: not catalogue.check(workload))
    _refuse_too_many(len(trace) * sum(growth.arrivals for _, _, growth in points_of(sizing)) * sizing.draws)
    for axis, factor, growth in points:
        for number in range(1 if axis == TODAY_AXIS else sizing.draws):
            rng = random.Random(f"{sizing.seed}/{number}")
            drawn = trace if axis == TODAY_AXIS else grow(trace, growth, attributes, rng, carries)
            labels: dict[str, Value] = {
                "axis": axis, "factor": factor, "draw": number, "fleet": fleet_name(cards.fleet),
            }  # fmt: skip
            yield RunTask(
                labels, arrivals_csv(drawn), cards, time_limit=sizing.time_limit, with_optimum=False,
                spare=sizing.spare, spare_domains=sizing.spare_domains, loads=loads_by_name(drawn),
            )  # fmt: skip


def _refuse_too_many(arrivals: float) -> None:
    if arrivals > MOST_ARRIVALS:
        message = f"all draws of all points are {arrivals:,.0f} arrivals, the limit is {MOST_ARRIVALS:,}"
        raise InputError.of("--draws", message, hint="take fewer draws or smaller factors")
