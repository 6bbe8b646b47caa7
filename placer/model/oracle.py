"""Oracles: the throughput of every workload that shares a NIC, by prediction or by experiment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from predictor import Predictor
from profiler.testbed import Testbed
from profiles import Workload

CoLocation = tuple[Workload, ...]
"""The workloads that share a NIC, sorted: order on a NIC means nothing, so equal companies are equal tuples."""


def co_location_of(workloads: Iterable[Workload]) -> CoLocation:
    """The company that these workloads make."""
    return tuple(sorted(workloads))


def lowest_by_workload(co_location: CoLocation, kpps: Sequence[float]) -> dict[Workload, float]:
    """The throughput (kpps) of each distinct workload of a co-location; of equal workloads, the slowest counts."""
    lowest: dict[Workload, float] = {}
    for workload, throughput in zip(co_location, kpps, strict=True):
        lowest[workload] = min(throughput, lowest.get(workload, throughput))
    return lowest


CONTENTION = "contention"

DEFAULT_RISK = 0.22
"""The risk at which is placed unless told: at the best guess more SLAs break than the gain in NICs is worth."""

GENERATION = 200_000
"""Answers that an oracle remembers at least, and at most twice as many."""


class Oracle(ABC):
    """Tells throughputs on one NIC model. Answers depend on the company alone; those of late are remembered."""

    def __init__(self) -> None:
        self._remembered: dict[CoLocation, tuple[float, ...]] = {}
        self._older: dict[CoLocation, tuple[float, ...]] = {}

    @abstractmethod
    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        """Throughputs (kpps) of companies that were not asked before, aligned with their workloads."""

    def throughput(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        """Throughput (kpps) of each workload of each company, aligned with the company's own order."""
        answers: dict[CoLocation, tuple[float, ...]] = {}
        fresh = []
        for co_location in co_locations:
            if co_location not in answers:
                known = self._recalled(co_location)
                if known is None:
                    fresh.append(co_location)
                answers[co_location] = known or ()
        if fresh:
            for co_location, answer in zip(fresh, self._query(fresh), strict=True):
                answers[co_location] = self._remember(co_location, tuple(float(value) for value in answer))
        return [answers[co_location] for co_location in co_locations]

    def _recalled(self, co_location: CoLocation) -> tuple[float, ...] | None:
        known = self._remembered.get(co_location)
        if known is None and co_location in self._older:
            known = self._remember(co_location, self._older[co_location])
        return known

    def _remember(self, co_location: CoLocation, answer: tuple[float, ...]) -> tuple[float, ...]:
        if len(self._remembered) >= GENERATION:
            self._older, self._remembered = self._remembered, {}
        self._remembered[co_location] = answer
        return answer

    def by_workload(self, co_location: CoLocation) -> dict[Workload, float]:
        """Throughput (kpps) of each distinct workload of the company; of equal workloads, the slowest counts."""
        return lowest_by_workload(co_location, self.throughput([co_location])[0])

    def solo(self, workload: Workload) -> float:
        """Throughput (kpps) of `workload` alone on the NIC."""
        return self.throughput([(workload,)])[0][0]

    def bottleneck(self, co_location: CoLocation, workload: Workload) -> str:
        """The resource that costs `workload` most in the company; `contention` where the oracle cannot tell."""
        return CONTENTION


class PredictorOracle(Oracle):
    """What a predictor expects.

    Parameters
    ----------
    predictor
        The predictor.
    risk
        None for its best guess; else the throughput that at most this share of instances falls short of.
    """

    def __init__(self, predictor: Predictor, risk: float | None = None) -> None:
        super().__init__()
        self.predictor = predictor
        self.risk = risk
        self._bottlenecks: dict[CoLocation, tuple[str, ...]] = {}

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [list(answer) for answer in self.predictor.throughput(co_locations, risk=self.risk)]

    def bottleneck(self, co_location: CoLocation, workload: Workload) -> str:
        if co_location not in self._bottlenecks:
            if len(self._bottlenecks) >= GENERATION:
                self._bottlenecks.clear()
            self._bottlenecks[co_location] = tuple(one.bottleneck for one in self.predictor.predict([co_location])[0])
        return self._bottlenecks[co_location][co_location.index(workload)]


class TestbedOracle(Oracle):
    """What a testbed measures, noise-free where it can be: the ground truth."""

    __test__ = False

    def __init__(self, testbed: Testbed) -> None:
        super().__init__()
        self.testbed = testbed

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        runs = self.testbed.run_many(co_locations, noise=False)
        return [[measured.throughput_kpps for measured in run.measurements] for run in runs]
