"""Versions of models: a retrained one is tried, decides once it is better, and goes when it turns out worse."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from random import Random

import pytest

from placer.fleet.learning.actions import ActionKind, ModelAction
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
    assert found[0] == CANARY
    assert found.count(PROMOTED) == 1
    assert feedback.model == 2
    assert [one.status.value for one in feedback.versions.values()] == ["initial", "promoted"]
    score = feedback.versions[2].as_dict()
    assert score["mape_pct"] < 3 < 8 < score["champion_mape_pct"]
    assert score["coverage_90_pct"] > 80
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
    assert PROMOTED not in found
    assert found[-1] == NOTED
    assert feedback.versions[2].status.value == "rejected"
    assert feedback.model == 1
    assert isinstance(feedback.deciders[0], CorrectedOracle)


def test_a_promoted_version_that_turns_out_worse_is_rolled_back() -> None:
    """First the NFs are 5 % slower than the first version says, then they are as it says: too little for drift."""
    feedback = feedback_of(1.0, Planned({1: [TRY]}, factor=0.95))
    first = 1
    while statuses(feedback, 0.95, 1, first=first) != [PROMOTED]:
        first += 1
    assert ROLLED_BACK in statuses(feedback, 1.0, 600, first=first + 1)
    assert feedback.model == 1
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
    assert (found[48], found[49], found[60]) == (CANARY, NOTED, ROLLED_BACK)
    assert feedback.model == 2
    rows = feedback.take_rows()
    assert {"action 1", "action 4", "model", "frozen", "version 2"} <= set(rows)


def test_on_trial_both_models_have_to_agree() -> None:
    """Of each workload the lower prediction, and the challenger's share of the champion's throughput alone."""
    champion, challenger = (
        CorrectedOracle(BiasedPredictor(factor), None, MODEL, LearntCorrections(Ledger())) for factor in (1.0, 0.9)
    )
    canary, place = CanaryOracle(champion, challenger), co_location_of([A, B])
    assert canary.throughput([place]) == challenger.throughput([place])
    assert CanaryOracle(challenger, champion).throughput([place]) == challenger.throughput([place])
    assert canary.throughput([(A,)]) == champion.throughput([(A,)])
