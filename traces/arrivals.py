"""Generates arrival sequences like those of Tomur's section 7.5.1, and others that are harder."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

TABLE_2_NFS = (
    "ACL", "NIDS", "IPTunnel", "IPRouter", "FlowClassifier", "FlowTracker", "FlowStats", "FlowMonitor", "NAT",
)  # fmt: skip
"""The nine NFs that Tomur places (tables 2 and 6)."""

TRAFFICS = ("default", "mixed", "unique")
"""Default traffic only; one of nine traffic profiles per arrival (section 7.2); an own profile per arrival."""

LARGEST_LOAD = 10.0
"""The largest load of a recipe, as a share of the capacity."""

_T = TypeVar("_T")

PROFILES = 9
SECONDS_BETWEEN_ARRIVALS = 10.0


@dataclass(frozen=True)
class Recipe:
    """The parameters of a generated trace.

    Parameters
    ----------
    count
        Arrivals.
    nfs
        Names from which each arrival draws one, uniformly.
    sla
        Smallest and largest allowed drop; each arrival draws one between, uniformly, in steps of 0.001. None writes no
        SLA: with loads, none is required.
    traffic
        One of `TRAFFICS`.
    attributes
        Range of each traffic attribute; flows are drawn uniformly in their logarithm, the others uniformly.
    mean_stay_s
        Mean of the exponentially distributed stay; None means that no NF leaves.
    seed
        The same recipe and seed give the same bytes.
    loads
        Smallest and largest load, as a share of the capacity; each arrival draws one between, uniformly in its
        logarithm. None writes no rates. Everything else is the same with and without.
    days
        Names of loads over the day, of which each arrival draws one, uniformly. Empty writes no such column.
    capacity_kpps
        What an NF carries alone on its default cores (kpps), by its name and its attributes; needed by `loads`.
    """

    count: int = 500
    nfs: tuple[str, ...] = TABLE_2_NFS
    sla: tuple[float, float] | None = (0.05, 0.20)
    traffic: str = "default"
    attributes: Mapping[str, tuple[float, float]] | None = None
    mean_stay_s: float | None = None
    seed: int = 0
    loads: tuple[float, float] | None = None
    days: tuple[str, ...] = ()
    capacity_kpps: Callable[[str, Mapping[str, float]], float] = lambda nf, traffic: math.nan


def generate(recipe: Recipe) -> Iterator[str]:
    """The lines of the trace, header first, each with its line end."""
    draw, draw_load = random.Random(recipe.seed), random.Random(f"loads/{recipe.seed}")
    draw_day = random.Random(f"days/{recipe.seed}")
    low, high = recipe.sla or (0.0, 0.0)
    attributes = dict(recipe.attributes or {}) if recipe.traffic != "default" else {}
    profiles = [_traffic(draw, attributes) for _ in range(PROFILES)] if recipe.traffic == "mixed" else []
    stays = recipe.mean_stay_s is not None
    slas, loads = recipe.sla is not None, recipe.loads is not None
    optional = [*["rate_kpps"] * loads, *["sla_drop"] * slas, *["departure"] * stays, *["load"] * bool(recipe.days)]
    yield ",".join(["id", "time", "nf", *attributes, *optional]) + "\n"
    now = 0.0
    width = len(str(recipe.count))
    for number in range(1, recipe.count + 1):
        now += _exponential(draw, SECONDS_BETWEEN_ARRIVALS)
        cells = [f"nf-{number:0{width}d}", f"{now:.3f}", _one_of(draw, recipe.nfs)]
        if recipe.traffic == "unique":
            cells += _traffic(draw, attributes)
        elif recipe.traffic == "mixed":
            cells += _one_of(draw, profiles)
        if recipe.loads is not None:
            traffic = dict(zip(attributes, map(float, cells[3:]), strict=True))
            share = math.exp(draw_load.uniform(*map(math.log, recipe.loads)))
            cells.append(f"{share * recipe.capacity_kpps(cells[2], traffic):.6g}")
        cells += [f"{low + draw.random() * (high - low):.3f}"][: 1 if slas else 0]
        if recipe.mean_stay_s is not None:
            cells.append(f"{now + max(0.001, _exponential(draw, recipe.mean_stay_s)):.3f}")
        if recipe.days:
            cells.append(_one_of(draw_day, recipe.days))
        yield ",".join(cells) + "\n"


def _traffic(draw: random.Random, attributes: Mapping[str, tuple[float, float]]) -> list[str]:
    return [f"{_value(draw, name, *bounds):g}" for name, bounds in attributes.items()]


def _value(draw: random.Random, name: str, low: float, high: float) -> float:
    share = draw.random()
    if name == "flows":
        return float(round(math.exp(math.log(max(low, 1.0)) * (1 - share) + math.log(max(high, 1.0)) * share)))
    return float(round(low + share * (high - low)))


def _exponential(draw: random.Random, mean: float) -> float:
    return -mean * math.log(1.0 - draw.random())


def _one_of(draw: random.Random, options: Sequence[_T]) -> _T:
    return options[int(draw.random() * len(options))]
