"""The corrected oracle: what is asked for again and again is what is asked for once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from placer.fleet.learning.corrected_oracle import CorrectedOracle
from placer.fleet.learning.corrections import LearntCorrections
from placer.fleet.learning.ledger import Ledger, ProductionReading
from placer.model.oracle import co_location_of
from placer.testing.strategies import TOY_TRAFFIC
from profiles import CoLocation, Workload
from tests.placer.fleet.learning.toy_predictor import ToyPredictor

MODEL = "toy-0"
WORKLOADS = [Workload(nf, TOY_TRAFFIC) for nf in "abc"]
CO_LOCATIONS = st.lists(st.sampled_from(WORKLOADS), min_size=1, max_size=4).map(co_location_of)


class DigitsPredictor(ToyPredictor):
    """Its last digits depend on how much is asked for at once."""

    def throughput(
        self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None
    ) -> list[NDArray[np.float64]]:
        return [one * (1.0 + 1e-15 * len(co_locations)) for one in super().throughput(co_locations, risk=risk)]


def oracle(predictor: ToyPredictor | None = None) -> CorrectedOracle:
    """Nothing is learnt yet."""
    return CorrectedOracle(predictor or ToyPredictor(), 0.2, MODEL, LearntCorrections(Ledger()))


def learn(learning: CorrectedOracle, co_location: CoLocation, tenant: str, share: float) -> None:
    """Learn that each workload of a co-location does this share of what was predicted."""
    for workload, estimate in zip(co_location, learning.estimates(co_location), strict=True):
        kpps = share * estimate.kpps
        reading = ProductionReading(MODEL, co_location, workload, tenant, kpps, 2 * kpps, 1, share < 1)
        entry = learning.corrections.ledger.add(reading)
        learning.corrections.learn(entry, MODEL, workload, estimate)


@given(st.lists(st.tuples(CO_LOCATIONS, st.sampled_from("123"), st.floats(0.7, 1.2)), max_size=12), CO_LOCATIONS)
def test_what_follows_a_workload_answers_as_if_asked_anew(
    readings: list[tuple[CoLocation, str, float]], followed: CoLocation
) -> None:
    """After every reading, and after an NF was found to have changed."""
    learning = oracle()
    asked = [(workload, followed) for workload in dict.fromkeys(followed)]
    answers = learning.following(asked)

    def check() -> None:
        now = learning.by_workload(followed)
        assert [answer() for answer in answers] == pytest.approx([now[workload] for workload, _ in asked], rel=1e-12)

    check()
    for co_location, tenant, share in readings:
        learn(learning, co_location, tenant, share)
        check()
    learning.corrections.set_drift(MODEL, followed[0].nf, len(followed) == 1, 0.85)
    check()


def test_estimates_do_not_depend_on_what_else_is_asked_for() -> None:
    """One by one, as after a restart, and all at once."""
    together, alone = oracle(DigitsPredictor()), oracle(DigitsPredictor())
    co_locations = [co_location_of([one, other]) for one in WORKLOADS for other in WORKLOADS]
    together.following([(one[0], one) for one in co_locations])
    assert [together.estimates(one) for one in co_locations] == [alone.estimates(one) for one in co_locations]


def test_intervals_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not change with what is learnt, and take the predictor a millisecond."""
    learning, place = oracle(), co_location_of(WORKLOADS)
    bounds = learning.bounds(place)
    monkeypatch.setattr(learning.predictor, "predict", None)
    learn(learning, place, "1", 0.8)
    assert learning.bounds(place) == bounds
