"""Betting and challenges: a model that is no better is not promoted, whatever one tenant reports; a better one is."""

from __future__ import annotations

from math import exp, log
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.fleet.learning.challenge import (
    BET_PARTS,
    LARGEST_FACTOR,
    OF_A_TENANT,
    BettingTest,
    Challenge,
    ChallengeVerdict,
    loss,
)
from placer.fleet.learning.ledger import ProductionReading
from placer.model.oracle import co_location_of
from profiles import TrafficProfile, Workload

KPPS = 1000.0


def reading(place: int, tenant: str, kpps: float, offered: float | None = 1e5) -> ProductionReading:
    """Of an NF in one of many co-locations."""
    own, other = (Workload(nf, TrafficProfile(1000 + place, 1500, 0)) for nf in ("a", "b"))
    return ProductionReading("card", co_location_of([own, other]), own, tenant, kpps, offered, place)


def challenged(
    seed: int, champion_bias: float, challenger_bias: float, measurements: int = 200, outliers: float = 0.0
) -> tuple[int, Challenge]:
    """The number of measurements until the verdict, in a world with errors of 5 % and noise of 2.5 %."""
    rng, challenge = Random(seed), Challenge(1)
    for number in range(1, measurements + 1):
        kpps = KPPS * exp(rng.gauss(0.0, 0.025)) * (rng.uniform(0.2, 2.0) if rng.random() < outliers else 1.0)
        predicted = [KPPS * exp(bias + rng.gauss(0.0, 0.05)) for bias in (champion_bias, challenger_bias)]
        if challenge.add(reading(number, str(rng.randrange(100)), kpps), *predicted) is not ChallengeVerdict.OPEN:
            return number, challenge
    return measurements, challenge


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=6))
def test_the_expected_wealth_of_fair_bets_is_one(differences: list[float]) -> None:
    """Each difference or its opposite, as likely: the mean over all signs of the wealth is 1, as the theorem asks."""
    total = 0.0
    for signs in range(2 ** len(differences)):
        test = BettingTest()
        for at, difference in enumerate(differences):
            test.bet(difference if signs >> at & 1 else -difference)
        total += test.e_value
    assert total / 2 ** len(differences) == pytest.approx(1.0)


def test_wealth_by_hand() -> None:
    """After one difference of 0.5, each part of the stake has grown by half its bet; what lies beyond 1 counts as 1."""
    test = BettingTest()
    test.bet(0.5)
    assert test.e_value == pytest.approx(1.0 + 0.5 * sum(BET_PARTS) / len(BET_PARTS))
    one, two = BettingTest(), BettingTest()
    one.bet(1.0), two.bet(7.0)
    assert one.e_value == two.e_value


def test_fair_bets_seldom_reach_a_hundred() -> None:
    """At most 1 % of lives may; 1,000 differences of random signs in each of 200."""
    reached = 0
    for seed in range(200):
        rng, test = Random(seed), BettingTest()
        reached += any(test.bet(rng.choice((-1.0, 1.0))) is None and test.e_value >= 100.0 for _ in range(1_000))
    assert reached <= 6


def test_a_challenger_without_the_bias_of_10_percent_is_promoted_soon() -> None:
    """Within 60 measurements in the median of 41 lives."""
    found = [challenged(seed, 0.10, 0.0) for seed in range(41)]
    assert {challenge.verdict for _, challenge in found} == {ChallengeVerdict.BETTER}
    assert sorted(number for number, _ in found)[20] <= 60


@pytest.mark.parametrize("outliers", [0.0, 0.1])
def test_a_challenger_that_is_slightly_worse_is_not_promoted(outliers: float) -> None:
    """2 % more bias, 40 lives."""
    found = [challenged(seed, 0.0, 0.02, 300, outliers)[1].verdict for seed in range(40)]
    assert ChallengeVerdict.BETTER not in found


def test_a_challenger_that_is_far_worse_is_rejected() -> None:
    """By the same bets the other way round."""
    assert challenged(0, 0.0, 0.2)[1].verdict is ChallengeVerdict.WORSE


def test_one_tenant_promotes_nothing_even_if_all_others_are_undecided() -> None:
    """It reports what the challenger predicts, and the champion is far off; the others see two equal models."""
    challenge = Challenge(1)
    for number in range(300):
        challenge.add(reading(2 * number, "liar", 500.0), KPPS, 500.0)
        challenge.add(reading(2 * number + 1, str(number), KPPS), KPPS, KPPS)
    assert challenge.verdict is ChallengeVerdict.OPEN
    assert 1.0 < challenge.e_value <= LARGEST_FACTOR**OF_A_TENANT


def test_a_co_location_counts_once() -> None:
    """Errors of a model stay there, so that measuring it again shows nothing new."""
    challenge = Challenge(1)
    for number in range(300):
        challenge.add(reading(7, str(number), 500.0), KPPS, 500.0)
    assert challenge.champion.measured == 1


def test_above_a_lower_bound_no_prediction_is_off() -> None:
    """Below it, it is."""
    bound = reading(1, "1", 900.0, offered=None)
    assert loss(bound, 1000.0) == loss(bound, 900.0) == 0.0
    assert loss(bound, 850.0) == pytest.approx(log(900 / 850))


def test_later_challengers_need_more_evidence() -> None:
    """The levels of all of them add up to 1 % at most, what one tenant could add left out."""
    levels = [LARGEST_FACTOR**OF_A_TENANT / Challenge(number).needed for number in range(1, 10_000)]
    assert 0.0099 < sum(levels) <= 0.01
