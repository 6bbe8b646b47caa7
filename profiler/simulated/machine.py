"""What every simulated testbed does with a request, on whichever card or server. A run takes five steps: refuse what
cannot run, sort the loads, compute what each needs of the machine, solve for the throughputs at which all demands are
met (`solve`), read the counters and add noise."""

import hashlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, inf

import numpy as np

from profiler.protocol.request_checks import refusals
from profiler.simulated.card import Card
from profiler.simulated.demand import LOADS_PER_INSTRUCTION, STORES_PER_INSTRUCTION, LoadDemand
from profiler.simulated.solve import Batch, SteadyState, batch_of, solve
from profiler.testbed import Measurement, Run, RunRefused, Testbed
from profiles import BenchLoad, Counters, Load, TestbedDescription, Workload
from profiles.arrays import Floats

READING_DIGITS = 6
CO_LOCATION_CHUNK = 2048
MOST_PREPARED = 100_000


@dataclass(frozen=True, slots=True)
class PreparedLoad:
    """A load that can run."""

    text: str  # sorts it and seeds its noise
    parts: tuple[LoadDemand, ...]  # what it needs of the card; of a chain, what each of its cores needs
    cores: int  # cores that it takes
    rate_kpps: float = field(default=inf, kw_only=True)  # the most that it is measured to carry: what is offered to it
    copies: bool = field(default=False, kw_only=True)
    """Whether its parts are copies of one another, each with packets of its own."""


@dataclass(frozen=True, slots=True)
class SolvedRuns:
    """Co-locations with their steady state."""

    loads: Sequence[Sequence[PreparedLoad]]  # of each co-location, sorted
    orders: Sequence[Sequence[int]]  # of each co-location, the place of each of these loads in the request
    batch: Batch
    solution: SteadyState  # the parts of the loads
    noise: Floats | None  # factors for throughput and counters, shape (8, loads, co-locations); None without noise


class SimulatedMachine(Testbed):
    """A testbed that is computed. `seed`: of the noise of runs without a seed of their own. Repeats of such a run
    differ. `card`: the hardware. `description`: what it reports of itself."""

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
        Raises `RunRefused` when a co-location cannot run: unknown names, values out of range, too many cores."""
        runs: list[Run] = []
        for first in range(0, len(co_locations), CO_LOCATION_CHUNK):
            runs += self._run_chunk(co_locations[first : first + CO_LOCATION_CHUNK], noise, seed)
        return runs

    @abstractmethod
    def _prepare(self, load: Load) -> PreparedLoad:
        """What a load needs that the description allows."""

    def _runs(self, solved: SolvedRuns, answers: Floats) -> list[Run]:
        """The runs with these throughputs and counters, shape (8, loads, co-locations)."""
        return [
            _run(answers[:, :, c], order, loads)
            for c, (order, loads) in enumerate(zip(solved.orders, solved.loads, strict=True))
        ]

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
        truth = np.concatenate([solution.capacity[np.newaxis] * 1e3, readings(batch, solution, self._card)])
        answers = of_loads(truth, batch.cores, ordered)
        drawn = self._noise(ordered, seed, answers.shape[1]) if noise else None
        if drawn is not None:
            answers *= drawn
        return self._runs(SolvedRuns(ordered, orders, batch, solution, drawn), answers)

    def _noise(self, co_locations: Sequence[Sequence[PreparedLoad]], seed: int | None, loads: int) -> Floats:
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


def _run(answers: Floats, order: Sequence[int], loads: Sequence[PreparedLoad]) -> Run:
    """The answers, which are in sorted order as the loads, in the order of the request. Noise is of what a load can
    carry, so that one with an offered rate is measured to carry that rate or less."""
    measured: list[Measurement | None] = [None] * len(order)
    for place, load, values in zip(order, loads, answers.T.tolist(), strict=False):
        rounded = list(map(round_reading, values))
        measured[place] = Measurement(min(rounded[0], load.rate_kpps), Counters(*rounded[1:]))
    return Run(tuple(measurement for measurement in measured if measurement is not None))


def round_reading(value: float) -> float:
    """The value with the digits that a testbed reports."""
    return float(f"{value:.{READING_DIGITS - 1}e}")


# Measurement noise that depends only on a seed and on the loads.


THROUGHPUT_SPREAD = 0.01
COUNTER_SPREADS = (0.006, 0.006, 0.008, 0.008, 0.006, 0.006, 0.003)
"""Standard deviations; repeats of one configuration on a BlueField-2 differ by about 1 %."""


def factors(keys: Sequence[bytes], loads: int) -> Floats:
    """Lognormal factors for throughput and counters, shape (8, loads, len(keys)). `keys`: per co-location, what its
    noise depends on. `loads`: loads per co-location. The factors of a load do not depend on how many loads follow it.
    """
    from scipy.special import ndtri

    draws = 7 * loads
    bits = b"".join(hashlib.shake_256(key).digest(8 * draws) for key in keys)
    uniform = (np.frombuffer(bits, dtype="<u8") >> np.uint64(11)).astype(np.float64)
    normal = ndtri((uniform + 0.5) * 2.0**-53).reshape(len(keys), loads, 7).transpose(2, 1, 0)
    per_quantity = np.stack([normal[0], normal[1], normal[1], *normal[2:]])  # ipc and irt share their noise
    spreads = np.array([THROUGHPUT_SPREAD, *COUNTER_SPREADS])[:, np.newaxis, np.newaxis]
    # not numpy's exponential: its last digit depends on the processor, and what is drawn by a factor hangs on that
    exponents = spreads * per_quantity
    return np.fromiter(map(exp, exponents.ravel().tolist()), np.float64, exponents.size).reshape(exponents.shape)


# The performance counters that a load shows while it runs (Tomur, table 13).
#
# Cores poll: the time not spent on packets goes to a tight loop, which retires instructions and uses only the L1 cache.
# The measured mem-bench behaves so at low rates: about one instruction per cycle.


POLLING_IPC = 1.02
THROUGHPUT_PLACE, IPC = 0, 1  # places in an answer: the throughput comes first, then the seven counters


def readings(batch: Batch, solution: SteadyState, card: Card) -> Floats:
    """The seven counters in the order of `profiles.COUNTERS`, shape (7, loads, batch)."""
    rate = solution.throughput * 1e6
    cycles = batch.cores * card.clock_ghz * 1e9
    busy = solution.throughput / solution.core_rate
    retired = rate * batch.instructions + np.maximum(1 - busy, 0.0) * cycles * POLLING_IPC
    reads = writes = np.zeros_like(rate)
    for structure in range(batch.l2.shape[1]):
        accesses, share = batch.l2[:, structure], batch.writes[:, structure]
        reads = reads + rate * accesses * (1 - share)
        writes = writes + rate * accesses * share
    return np.stack(
        [
            retired / cycles, retired, reads, writes, retired * LOADS_PER_INSTRUCTION, retired * STORES_PER_INSTRUCTION,
            batch.wss_mb,
        ]
    )  # fmt: skip


def of_loads(answers: Floats, cores: Floats, co_locations: Sequence[Sequence[PreparedLoad]]) -> Floats:
    """Throughput and counters of loads, of which some have several parts: cores that pass the same packets, or copies.

    Parameters
    ----------
    answers
        Throughput and the seven counters of each part, shape (8, parts, co-locations).
    cores
        Of each part, shape (parts, co-locations).
    co_locations
        The loads with these parts, in their order.

    Returns
    -------
    answers
        Shape (8, loads, co-locations). Rates and working sets of parts add up; throughput is that of each of them, of
        copies their sum."""
    if all(len(load.parts) == 1 for loads in co_locations for load in loads):
        return answers
    joined = np.ones((len(answers), max(map(len, co_locations)), len(co_locations)))
    for c, loads in enumerate(co_locations):
        counts = [len(load.parts) for load in loads]
        ends = np.cumsum(counts)
        for at, (load, first, end) in enumerate(zip(loads, ends - counts, ends, strict=True)):
            of_load = answers[:, first:end, c]
            joined[:, at, c] = of_load.sum(axis=1)
            if not load.copies:
                joined[THROUGHPUT_PLACE, at, c] = of_load[THROUGHPUT_PLACE, 0]
            joined[IPC, at, c] = np.average(of_load[IPC], weights=cores[first:end, c])
    return joined
