"""Versions of models: a retrained one is tried, decides once it is better, and goes when it turns out worse. Betting
and challenges: a model that is no better is not promoted, whatever one tenant reports; a better one is."""

from collections.abc import Iterator
from itertools import combinations_with_replacement
from math import exp, log
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.fleet.learning.actions import ActionKind, ModelAction
from placer.fleet.learning.challenge import (
    BET_PARTS,
    LARGEST_FACTOR,
    OF_A_TENANT,
    BettingTest,
    Challenge,
    ChallengeVerdict,
    loss,
)
from placer.fleet.learning.corrected_oracle import CorrectedOracle
from placer.fleet.learning.corrections import LearntCorrections
from placer.fleet.learning.learning import CANARY, NOTED, PROMOTED, ROLLED_BACK, STATUSES, Feedback
from placer.fleet.learning.ledger import Ledger, ProductionReading
from placer.fleet.learning.trial import CanaryOracle
from placer.model.oracle import PredictorOracle, co_location_of
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import CoLocation, TrafficProfile, Workload
from tests.placer.fleet.learning.toy_predictor import MODEL, BiasedPredictor, Planned

KINDS = catalogue((None, 1.0)).kinds
A, B, C = (Workload(nf, TOY_TRAFFIC) for nf in "abc")
TRY = ModelAction(ActionKind.CANARY, 2, 0)


def feedback_of(factor: float, actions: Planned) -> Feedback:
    """Whose first models are off by a factor."""
    made = Feedback(KINDS, [PredictorOracle(BiasedPredictor(factor))])
    made.actions = actions
    return made


def places(count: int) -> Iterator[CoLocation]:
    for flows in range(1, count):
        for nfs in combinations_with_replacement("abc", 2):
            yield co_location_of(Workload(nf, TrafficProfile(flows, 1500, 0)) for nf in nfs)


def statuses(feedback: Feedback, truth: float, count: int, first: int = 1) -> list[str]:
    """What so many readings lead to, one in each new co-location; the toy throughput is off by a factor."""
    draw, oracle, found = Random(first), ToyOracle(), []
    for event, co_location in enumerate(list(places(first + count))[first : first + count], start=first):
        kpps = oracle.throughput([co_location])[0][0] * truth * draw.gauss(1.0, 0.02)
        reading = ProductionReading(MODEL, co_location, co_location[0], str(event), kpps, 1e6, event)
        found.append(max(feedback.begin(event), feedback.learn([reading]), key=STATUSES.index))
    return found


def test_a_better_version_is_promoted_and_decides() -> None:
    """The first one is 10 % too high; the second is right."""
    feedback = feedback_of(1.1, Planned({1: [TRY]}))
    found = statuses(feedback, 1.0, 150)
    assert found[0] == CANARY and found.count(PROMOTED) == 1 and feedback.model == 2
    assert [one.status.value for one in feedback.versions.values()] == ["initial", "promoted"]
    score = feedback.versions[2].as_dict()
    assert score["mape_pct"] < 3 < 8 < score["champion_mape_pct"] and score["coverage_90_pct"] > 80
    assert score["e_value"] > 100


def test_no_answer_comes_from_the_former_model_after_a_promotion() -> None:
    """A co-location that nothing was measured of, asked before and after: 10 % less."""
    feedback = feedback_of(1.1, Planned({1: [TRY]}))
    unknown = co_location_of([A, B, C])
    before = feedback.deciders[0].throughput([unknown])[0]
    statuses(feedback, 1.0, 150)
    after = feedback.deciders[0].throughput([unknown])[0]
    assert after == pytest.approx([kpps / 1.1 for kpps in before])
    assert [one.kpps for one in feedback.expect(MODEL, unknown)] == pytest.approx(after)


def test_a_worse_version_is_never_promoted() -> None:
    """It is rejected, and the first one decides alone again."""
    feedback = feedback_of(1.0, Planned({1: [TRY]}, factor=1.1))
    found = statuses(feedback, 1.0, 300)
    assert PROMOTED not in found and found[-1] == NOTED
    assert feedback.versions[2].status.value == "rejected" and feedback.model == 1
    assert isinstance(feedback.deciders[0], CorrectedOracle)


def test_a_promoted_version_that_turns_out_worse_is_rolled_back() -> None:
    """First the NFs are 5 % slower than the first version says, then they are as it says: too little for drift."""
    feedback = feedback_of(1.0, Planned({1: [TRY]}, factor=0.95))
    first = 1
    while statuses(feedback, 0.95, 1, first=first) != [PROMOTED]:
        first += 1
    assert ROLLED_BACK in statuses(feedback, 1.0, 600, first=first + 1) and feedback.model == 1
    assert feedback.versions[2].status.value == "rolled-back"


def test_what_a_version_was_trained_with_is_no_evidence_for_it() -> None:
    """All that it was measured in before is left out of its trial."""
    feedback = feedback_of(1.1, Planned({200: [ModelAction(ActionKind.CANARY, 2, 199)]}))
    statuses(feedback, 1.0, 120)
    known = list(places(121))[1:121]
    feedback.begin(200)
    for event, co_location in enumerate(known, start=200):
        kpps = ToyOracle().throughput([co_location])[0][0]
        feedback.learn([ProductionReading(MODEL, co_location, co_location[0], str(event), kpps, 1e6, event)])
    assert feedback.versions[2].score.measured == 0


def test_operators_freeze_and_go_back() -> None:
    """A frozen fleet tries nothing; a version that is gone back to decides."""
    actions = Planned({
        1: [TRY], 50: [ModelAction(ActionKind.FREEZE)], 60: [ModelAction(ActionKind.UNFREEZE)],
        61: [ModelAction(ActionKind.ROLL_BACK, 2)],
    })  # fmt: skip
    feedback = feedback_of(1.0, actions)
    found = statuses(feedback, 1.0, 70)
    assert (found[48], found[49], found[60]) == (CANARY, NOTED, ROLLED_BACK) and feedback.model == 2
    assert {"action 1", "action 4", "model", "frozen", "version 2"} <= set(feedback.take_rows())


def test_on_trial_both_models_have_to_agree() -> None:
    """Of each workload the lower prediction, and the challenger's share of the champion's throughput alone."""
    champion, challenger = (
        CorrectedOracle(BiasedPredictor(factor), None, MODEL, LearntCorrections(Ledger())) for factor in (1.0, 0.9)
    )
    canary, place = CanaryOracle(champion, challenger), co_location_of([A, B])
    assert canary.throughput([place]) == challenger.throughput([place])
    assert CanaryOracle(challenger, champion).throughput([place]) == challenger.throughput([place])
    assert canary.throughput([(A,)]) == champion.throughput([(A,)])


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
@pytest.mark.long
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
