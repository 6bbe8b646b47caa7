"""Retrained models in simulated lives of a fleet: how often one that is worse, and how soon one that is better, wins.

Beside the test of this project, a usual one: every 20 measurements, the model that was off less in them is taken.
"""

from math import exp
from random import Random
from statistics import median
from typing import Annotated, NamedTuple

import pandas as pd
import typer

from benches.bench import register
from placer.fleet.learning.challenge import Challenge, ChallengeVerdict, loss
from placer.fleet.learning.ledger import ProductionReading
from placer.model.oracle import co_location_of
from profiles import TrafficProfile, Workload

MODEL, KPPS = "card", 1000.0
ERROR, NOISE = 0.05, 0.025
TENANTS = 200
WINDOW = 20

Lives = Annotated[int, typer.Option(min=1, help="Simulated lives per row.")]
Readings = Annotated[int, typer.Option(min=WINDOW, help="Measurements of a life.")]
Seed = Annotated[int, typer.Option(help="Of the first life.")]


class FeedbackWorld(NamedTuple):
    """How both models err, and what is wrong with readings: the share of outliers, and of lower bounds; the times of
    its throughput that one tenant reports."""

    champion_bias: float = 0.0
    challenger_bias: float = 0.0
    challenger_error: float = ERROR
    outliers: float = 0.0
    lower_bounds: float = 0.0
    lie: float = 1.0


WORLDS = {
    "1 % more bias": FeedbackWorld(challenger_bias=0.01, champion_bias=0.0),
    "errors 10 % larger": FeedbackWorld(challenger_error=1.1 * ERROR),
    "equally good": FeedbackWorld(),
    "worse, 10 % outliers": FeedbackWorld(challenger_error=1.1 * ERROR, outliers=0.1),
    "worse, half lower bounds": FeedbackWorld(challenger_error=1.1 * ERROR, lower_bounds=0.5),
    "worse, a tenant lies for it": FeedbackWorld(challenger_bias=0.05, lie=1.05),
    "10 % bias removed": FeedbackWorld(champion_bias=0.10),
    "10 % bias removed, 10 % outliers": FeedbackWorld(champion_bias=0.10, outliers=0.1),
}


@register("feedback-lives")
def run(lives: Lives = 400, readings: Readings = 1_000, seed: Seed = 0) -> pd.DataFrame:
    """Per world: the share of lives in which the challenger is promoted, by the test of this project and by the usual
    one; and after how many measurements (median, 95th percentile)."""
    return pd.DataFrame([_row(name, world, range(seed, seed + lives), readings) for name, world in WORLDS.items()])


def _row(name: str, world: FeedbackWorld, seeds: range, readings: int) -> dict[str, object]:
    found = [_life(world, Random(f"{name} {seed}"), seed, readings) for seed in seeds]
    ours = sorted(one for one, _ in found if one is not None)
    usual = [one for _, one in found if one is not None]
    return {
        "challenger": name,
        "lives": len(seeds),
        "promoted_pct": 100 * len(ours) / len(seeds),
        "after_median": median(ours) if ours else None,
        "after_p95": ours[int(0.95 * (len(ours) - 1))] if ours else None,
        "usual_promoted_pct": 100 * len(usual) / len(seeds),
        "usual_after_median": median(usual) if usual else None,
    }


def _life(world: FeedbackWorld, rng: Random, life: int, readings: int) -> tuple[int | None, int | None]:
    """After how many measurements either test promotes."""
    challenge, ours, usual = Challenge(1), None, None
    losses = [0.0, 0.0]
    for number in range(1, readings + 1):
        reading, champion, challenger = _measurement(world, rng, life, number)
        if ours is None and challenge.add(reading, champion, challenger) is ChallengeVerdict.BETTER:
            ours = number
        losses = [losses[0] + loss(reading, champion), losses[1] + loss(reading, challenger)]
        if number % WINDOW == 0:
            usual = number if usual is None and losses[1] < losses[0] else usual
            losses = [0.0, 0.0]
    return ours, usual


def _measurement(world: FeedbackWorld, rng: Random, life: int, number: int) -> tuple[ProductionReading, float, float]:
    """A reading, and what both models predict; the place is one of many, some of them measured again."""
    place, tenant = rng.randrange(1, 3 * number), rng.randrange(TENANTS)
    errors = Random(place + 1_000_000 * life)
    truth = KPPS
    champion = truth * exp(world.champion_bias + errors.gauss(0.0, ERROR))
    challenger = truth * exp(world.challenger_bias + errors.gauss(0.0, world.challenger_error))
    kpps = truth * exp(rng.gauss(0.0, NOISE))
    if rng.random() < world.outliers:
        kpps *= rng.uniform(0.2, 2.0)
    if tenant == 0 and world.lie != 1.0:
        kpps = challenger
    offered = None if rng.random() < world.lower_bounds else 10 * KPPS
    own, other = (Workload(nf, TrafficProfile(1000 + place, 1500, 0)) for nf in ("nat", "other"))
    return (
        ProductionReading(MODEL, co_location_of([own, other]), own, str(tenant), kpps, offered, number),
        champion,
        challenger,
    )
