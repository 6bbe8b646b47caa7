"""Sizing: how many NICs a fleet needs as its trace grows, and which is the cheapest that breaks few enough SLAs.

Every option is tried at next year's arrivals. The curves are drawn at the risk that is best there: elsewhere the other
risks answer nothing that was asked.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.inputs.models import Say
from placer.model.catalogue import Catalogue
from placer.progress import Progress
from placer.run import choose_predictors, strategy_names
from placer.studies.execute import conduct
from placer.studies.executors import Runner
from placer.studies.growth import Growth, as_csv, grown
from placer.studies.run_task import Unit, Value
from placer.studies.statistics import spread_of
from placer.studies.study import at_each_risk, fleet_name, refuse_same_names
from profiles import InputError

TODAY = "today"
"""The axis of the trace as it is; the others are the fields of `Growth`."""

OPTION = ("fleet", "strategy", "predictor", "risk")
"""What a planner chooses: columns."""

POINT = ("axis", "factor")

Point = tuple[str, float, Growth]
"""Axis, factor and growth."""


@dataclass(frozen=True)
class Sizing:
    """What is asked.

    Parameters
    ----------
    arrivals
        The trace of today: a path.
    next_year
        The arrivals to buy for, times today's.
    growth
        Factors of the curve over arrivals.
    sla, flows, packet_size
        Factors of the other curves, all at next year's arrivals; empty draws none.
    budget_pct
        SLAs that may break, of 100.
    strategies, predictors, risks, fleets
        Among which to choose; risks and fleets as of a study.
    draws
        How many traces are drawn for every point.
    seed, models, testbed, time_limit
        As of `Cards`.
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
class Answer:
    """What to buy.

    Parameters
    ----------
    option
        Fleet, strategy, predictor and risk, by column name.
    today
        NICs that the option takes for the trace as it is.
    nics, low, high
        NICs that it takes next year: the median, and between which at least four draws of five lie.
    broken_pct
        SLAs broken next year, of 100, in the mean of all draws; None where nobody tells the truth.
    rejected
        Instances that find no place next year, or fewer in nine draws of ten.
    within_budget
        Whether it breaks few enough and places everybody; False where no option does.
    """

    option: dict[str, Value]
    today: int
    nics: int
    low: int
    high: int
    broken_pct: float | None
    rejected: int
    within_budget: bool

    @property
    def more(self) -> int:
        """NICs to buy: enough for nine draws of ten at least."""
        return max(self.high - self.today, 0)


def size(sizing: Sizing, out: Path, progress: Progress, *, runner: Runner | None = None) -> pd.DataFrame:
    """The rows of every run; `out` keeps them, and what it holds is not run again.

    Raises
    ------
    InputError
        When a name, the trace, a fleet or the models are refused.
    """
    units = units_of_options(sizing, progress.say)
    with progress.task("options") as advance:
        options = conduct(units, out, runner=runner, advance=advance)
    units += units_of_curves(sizing, options_of(options, sizing), progress.say)
    with progress.task("curves") as advance:
        return conduct(units, out, runner=runner, advance=advance)


def units_of_options(sizing: Sizing, say: Say) -> list[Unit]:
    """Every option, for the trace as it is and for next year's."""
    chosen = strategy_names(sizing.strategies)
    units: list[Unit] = []
    for cards, catalogue in _catalogues(sizing, say):
        predictors = tuple(choose_predictors(sizing.predictors, catalogue))
        for labels, text in _traces(sizing, cards, catalogue, [_today(), _next_year(sizing)]):
            units += at_each_risk(sizing.risks, chosen, predictors, catalogue, cards, sizing.time_limit, labels, text)
    return _without_optimum(units)


def units_of_curves(sizing: Sizing, options: pd.DataFrame, say: Say) -> list[Unit]:
    """Every other point, at the best risk of every fleet, strategy and predictor."""
    kept = best_risks(options)
    points = [point for point in points_of(sizing) if point != _next_year(sizing)]
    units: list[Unit] = []
    for cards, catalogue in _catalogues(sizing, say):
        here = kept[kept["fleet"] == fleet_name(cards.fleet)]
        for labels, text in _traces(sizing, cards, catalogue, points):
            for option in here[list(OPTION)].to_dict("records"):
                predictor = sizing.predictors[0] if pd.isna(option["predictor"]) else option["predictor"]
                risk = () if pd.isna(option["risk"]) else (option["risk"],)
                units += at_each_risk(
                    risk, (option["strategy"],), (predictor,), catalogue, cards, sizing.time_limit, labels, text
                )
    return _without_optimum(units)


def points_of(sizing: Sizing) -> list[Point]:
    """Axis, factor and growth of every point of every curve."""
    arrivals = sorted({*sizing.growth, sizing.next_year})
    points = [("arrivals", factor, Growth(arrivals=factor)) for factor in arrivals]
    for axis in (field.name for field in fields(Growth) if field.name != "arrivals"):
        for factor in sorted(set(getattr(sizing, axis))):
            told = {"arrivals": sizing.next_year, axis: factor}
            points.append((axis, factor, Growth(**told)))
    return points


def answer_of(results: pd.DataFrame, sizing: Sizing) -> Answer:
    """The cheapest option next year that places everybody within the budget; the least bad where there is none."""
    best = _best(options_of(results, sizing))
    broken = best["violations_mean_pct"]
    return Answer(
        option={name: None if pd.isna(best[name]) else best[name] for name in OPTION},
        today=int(best["today"]),
        nics=int(best["nics"]),
        low=int(best["nics_low"]),
        high=int(best["nics_high"]),
        broken_pct=None if pd.isna(broken) else float(broken),
        rejected=int(best["rejected_high"]),
        within_budget=bool(best["within_budget"]),
    )


def options_of(results: pd.DataFrame, sizing: Sizing) -> pd.DataFrame:
    """A row per option: its spread next year, `today`'s NICs, and whether it is `within_budget`."""
    spread = spread_of(results, (*POINT, *OPTION))
    then = spread[(spread["axis"] == "arrivals") & (spread["factor"] == sizing.next_year)]
    now = spread[spread["axis"] == TODAY].set_index(list(OPTION))["nics"].rename("today")
    table = then.merge(now, left_on=list(OPTION), right_index=True)
    # where nobody tells the truth, nobody can say that SLAs break
    few = table["violations_mean_pct"].fillna(0.0) <= sizing.budget_pct
    return table.assign(within_budget=few & (table["rejected_high"] == 0)).reset_index(drop=True)


def best_risks(options: pd.DataFrame) -> pd.DataFrame:
    """Of every fleet, strategy and predictor the option that is best next year; rows of `options_of`."""
    groups = options.groupby([name for name in OPTION if name != "risk"], sort=False, dropna=False)
    return options.loc[[_best(rows).name for _, rows in groups]]


def _best(options: pd.DataFrame) -> pd.Series[Any]:
    """The cheapest option within the budget; where there is none, the one that rejects and breaks least."""
    kept = options[options["within_budget"]]
    if kept.empty:
        return options.sort_values(["rejected_high", "violations_mean_pct", "cost_high"]).iloc[0]
    return kept.sort_values(["cost_high", "violations_mean_pct"]).iloc[0]


def _without_optimum(units: Sequence[Unit]) -> list[Unit]:
    """What to buy hangs on what the options take, not on what the best possible would."""
    return [replace(unit, against_optimum=False) for unit in units]


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
    """Labels and text of every trace of the points: today's as it is, of the others as many as there are draws."""
    described = catalogue.models[0].testbed
    if described is None and (sizing.flows or sizing.packet_size):
        raise InputError.of("--models", "came from a profile that declares no range of traffic: it cannot grow")
    attributes = dict(described.attributes) if described else {}
    trace = read_arrivals(sizing.arrivals, catalogue.default_traffic, catalogue.check)
    for axis, factor, growth in points:
        for number in range(1 if axis == TODAY else sizing.draws):
            draw = random.Random(f"{sizing.seed}/{number}")
            drawn = trace if axis == TODAY else grown(trace, growth, attributes, draw)
            yield {"axis": axis, "factor": factor, "draw": number, "fleet": fleet_name(cards.fleet)}, as_csv(drawn)
