"""Oracles: the throughput of every workload of a co-location, by prediction or by measurement.

Of a workload at an offered rate a prediction is what it could carry beside the others, and a measurement what it
carries of that rate. Of a workload whose packets are promised a latency it is the throughput that counts: 0 where the
promise is missed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import islice

import numpy as np

from predictor import Predictor
from predictor.contention.checks import CLOSE, MET, CoLocationChecks
from predictor.regression.significant import significant
from profiler.testbed import Testbed
from profiles import CoLocation, Workload
from profiles.arrays import Floats

__all__ = ["Oracle", "PredictorOracle", "TestbedOracle", "co_location_of", "lowest_by_workload"]


def co_location_of(workloads: Iterable[Workload]) -> CoLocation:
    """The co-location of these workloads."""
    return tuple(sorted(workloads))


def lowest_by_workload(co_location: CoLocation, kpps: Sequence[float]) -> dict[Workload, float]:
    """The throughput (kpps) of each distinct workload of a co-location; of equal workloads, the slowest counts."""
    lowest: dict[Workload, float] = {}
    for workload, throughput in zip(co_location, kpps, strict=True):
        lowest[workload] = min(throughput, lowest.get(workload, throughput))
    return lowest


CONTENTION_BOTTLENECK = "contention"

DEFAULT_RISK = 0.22
"""The default risk of placement: the median prediction violates more SLAs than the NICs that it saves are worth."""

CACHED_ANSWERS = 200_000  # answers that an oracle keeps at least, and at most twice as many

KEPT_VERDICTS = 64
"""Latest co-locations whose verdicts are kept: a change is checked on several numbers of cores, and what it has changed
is then written down."""


Verdict = tuple[bool, Sequence[float] | Floats]
"""Whether every SLA is met, and about the throughput (kpps) of each workload."""


class Oracle(ABC):
    """Throughputs on one NIC model. They depend on the co-location alone; recent answers are cached."""

    def __init__(self) -> None:
        self._recent: dict[CoLocation, tuple[float, ...]] = {}
        self._older: dict[CoLocation, tuple[float, ...]] = {}

    @abstractmethod
    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        """Throughputs (kpps) of co-locations that are not cached, aligned with their workloads."""

    def throughput(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        """Throughput (kpps) of each workload of each co-location, in the co-location's own order."""
        recent = self._recent
        try:
            return [recent[co_location] for co_location in co_locations]
        except KeyError:
            pass
        known = [self._cached(co_location) for co_location in co_locations]
        unknown = [co_location for co_location, answer in zip(co_locations, known, strict=True) if answer is None]
        missing = list(dict.fromkeys(unknown))
        answers = self._query(missing) if missing else ()
        kept = {one: self._keep(one, tuple(map(float, answer))) for one, answer in zip(missing, answers, strict=True)}
        return [kept[one] if answer is None else answer for one, answer in zip(co_locations, known, strict=True)]

    def meets(self, co_location: CoLocation, required_kpps: Sequence[float]) -> Verdict:
        """Whether each workload of a sorted co-location gets what it requires, and about the throughput (kpps) of each.

        The answer is that of `throughput`, the throughputs only nearly; behind one that is too low they may be NaN.
        They do not depend on what was asked for before.
        """
        kpps = self.throughput([co_location])[0]
        lowest = lowest_by_workload(co_location, kpps)
        return all(lowest[one] >= required for one, required in zip(co_location, required_kpps, strict=True)), kpps

    @property
    def checks(self) -> CoLocationChecks | None:
        """What estimates throughputs roughly; None where nothing does."""
        return None

    @property
    def is_checked(self) -> bool:
        """Whether `meets` answers what `checks` does now, unless that is too close."""
        return False

    def _cached(self, co_location: CoLocation) -> tuple[float, ...] | None:
        answer = self._recent.get(co_location)
        if answer is None and co_location in self._older:
            answer = self._keep(co_location, self._older[co_location])
        return answer

    def _keep(self, co_location: CoLocation, answer: tuple[float, ...]) -> tuple[float, ...]:
        if len(self._recent) >= CACHED_ANSWERS:
            self._older, self._recent = self._recent, {}
        self._recent[co_location] = answer
        return answer

    def by_workload(self, co_location: CoLocation) -> dict[Workload, float]:
        """Throughput (kpps) of each distinct workload of the co-location; of equal workloads, the slowest counts."""
        return lowest_by_workload(co_location, self.throughput([co_location])[0])

    def in_advance(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        """Throughputs (kpps) by which co-locations are compared in advance, in the order of `throughput`.

        Beside others never less than `throughput` answers now; it may be less because of what was learnt, and may rise
        again.
        """
        return self.throughput(co_locations)

    def throughput_of(self, workload: Workload, co_location: CoLocation) -> float:
        """Throughput (kpps) of one workload of the co-location; the slowest where there are equal ones."""
        return self.by_workload(co_location)[workload]

    def following(self, asked: Sequence[tuple[Workload, CoLocation]]) -> list[Callable[[], float]]:
        """What answers `throughput_of` each of these again and again, as it is then."""
        return [partial(self.throughput_of, *query) for query in asked]

    @property
    def revision(self) -> int:
        """Changes whenever answers change; those of most oracles never do."""
        return 0

    def changed_since(self, revision: int) -> Sequence[tuple[Workload, CoLocation]] | None:
        """What answers changed since a revision: those of each workload beside these competitors, and beside others
        that differ by one; None where any may have."""
        return () if revision == self.revision else None

    def solo(self, workload: Workload) -> float:
        """Throughput (kpps) of `workload` alone on the NIC."""
        return self.throughput([(workload,)])[0][0]

    def latency(self, co_location: CoLocation) -> tuple[float | None, ...]:
        """The statistic of latency of each workload, us, as it is promised; None where the oracle does not know."""
        return (None,) * len(co_location)

    def bottleneck(self, co_location: CoLocation, workload: Workload) -> str:
        """The resource that costs `workload` most in the co-location; `contention` where the oracle does not know."""
        return CONTENTION_BOTTLENECK


class PredictorOracle(Oracle):
    """What a predictor expects. `predictor`: the predictor. `risk`: None for the median prediction; else the throughput
    that at most this share of instances falls below."""

    def __init__(self, predictor: Predictor, risk: float | None = None) -> None:
        super().__init__()
        self.predictor = predictor
        self.risk = risk
        self._bottlenecks: dict[CoLocation, tuple[str, ...]] = {}
        self._verdicts: dict[CoLocation, tuple[Sequence[float], int, Floats]] = {}

    @cached_property
    def checks(self) -> CoLocationChecks | None:
        """Those of the predictor."""
        return self.predictor.checks(self.risk)

    @property
    def is_checked(self) -> bool:
        return self.checks is not None and self.checks.knows_all

    def meets(self, co_location: CoLocation, required_kpps: Sequence[float]) -> Verdict:
        if self.checks is not None and len(co_location) > 1:
            required, known = tuple(required_kpps), self._verdicts.get(co_location)
            if known is None or known[0] != required:
                if len(self._verdicts) >= KEPT_VERDICTS:
                    del self._verdicts[next(iter(self._verdicts))]
                known = self._verdicts[co_location] = required, *self.checks.meets(co_location, required)
            _, verdict, kpps = known
            if verdict != CLOSE:
                return verdict == MET, kpps
        return super().meets(co_location, required_kpps)

    def solo(self, workload: Workload) -> float:
        if self.checks is None:
            return super().solo(workload)
        known = self._recent.get((workload,))
        if known is None:
            # what it can carry alone does not depend on what is offered, so rates need no row of their own for it
            saturated = workload.saturated
            alone = self.checks.solo(workload) if saturated is workload else self.solo(saturated)
            known = self._keep((workload,), (alone,))
        return known[0]

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        answers = self.predictor.throughput(co_locations, risk=self.risk)
        # rounded, because decisions hang on comparisons, and processors differ in the last digits
        values = iter(significant(np.concatenate(answers)).tolist())
        return [list(islice(values, len(answer))) for answer in answers]

    def bottleneck(self, co_location: CoLocation, workload: Workload) -> str:
        if co_location not in self._bottlenecks:
            if len(self._bottlenecks) >= CACHED_ANSWERS:
                self._bottlenecks.clear()
            predictions = self.predictor.predict([co_location])[0]
            self._bottlenecks[co_location] = tuple(prediction.bottleneck for prediction in predictions)
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
