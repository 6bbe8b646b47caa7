"""Latency at shares of what an NF carries beside others, several times each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from profiler.latency.settings import LatencySetting
from profiler.outliers import ConfirmedTestbed
from profiler.sampling import neat
from profiler.testbed import PacketLatency, Run, TestbedError
from profiler.working_runs import WorkingRuns
from profiles import Load, TestbedDescription, Workload
from profiles.latency_table import CAPACITY, COMPETITORS, MAX, MEAN, P50, P99, RATE, REPEATS, SPREAD, competitors_text

SHARES = (0.1, 0.3, 0.5, 0.65, 0.8, 0.9, 0.95)
"""Offered rates, as shares of the throughput of the NF in a closed loop in the same co-location."""
TIMES = 2
CARRIED = 0.98
"""A smaller share of the offered packets that leaves means overload."""
SEEDS = 1_000_003
FIRST_SEED = 70_000
"""Chains have the seeds before."""

Row = dict[str, object]
CoLocationLoads = tuple[Load, ...]


@dataclass(frozen=True, slots=True)
class LatencyAtRate:
    """An NF at an offered rate, with its throughput in a closed loop in the same co-location, and the repeats."""

    setting: LatencySetting
    capacity_kpps: float
    rate_kpps: float
    repeats: tuple[PacketLatency, ...]

    def row(self) -> Row:
        """The row of `latency.csv`: medians of the repeats."""
        p99s = [one.p99 for one in self.repeats]
        return {
            **self.setting.workload.traffic.as_dict(),
            COMPETITORS: competitors_text(other.nf for other in self.setting.others),
            CAPACITY: self.capacity_kpps,
            RATE: self.rate_kpps,
            MEAN: median(one.mean for one in self.repeats),
            P50: median(one.p50 for one in self.repeats),
            P99: median(p99s),
            MAX: max(one.max for one in self.repeats),
            REPEATS: len(p99s),
            SPREAD: max(p99s) - min(p99s) if len(p99s) > 1 else None,
        }


def setting_runs(times: int) -> int:
    """How many runs a setting takes."""
    return 1 + len(SHARES) * times


class LatencyRuns:
    """Runs settings on a testbed, first in a closed loop and then at rates.

    Parameters
    ----------
    testbed
        Where they run.
    known
        What is sure to run there: it is run after a failure, so that a broken testbed is noticed.
    seed
        Of the noise of a simulated testbed; each repeat has its own.
    done
        Called with the number of runs, after each batch.
    """

    def __init__(
        self, testbed: ConfirmedTestbed, known: Workload, seed: int, done: Callable[[int], None] = lambda runs: None
    ) -> None:
        self._description: TestbedDescription = testbed.describe()
        self._closed = WorkingRuns(testbed, known, done)
        self._open = WorkingRuns(testbed.first, known, done)
        self._seed = seed
        self.refused: list[LatencySetting] = []
        """Settings that do not run on the testbed."""
        self.overloaded = 0
        """Rates that an NF did not carry."""

    def measure(self, settings: Sequence[LatencySetting], times: int) -> list[LatencyAtRate]:
        """The latencies of every setting that runs, by setting and rising rate, without rates that are not carried.

        Raises
        ------
        TestbedError
            When the testbed fails, or measures no latency.
        """
        by_loads = {one.loads(self._description): one for one in settings}
        closed = self._closed.run(list(by_loads), self._seed + SEEDS * FIRST_SEED)
        capacities = {by_loads[loads]: run.measurements[0].throughput_kpps for loads, run in closed}
        self.refused += [one for one in settings if one not in capacities]
        wanted = {
            one.loads(self._description, rate): (one, capacity, rate)
            for one, capacity in capacities.items()
            for rate in (neat(share * capacity) for share in SHARES)
        }
        found = self._repeats(list(wanted), times)
        return [LatencyAtRate(*wanted[loads], tuple(latencies)) for loads, latencies in found.items()]

    def _repeats(
        self, co_locations: Sequence[CoLocationLoads], times: int
    ) -> dict[CoLocationLoads, list[PacketLatency]]:
        found: dict[CoLocationLoads, list[PacketLatency]] = {one: [] for one in co_locations}
        for repeat in range(times):
            left = list(found)
            runs = dict(self._open.run(left, self._seed + SEEDS * (FIRST_SEED + 1 + repeat)))
            for loads in left:
                latency = _latency(loads, runs[loads]) if loads in runs else None
                if latency is None:
                    self.overloaded += 1
                    del found[loads]
                else:
                    found[loads].append(latency)
        return found


def _latency(loads: CoLocationLoads, run: Run) -> PacketLatency | None:
    """The latency of the first load; None where it does not carry its rate."""
    one = run.measurements[0]
    if one.latency_us is None:
        raise TestbedError(f"testbed answers {loads[0].label} at a rate without latency_us")
    rate_kpps = getattr(loads[0], "rate_kpps", 0.0)
    return one.latency_us if one.throughput_kpps >= CARRIED * rate_kpps else None
