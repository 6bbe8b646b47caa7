"""Sequences of arrivals evaluated on several cores."""

from __future__ import annotations

import pytest

from experiments import Setting
from experiments.tomur.methodology.arrival_sequences import each_sequence, fleet_of
from experiments.tomur.methodology.simulated_card import CARD_SPEC
from experiments.tomur.table6_online import _oracles
from placer.strategies.contention_aware import ContentionAware

FOUR = Setting(scale=0.04)
RISK = 0.1
"""Given: to choose one takes most of the time of a sequence."""

Score = tuple[float, float]


def _scores(seed: int) -> list[tuple[list[str | None], Score]]:
    """NICs, wastage and SLA violations of a sequence on the first card, with exact and with predicted throughputs."""
    fleet, scores = fleet_of(CARD_SPEC), []
    arrivals = fleet.arrivals(seed, 16)
    fewest = fleet.fewest_nics(arrivals)
    for oracles in (fleet.truth, _oracles(CARD_SPEC, RISK)):
        plan = ContentionAware(fleet.catalogue, oracles=oracles).place(arrivals)
        scores.append(([one.nic for one in plan.placements], fleet.score(plan, fewest)))
    return scores


@pytest.mark.long
def test_two_processes_return_what_one_returns() -> None:
    """Four sequences give the same results in the same order on one and on two processes."""
    serial, parallel = (list(each_sequence(FOUR, _scores, jobs)) for jobs in (1, 2))
    assert len(serial) == 4
    assert len({str(one) for one in serial}) == 4  # else their order would not show
    assert parallel == serial
