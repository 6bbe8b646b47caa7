"""What a further run of a co-location is worth."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from placer.budget.usage import Use
from placer.budget.worth import MOST_AT_ONCE, choose_runs
from placer.model.sla import Sla
from predictor import Predictor
from predictor.registry import Prediction
from profiles import CoLocation, TrafficProfile, Workload

A, B, C = (Workload(name, TrafficProfile(1000, 512)) for name in "ABC")
SLA = Sla(max_drop=0.1)


class Guess:
    """Every NF has 1000 kpps alone; side by side the given share, with an interval of +- the given width."""

    def __init__(self, kept: Mapping[CoLocation, float], width: float = 0.05, solo_width: float = 0.0) -> None:
        self._kept = kept
        self._width = width
        self._solo_width = solo_width

    def predict(self, co_locations: Sequence[CoLocation], *, coverage: float = 0.9) -> list[list[Prediction]]:
        """Predictions with intervals."""
        return [[self._of(one)] * len(one) for one in co_locations]

    def _of(self, co_location: CoLocation) -> Prediction:
        kpps = 1000 * self._kept.get(co_location, 1.0)
        width = self._width if len(co_location) > 1 else self._solo_width
        return Prediction(kpps, 1000.0, {}, "cpu", kpps * (1 - width), kpps * (1 + width))


def use(*workloads: Workload) -> Use:
    """A NIC with these workloads."""
    return tuple((one, SLA) for one in workloads)


def chosen(guess: Guess, weights: Mapping[Use, float], most: int, **arguments: Any) -> list[CoLocation]:
    """The runs that are chosen."""
    return choose_runs(cast(Predictor, guess), weights, arguments.pop("runs", {}), most, noise=0.01, **arguments)


def test_the_co_location_close_to_its_sla_or_on_more_nics_is_run() -> None:
    """Of two as uncertain and frequent, a run may change the verdict on one only; of two alike, frequency counts."""
    assert chosen(Guess({(A, B): 0.905, (A, C): 0.99}), {use(A, B): 1.0, use(A, C): 1.0}, 1) == [(A, B)]
    assert chosen(Guess({(A, B): 0.91, (A, C): 0.91}), {use(A, B): 1.0, use(A, C): 3.0}, 1) == [(A, C)]


def test_a_co_location_that_was_measured_often_is_certain() -> None:
    """An unmeasured one that is further from its SLA comes first; the other is repeated where it still is in doubt."""
    guess = Guess({(A, B): 0.902, (A, C): 0.92})
    weights = {use(A, B): 1.0, use(A, C): 1.0}
    assert chosen(guess, weights, 1, runs={(A, B): 20}) == [(A, C)]
    assert (A, B) in chosen(guess, weights, 8, runs={(A, B): 2})


def test_what_one_run_can_make_usable_is_run_before_what_stays_in_doubt() -> None:
    """At a small risk, a co-location on the very edge is not used after a run either; one somewhat inside may be."""
    guess = Guess({(A, B): 0.9, (A, C): 0.912}, width=0.012)
    weights = {use(A, B): 1.0, use(A, C): 1.0}
    assert chosen(guess, weights, 1, risk=0.02) == [(A, C)] and chosen(guess, weights, 1, risk=0.5) == [(A, B)]


def test_an_nf_alone_is_run_where_its_throughput_moves_many_requirements() -> None:
    """Its uncertainty counts on every NIC; with an SLA in kpps, solo throughput does not matter."""
    guess = Guess({(A, B): 0.9, (A, C): 0.9}, width=0.004, solo_width=0.02)
    assert chosen(guess, {use(A, B): 1.0, use(A, C): 1.0}, 1) == [(A,)]
    absolute = Sla(min_kpps=900)
    weights: dict[Use, float] = {((A, absolute), (B, absolute)): 1.0}
    assert set(chosen(guess, weights, 3)) == {(A, B)}


def test_one_co_location_does_not_take_all_runs() -> None:
    """The next round knows more, so that each has a limited number of runs; none is made without worth."""
    assert chosen(Guess({(A, B): 0.9}), {use(A, B): 1.0}, 100).count((A, B)) == MOST_AT_ONCE
    assert chosen(Guess({(A, B): 0.99}, width=1e-6), {use(A, B): 1.0}, 100) == []


def test_what_the_testbed_refuses_is_not_chosen() -> None:
    guess = Guess({(A, B): 0.9, (A, C): 0.95})
    assert (A, B) not in chosen(guess, {use(A, B): 1.0, use(A, C): 1.0}, 50, refused={(A, B)})


@pytest.mark.parametrize("most", [0, 1, 5])
def test_no_more_runs_are_chosen_than_there_are(most: int) -> None:
    assert len(chosen(Guess({(A, B): 0.9, (A, C): 0.91}), {use(A, B): 1.0, use(A, C): 1.0}, most)) == most
