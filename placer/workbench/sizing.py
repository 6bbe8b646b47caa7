"""Sizing: how many NICs a fleet needs as its trace grows, and which is the cheapest that breaks few enough SLAs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields
from math import ceil
from pathlib import Path

import pandas as pd

from placer.arrivals import Arrival, read_arrivals
from placer.catalogue import Catalogue
from placer.models_home import Say
from placer.open_catalogue import open_catalogue
from placer.run import RunRequest, choose_predictors, choose_strategies
from placer.workbench.growth import Growth, as_csv, grown
from placer.workbench.spread import spread_of
from placer.workbench.study import at_each_risk
from placer.workbench.unit import Unit, Value
from profiles import InputError

TODAY = "today"
"""The axis of the trace as it is; the others are the fields of `Growth`."""

OPTION = ("fleet", "strategy", "predictor", "risk")
"""What a planner chooses: columns."""

POINT = ("axis", "factor")


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
        As of `RunRequest`.
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
        NICs that it takes next year: the median of all draws, the 10th and the 90th percentile.
    broken_pct
        SLAs broken next year, of 100, in the mean of all draws; None where nobody tells the truth.
    rejected
        Instances that find no place next year, in nine draws of ten at most.
    within_budget
        Whether it breaks few enough and places everybody; False where no option does.
    """

    option: dict[str, Value]
    today: int
    nics: float
    low: float
    high: float
    broken_pct: float | None
    rejected: float
    within_budget: bool

    @property
    def more(self) -> int:
        """NICs to buy: enough for nine draws of ten."""
        return max(ceil(self.high) - self.today, 0)


def units_of_sizing(sizing: Sizing, say: Say) -> list[Unit]:
    """Every run: the trace as it is, then grown along every axis.

    Raises
    ------
    InputError
        When a name, the trace, a fleet or the models are refused.
    """
    units: list[Unit] = []
    chosen = tuple(choose_strategies(sizing.strategies))
    for fleet in sizing.fleets or (None,):
        request = RunRequest(
            sizing.arrivals, models=sizing.models, testbed=sizing.testbed, fleet=fleet, time_limit=sizing.time_limit
        )
        with ExitStack() as stack:
            catalogue = open_catalogue(request, stack, say)
            predictors = tuple(choose_predictors(sizing.predictors, catalogue))
            trace = read_arrivals(sizing.arrivals, catalogue.default_traffic, catalogue.check)
            for labels, text in _traces(sizing, trace, catalogue):
                named = {**labels, "fleet": fleet.stem if fleet else "unlimited"}
                units += at_each_risk(sizing.risks, chosen, predictors, request, named, text)
    return units


def points_of(sizing: Sizing) -> list[tuple[str, float, Growth]]:
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
    table = options_of(results, sizing)
    best = table.sort_values(["within_budget", "cost_high", "violations_mean_pct"], ascending=[False, True, True]).iloc[
        0
    ]
    if not table["within_budget"].any():
        best = table.sort_values(["rejected_high", "violations_mean_pct", "cost_high"]).iloc[0]
    broken = best["violations_mean_pct"]
    return Answer(
        option={name: None if pd.isna(best[name]) else best[name] for name in OPTION},
        today=int(best["today"]),
        nics=float(best["nics"]),
        low=float(best["nics_low"]),
        high=float(best["nics_high"]),
        broken_pct=None if pd.isna(broken) else float(broken),
        rejected=float(best["rejected_high"]),
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


def _traces(sizing: Sizing, trace: list[Arrival], catalogue: Catalogue) -> Iterator[tuple[dict[str, Value], str]]:
    described = catalogue.models[0].testbed
    if described is None and (sizing.flows or sizing.packet_size):
        raise InputError.of("--models", "came from a profile that declares no range of traffic: it cannot grow")
    attributes = dict(described.attributes) if described else {}
    yield {"axis": TODAY, "factor": 1.0, "draw": 0}, as_csv(trace)
    for axis, factor, growth in points_of(sizing):
        for number in range(sizing.draws):
            draw = random.Random(f"{sizing.seed}/{number}")
            yield {"axis": axis, "factor": factor, "draw": number}, as_csv(grown(trace, growth, attributes, draw))
