"""What every simulated testbed does with a request, on whichever card or server.

A run takes five steps: refuse what cannot run, sort the loads, compute what each needs of the machine, solve for the
throughputs at which all demands are met (`solve`), read the counters (`readings`) and add noise (`noise`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.request_checks import refusals
from profiler.simulated.cache import Array
from profiler.simulated.card import Card
from profiler.simulated.demand import LoadDemand
from profiler.simulated.noise import factors
from profiler.simulated.readings import of_loads, readings
from profiler.simulated.solve import Batch, SteadyState, batch_of, solve
from profiler.testbed import Measurement, Run, RunRefused, Testbed
from profiles import BenchLoad, Counters, Load, TestbedDescription, Workload

DIGITS = 6
CHUNK = 2048
MOST_PREPARED = 100_000


@dataclass(frozen=True, slots=True)
class PreparedLoad:
    """A load that can run.

    Parameters
    ----------
    text
        Sorts it and seeds its noise.
    parts
        What it needs of the card; of a chain, what each of its cores needs.
    cores
        Cores that it takes.
    """

    text: str
    parts: tuple[LoadDemand, ...]
    cores: int


@dataclass(frozen=True, slots=True)
class SolvedRuns:
    """Co-locations with their steady state.

    Parameters
    ----------
    loads
        Of each co-location, sorted.
    orders
        Of each co-location, the place of each of these loads in the request.
    batch, solution
        The parts of the loads.
    noise
        Factors for throughput and counters, shape (8, loads, co-locations); None without noise.
    """

    loads: Sequence[Sequence[PreparedLoad]]
    orders: Sequence[Sequence[int]]
    batch: Batch
    solution: SteadyState
    noise: Array | None


class SimulatedMachine(Testbed):
    """A testbed that is computed.

    Parameters
    ----------
    seed
        Of the noise of runs without a seed of their own. Repeats of such a run differ.
    card
        The hardware.
    description
        What it reports of itself.
    """

    def __init__(self, seed: int, card: Card, description: TestbedDescription) -> None:
        self._seed = seed
        self._card = card
        self._description = description
        self._prepared: dict[Load, PreparedLoad] = {}
        self._repeats: Counter[tuple[str, ...]] = Counter()

    def describe(self) -> TestbedDescription:
        """The card, its NFs and benches, and the range of traffic."""
        return self._description

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        """Run `loads` side by side; see `Testbed.run`."""
        return self.run_many([loads], noise=noise, seed=seed)[0]

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[Run]:
        """One run per co-location. Its answer depends neither on the other co-locations nor on the order of its loads.

        Raises
        ------
        RunRefused
            When a co-location cannot run: unknown names, values out of range, too many cores.
        """
        runs: list[Run] = []
        for first in range(0, len(co_locations), CHUNK):
            runs += self._run_chunk(co_locations[first : first + CHUNK], noise, seed)
        return runs

    @abstractmethod
    def _prepare(self, load: Load) -> PreparedLoad:
        """What a load needs that the description allows."""

    def _runs(self, solved: SolvedRuns, answers: Array) -> list[Run]:
        """The runs with these throughputs and counters, shape (8, loads, co-locations)."""
        return [_run(answers[:, :, c], order) for c, order in enumerate(solved.orders)]

    def _accepted(self, loads: Sequence[Load]) -> list[PreparedLoad]:
        """The loads of a co-location, if it can run."""
        if not loads:
            raise RunRefused("bad-request: nothing to run")
        co_location = [self._prepared_load(load) for load in loads]
        if sum(load.cores for load in co_location) > self._card.cores:
            raise RunRefused(f"bad-request: {'; '.join(refusals(self._description, loads))}")
        return co_location

    def _run_chunk(self, co_locations: Sequence[Sequence[Load]], noise: bool, seed: int | None) -> list[Run]:
        accepted = [self._accepted(loads) for loads in co_locations]
        orders = [sorted(range(len(co_location)), key=lambda i: co_location[i].text) for co_location in accepted]
        ordered = [[co_location[i] for i in order] for co_location, order in zip(accepted, orders, strict=True)]
        batch = batch_of([[part for load in loads for part in load.parts] for loads in ordered], self._card)
        solution = solve(batch, self._card)
        truth = np.concatenate([solution.throughput[np.newaxis] * 1e3, readings(batch, solution, self._card)])
        answers = of_loads(truth, batch.cores, [[len(load.parts) for load in loads] for loads in ordered])
        drawn = self._noise(ordered, seed, answers.shape[1]) if noise else None
        if drawn is not None:
            answers *= drawn
        return self._runs(SolvedRuns(ordered, orders, batch, solution, drawn), answers)

    def _noise(self, co_locations: Sequence[Sequence[PreparedLoad]], seed: int | None, loads: int) -> Array:
        keys = []
        for co_location in co_locations:
            text = tuple(load.text for load in co_location)
            origin = str(seed)
            if seed is None:
                origin = f"{self._seed}/{self._repeats[text]}"
                self._repeats[text] += 1
            keys.append("\n".join([origin, *text]).encode())
        return factors(keys, loads)

    def _prepared_load(self, load: Load) -> PreparedLoad:
        if load not in self._prepared:
            if len(self._prepared) >= MOST_PREPARED:
                self._prepared.clear()
            if faults := refusals(self._description, [load]):
                raise RunRefused(f"bad-request: {'; '.join(faults)}")
            self._prepared[load] = self._prepare(load)
        return self._prepared[load]


def bench_text(load: BenchLoad) -> str:
    """The bench as text, for sorting and seeding: the same for equal loads, also for 1 and 1.0, or 0.0 and -0.0."""
    return f"bench {load.name} " + " ".join(f"{name}={value + 0.0!r}" for name, value in sorted(load.parameters))


def nf_text(load: Workload) -> str:
    """The workload as text, as `bench_text`."""
    return f"nf {load.nf} " + " ".join(repr(value + 0.0) for value in load.traffic.as_tuple())


def _run(answers: Array, order: Sequence[int]) -> Run:
    """The answers, which are in sorted order, in the order of the request."""
    measured: list[Measurement | None] = [None] * len(order)
    for place, values in zip(order, answers.T.tolist(), strict=False):
        rounded = list(map(rounded_reading, values))
        measured[place] = Measurement(rounded[0], Counters(*rounded[1:]))
    return Run(tuple(measurement for measurement in measured if measurement is not None))


def rounded_reading(value: float) -> float:
    """The value with the digits that a testbed reports."""
    return float(f"{value:.{DIGITS - 1}e}")
