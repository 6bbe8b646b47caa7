"""Random sequences of arrivals, evaluated on all cores of the machine (Tomur, section 7.5)."""

import atexit
import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import TextIO, TypeVar

import joblib

from experiments.registry import Setting
from experiments.tomur.methodology.simulated_card import CARD_SPECS, train
from placer.evaluate.evaluation import evaluate
from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.oracle import Oracle
from placer.model.plan import Plan
from placer.optimal import optimal_plan
from traces.arrivals import Recipe, generate

SEQUENCE_COUNT = 100
ARRIVAL_COUNT = 500
LENGTH_NOTE = "Look-ahead, the default rule, knows how many arrivals a sequence has, but not which ones come."

Evaluated = TypeVar("Evaluated")


@dataclass(frozen=True, eq=False)
class SimulatedFleet:
    """Unlimited NICs of one simulated card."""

    catalogue: Catalogue  # the card, its models and its testbed, with the default budget of SLA violations
    truth: tuple[Oracle, ...]  # the card's noise-free throughputs

    def arrivals(self, seed: int, count: int = ARRIVAL_COUNT) -> list[Arrival]:
        """The sequence of that seed."""
        return read_arrivals(sequence(seed, count), self.catalogue.default_traffic, self.catalogue.check)

    def fewest_nics(self, arrivals: list[Arrival]) -> int:
        """NICs of the optimum by the card's noise-free throughputs."""
        return len(optimal_plan([arrival.tenant for arrival in arrivals], self.catalogue.kinds, self.truth).nics)

    def score(self, plan: Plan, fewest: int) -> tuple[float, float]:
        """Wastage (%) relative to the optimum's NICs, and SLA violations (%), by the card's noise-free throughputs."""
        evaluation = evaluate(plan, self.catalogue.kinds, self.truth)
        return 100.0 * (evaluation.nics / fewest - 1.0), evaluation.violations_pct or 0.0


@cache
def fleet_of(testbed: str) -> SimulatedFleet:
    """The card of that SPEC, opened once in a process: oracles cache throughputs over all its sequences."""
    stack = ExitStack()
    atexit.register(stack.close)
    catalogue = open_catalogue(Cards(testbed=testbed), stack, lambda message: None)
    truth = catalogue.truth()
    assert truth is not None
    return SimulatedFleet(catalogue, truth)


def sequence(seed: int, count: int = ARRIVAL_COUNT) -> TextIO:
    """The sequence of that seed, as a CSV of arrivals."""
    return io.StringIO("".join(generate(Recipe(count=count, seed=seed))))


def each_sequence(setting: Setting, evaluate: Callable[[int], Evaluated], jobs: int = -1) -> Iterator[Evaluated]:
    """What `evaluate` returns for the seed of every sequence, in the order of the seeds. `setting`: scales the number
    of sequences, and receives the progress. `evaluate`: runs in a separate process; its result must depend on the seed
    only. `jobs`: number of processes; -1 means one per core, 1 stays in this process."""
    sequences = setting.count(SEQUENCE_COUNT)
    for testbed in CARD_SPECS:
        train(setting, testbed)  # train missing models here once, not in every process
    calls = (joblib.delayed(evaluate)(setting.seed * SEQUENCE_COUNT + number) for number in range(sequences))
    for done, result in enumerate(joblib.Parallel(n_jobs=jobs, return_as="generator")(calls), start=1):
        yield result
        setting.say(f"{done} of {sequences} sequences")
