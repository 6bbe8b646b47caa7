"""How a profiling uses its testbed: journaled, corrected for drift, and confirmed by repeats."""

import contextlib
import math
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from profiler import testbed as testbed_api
from profiler.journal.journal import Journal, JournaledTestbed
from profiler.journal.records import REFERENCE_PART, REPEATS_PART, of_co_locations
from profiler.runs.outliers import ConfirmedTestbed
from profiles import ChainLoad, GpuWorkload, Load, TestbedDescription, Workload


class TestbedStack:
    """One testbed, wrapped anew for each part of a profiling. `testbed`: where everything runs. `journal`: where its
    runs are kept. `seed`: of the reference runs. `notify`: called with messages about drift."""

    __test__ = False

    def __init__(
        self, testbed: testbed_api.Testbed, journal: Journal, seed: int, notify: Callable[[str], None]
    ) -> None:
        self._testbed = testbed
        self._journal = journal
        self._seed = seed
        self._notify = notify
        self._first: DriftReference | None = None
        self._confirmed: list[ConfirmedTestbed] = []

    def part(self, purpose: str) -> ConfirmedTestbed:
        """The testbed for the benches, which come first, for one NF, or for co-locations of several."""
        prefix = purpose if of_co_locations(purpose) else ""
        readings = self._journaled(prefix + REFERENCE_PART)
        reference = DriftReference(readings, self._seed, self._notify, since=self._first, part=purpose)
        self._first = self._first or reference
        first = SteadyTestbed(self._journaled(purpose), reference)
        repeats = SteadyTestbed(self._journaled(prefix + REPEATS_PART), reference)
        self._confirmed.append(ConfirmedTestbed(first, repeats))
        return self._confirmed[-1]

    @property
    def outliers(self) -> int:
        """Runs that were not confirmed."""
        return sum(testbed.outliers for testbed in self._confirmed)

    def _journaled(self, purpose: str) -> testbed_api.Testbed:
        return JournaledTestbed(self._testbed, self._journal, purpose)


# Drift: a reference run that is repeated regularly shows how the testbed changes during a profiling.
#
# A card that warms up or shares its host gets slower over hours, and no single run shows it. The reference, an NF alone
# at default traffic, is run five times before the benches and before each NF, and then every `EVERY_RUNS` runs or
# `EVERY_S` seconds, whichever is first. Drift is the median of its last five readings over the median of the first five
# of all, so that neither noise nor an outlier is taken for drift.
#
# - Up to `REFERENCE_NOISE` nothing is done.
# - Up to `MOST_DRIFT` throughputs are divided by it, and it is reported. Counters stay as read: most of them are rates
#   that do not depend on the NF alone.
#   What is left of a drift of 10 % an hour is below 5 %: 3 % that count as noise, and the drift since the middle
# reading.
# - Beyond, the profiling ends: after so large a change, one factor for all workloads would be a guess.
#
# Readings are in the journal like all runs, and their times depend only on the runs of the benches or of the NF and on
# the recorded times: a resumed profiling corrects as an undisturbed one, and an NF's readings do not depend on other
# NFs.


EVERY_RUNS = 50
EVERY_S = 120.0
REFERENCE_WINDOW = 5
REFERENCE_NOISE = 0.03
MOST_DRIFT = 0.2
CARRIED_SHARE = 0.99  # of an offered rate: what carries this share or more carries all, but for errors of measurement
REPORTED_AGAIN = 0.05
REFERENCE_SEEDS = 101
SEED_STRIDE = 1_000_000_007


class DriftReference:
    """The reference run of a profiling, and the drift that it shows. `testbed`: where it runs. `seed`: readings have
    seeds of their own after it. `notify`: called with a message when drift is first corrected, and when it has grown
    much. `since`: the readings that drift is measured against; its own when None. `part`: what is measured meanwhile;
    it separates readings from those of other parts."""

    def __init__(
        self,
        testbed: testbed_api.Testbed,
        seed: int,
        notify: Callable[[str], None],
        *,
        since: "DriftReference | None" = None,
        part: str = "",
    ) -> None:
        self._testbed = testbed
        self._co_location = _reference(testbed.describe())
        self._seed = seed + zlib.crc32(part.encode()) % SEED_STRIDE
        self._notify = notify
        self._since = since or self
        self._readings: list[float] = []
        self._runs = 0
        self._elapsed_s = 0.0
        self._reported = 1.0
        self.factor = 1.0

    @property
    def runs_left(self) -> int:
        """Runs that may be made before the next reading, at least one."""
        return max(EVERY_RUNS - self._runs, 1) if self._co_location else EVERY_RUNS

    def begin(self) -> None:
        """Take the first readings, unless that was done. Raises `TestbedError` when the testbed fails."""
        if not self._co_location or self._readings:
            return
        if self._since is not self:
            self._since.begin()
        self._read(REFERENCE_WINDOW)
        self._compare()

    def passed(self, runs: Sequence[testbed_api.Run]) -> None:
        """Count `runs`, and read again if it is time. Raises `TestbedError` when the testbed fails, or has drifted too
        far."""
        self._runs += len(runs)
        self._elapsed_s += math.fsum(run.elapsed_s for run in runs)
        if self._co_location and (self._runs >= EVERY_RUNS or self._elapsed_s >= EVERY_S):
            self._read(1)
            self._compare()

    def _read(self, times: int) -> None:
        for _ in range(times):
            seed = self._seed + REFERENCE_SEEDS * (len(self._readings) + 1)
            run = self._testbed.run(self._co_location, seed=seed)
            self._readings.append(run.measurements[0].throughput_kpps)
        self._runs, self._elapsed_s = 0, 0.0

    def _compare(self) -> None:
        drift = median(self._readings[-REFERENCE_WINDOW:]) / median(self._since._readings[:REFERENCE_WINDOW])
        shown = f"the reference run is {100 * (drift - 1):+.1f} % off its beginning"
        if abs(drift - 1) > MOST_DRIFT:
            raise testbed_api.TestbedChanged(
                f"testbed drifts: {shown}, more than the {100 * MOST_DRIFT:g} % that can be corrected; let it settle, "
                "then profile into another --out"
            )
        self.factor = drift if abs(drift - 1) > REFERENCE_NOISE else 1.0
        if abs(self.factor - self._reported) >= REPORTED_AGAIN or (self._reported == 1.0 and self.factor != 1.0):
            self._reported = self.factor
            self._notify(f"testbed drifts: {shown}; throughputs are corrected by it")


_Request = tuple[tuple[Load, ...], int | None]


class SteadyTestbed(testbed_api.TestbedWrapper):
    """A testbed without its drift: throughputs are corrected to what they would have been at the beginning. A repeated
    request has the same answer as before, corrected by the drift when it was run. Noise-free runs are passed through: a
    testbed that knows the truth does not drift. `testbed`: what may drift. `reference`: measures the drift."""

    def __init__(self, testbed: testbed_api.Testbed, reference: DriftReference) -> None:
        super().__init__(testbed)
        self._reference = reference
        self._answers: dict[_Request, testbed_api.Run] = {}

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[testbed_api.Run]:
        if not noise:
            return self._inner.run_many(co_locations, noise=noise, seed=seed)
        requests = [(tuple(loads), seed) for loads in co_locations]
        new = [request for request in dict.fromkeys(requests) if request not in self._answers]
        if new:
            self._reference.begin()
        while new:
            size = self._reference.runs_left if self.batches else 1
            now, new = new[:size], new[size:]
            runs = self._inner.run_many([loads for loads, _ in now], seed=seed)
            factor = self._reference.factor
            self._answers |= {one: _correct(one[0], run, factor) for one, run in zip(now, runs, strict=True)}
            self._reference.passed(runs)
        return [self._answers[request] for request in requests]


def _correct(loads: Sequence[Load], run: testbed_api.Run, factor: float) -> testbed_api.Run:
    if factor == 1.0:
        return run
    return replace(
        run, measurements=tuple(_steady(load, one, factor) for load, one in zip(loads, run.measurements, strict=True))
    )


def _steady(load: Load, one: testbed_api.Measurement, factor: float) -> testbed_api.Measurement:
    """The measurement without drift; no chain or NF carries more than is offered to it. One that carries all of it has
    no drift: whatever it could carry, it was not measured."""
    kpps = one.throughput_kpps / factor
    if isinstance(load, ChainLoad | GpuWorkload | Workload) and load.rate_kpps:
        if one.throughput_kpps >= CARRIED_SHARE * load.rate_kpps:
            return one
        kpps = min(kpps, max(load.rate_kpps, one.throughput_kpps))
    ratio = kpps / one.throughput_kpps
    stages = tuple(replace(stage, throughput_kpps=stage.throughput_kpps * ratio) for stage in one.stages)
    return replace(one, throughput_kpps=kpps, stages=stages)


def _reference(description: TestbedDescription) -> list[Load]:
    """The first NF that fits the NIC, alone at default traffic; empty where there is none."""
    return [Workload(nf.name, description.traffic) for nf in description.fitting_nfs[:1]]


# Retries: a run that fails is repeated on a restarted testbed, a limited number of times.


RETRY_ATTEMPTS = 3
PAUSES_S = (0.5, 2.0)  # before the second and the third attempt


class RetryingTestbed(testbed_api.Testbed):
    """A testbed that is closed and opened again whenever it fails.

    A run whose testbed ended, hung, answered late, under another id or with invalid values is attempted three times;
    the last failure is the error. A run that the testbed refuses is not repeated, because it would be refused again. A
    testbed that does not start, or first describes itself wrongly, is not restarted: the user has just started it and
    can correct the command. `reopen`: starts the testbed. Called once at the beginning, then after each failure.
    `notify`: called with a message about every failure that is retried. `pause`: waits that many seconds."""

    def __init__(
        self,
        reopen: Callable[[], testbed_api.Testbed],
        notify: Callable[[str], None] = lambda message: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._reopen = reopen
        self._notify = notify
        self._pause = pause
        self._testbed: testbed_api.Testbed | None = reopen()
        self._batches = self._testbed.batches
        self._measured_by = self._testbed.measured_by
        self._description: TestbedDescription | None = None

    @property
    def batches(self) -> bool:
        return self._batches

    @property
    def measured_by(self) -> str:
        return self._measured_by

    def describe(self) -> TestbedDescription:
        if self._description is None:
            self._description = self._opened().describe()
        return self._description

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> testbed_api.Run:
        return self.run_many([loads], noise=noise, seed=seed)[0]

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[testbed_api.Run]:
        for attempt, pause in enumerate((*PAUSES_S, None), start=1):
            try:
                runs = self._opened().run_many(co_locations, noise=noise, seed=seed)
                for run in runs:
                    testbed_api.refuse_invalid(run)
                return runs
            except (testbed_api.RunRefused, testbed_api.TestbedChanged):
                raise
            except testbed_api.TestbedError as error:
                self.close()
                if pause is None:
                    raise testbed_api.TestbedError(
                        f"gave up after {RETRY_ATTEMPTS} attempts at one run: {error}"
                    ) from None
                self._notify(f"attempt {attempt} of {RETRY_ATTEMPTS} failed, restarting the testbed: {error}")
                self._pause(pause)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        if self._testbed is not None:
            with contextlib.suppress(testbed_api.TestbedError):
                self._testbed.close()
        self._testbed = None

    def _opened(self) -> testbed_api.Testbed:
        """The testbed, restarted if it was closed; it must describe itself as before."""
        if self._testbed is None:
            testbed = self._reopen()
            if self._description is not None and (described := testbed.describe()) != self._description:
                testbed.close()
                raise testbed_api.TestbedChanged(
                    f"testbed {self._description.name} describes itself differently after a restart: {described}"
                )
            self._testbed = testbed
        return self._testbed
