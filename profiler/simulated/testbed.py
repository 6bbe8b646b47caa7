"""A simulated SmartNIC: what packets need of cores, caches, memory and accelerators, and how long they wait for it.

A run takes five steps: refuse what cannot run, sort the loads, compute what each needs of the card (`demand`), solve
for the throughputs at which all demands are met (`solve`), read the counters (`readings`) and add noise (`noise`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.request_checks import refusals
from profiler.simulated.account import Account, accounts
from profiler.simulated.benches import BENCHES
from profiler.simulated.cache import Array
from profiler.simulated.card import BLUEFIELD_2, Card
from profiler.simulated.demand import LoadDemand, nf_demand
from profiler.simulated.nfs import NFS, NfSpec
from profiler.simulated.noise import factors
from profiler.simulated.readings import readings
from profiler.simulated.solve import batch_of, solve
from profiler.testbed import Measurement, Run, RunRefused, Testbed
from profiles import (
    BenchDescription,
    BenchLoad,
    Counters,
    Load,
    NfDescription,
    NicModel,
    TestbedDescription,
)

DIGITS = 6
CHUNK = 2048
MOST_PREPARED = 100_000
ATTRIBUTES = {"flows": (1.0, 500000.0), "packet_size": (64.0, 1500.0), "mtbr": (0.0, 1100.0)}
DEFAULT_TRAFFIC = {"flows": 16000.0, "packet_size": 1500.0, "mtbr": 600.0}


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A load with what it needs of the card, and the text that sorts it and seeds its noise."""

    text: str
    demand: LoadDemand


class SimulatedTestbed(Testbed):
    """Runs NFs and benches on a simulated card.

    Parameters
    ----------
    seed
        Of the noise of runs without a seed of their own. Repeats of such a run differ.
    card
        The simulated card.
    nfs
        The NFs that it can run.
    """

    def __init__(self, *, seed: int = 0, card: Card = BLUEFIELD_2, nfs: Sequence[NfSpec] = NFS) -> None:
        self._seed = seed
        self._card = card
        self._nfs = {nf.name: nf for nf in nfs}
        self._description = _describe(card, nfs)
        self._prepared: dict[Load, _Prepared] = {}
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

    def account(self, co_locations: Sequence[Sequence[Load]]) -> list[list[Account]]:
        """Where each load of each co-location spends its time, without noise; loads in the order of the request.

        Raises
        ------
        RunRefused
            As `run_many`.
        """
        return accounts([[load.demand for load in self._accepted(loads)] for loads in co_locations], self._card)

    def _run_chunk(self, co_locations: Sequence[Sequence[Load]], noise: bool, seed: int | None) -> list[Run]:
        accepted = [self._accepted(loads) for loads in co_locations]
        orders = [sorted(range(len(co_location)), key=lambda i: co_location[i].text) for co_location in accepted]
        ordered = [[co_location[i] for i in order] for co_location, order in zip(accepted, orders, strict=True)]
        answers = self._truth([[load.demand for load in co_location] for co_location in ordered])
        if noise:
            texts = [tuple(load.text for load in co_location) for co_location in ordered]
            answers *= self._noise(texts, seed, answers.shape[1])
        return [_run(answers[:, :, c], order) for c, order in enumerate(orders)]

    def _accepted(self, loads: Sequence[Load]) -> list[_Prepared]:
        """The loads of a co-location, if it can run."""
        if not loads:
            raise RunRefused("bad-request: nothing to run")
        co_location = [self._prepare(load) for load in loads]
        if sum(load.demand.cores for load in co_location) > self._card.cores:
            raise RunRefused(f"bad-request: {'; '.join(refusals(self._description, loads))}")
        return co_location

    def _truth(self, co_locations: Sequence[Sequence[LoadDemand]]) -> Array:
        """Throughput (kpps) and the seven counters, shape (8, loads, co-locations)."""
        batch = batch_of(co_locations, self._card)
        solution = solve(batch, self._card)
        return np.concatenate([solution.throughput[np.newaxis] * 1e3, readings(batch, solution, self._card)])

    def _noise(self, texts: Sequence[tuple[str, ...]], seed: int | None, loads: int) -> Array:
        keys = []
        for text in texts:
            origin = str(seed)
            if seed is None:
                origin = f"{self._seed}/{self._repeats[text]}"
                self._repeats[text] += 1
            keys.append("\n".join([origin, *text]).encode())
        return factors(keys, loads)

    def _prepare(self, load: Load) -> _Prepared:
        if load not in self._prepared:
            if len(self._prepared) >= MOST_PREPARED:
                self._prepared.clear()
            if faults := refusals(self._description, [load]):
                raise RunRefused(f"bad-request: {'; '.join(faults)}")
            self._prepared[load] = _Prepared(_text(load), self._demand(load))
        return self._prepared[load]

    def _demand(self, load: Load) -> LoadDemand:
        if isinstance(load, BenchLoad):
            bench = next(spec for spec in BENCHES if spec.name == load.name)
            return bench.demand(dict(load.parameters), self._card)
        return nf_demand(self._nfs[load.nf], load.traffic, self._card)


def _text(load: Load) -> str:
    """The load as text, for sorting and seeding: the same for equal loads, also for 1 and 1.0, or 0.0 and -0.0."""
    if isinstance(load, BenchLoad):
        return f"bench {load.name} " + " ".join(f"{name}={value + 0.0!r}" for name, value in sorted(load.parameters))
    return f"nf {load.nf} " + " ".join(repr(value + 0.0) for value in load.traffic.as_tuple())


def _run(answers: Array, order: Sequence[int]) -> Run:
    """The answers, which are in sorted order, in the order of the request."""
    measured: list[Measurement | None] = [None] * len(order)
    for place, values in zip(order, answers.T.tolist(), strict=False):
        rounded = [float(f"{value:.{DIGITS - 1}e}") for value in values]
        measured[place] = Measurement(rounded[0], Counters(*rounded[1:]))
    return Run(tuple(measurement for measurement in measured if measurement is not None))


def _describe(card: Card, nfs: Sequence[NfSpec]) -> TestbedDescription:
    return TestbedDescription(
        name=f"simulated-{card.model}",
        simulated=True,
        nic=NicModel(model=card.model, cores=card.cores, llc_bytes=card.llc_bytes, accelerators=tuple(card.engines)),
        attributes=ATTRIBUTES,
        default_traffic=DEFAULT_TRAFFIC,
        nfs=tuple(
            NfDescription(name=nf.name, cores=nf.cores, accelerators=tuple(name for name, _ in nf.queues)) for nf in nfs
        ),
        benches=tuple(
            BenchDescription(name=bench.name, cores=1, parameters=dict(bench.parameters)) for bench in BENCHES
        ),
    )
