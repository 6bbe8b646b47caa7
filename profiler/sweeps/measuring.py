"""A sweep: first the whole range, then where the curve bends, then the remaining repeats of all points. Every pass over
the points has an order of its own, drawn by the seed, so that a testbed that gets slower does not look like a curve: it
shows in the repeats, and so in the noise. Later passes hold the points that were added, too."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from profiler.export import refuse_taken
from profiler.journal.journal import Journal, JournaledTestbed
from profiler.journal.records import SWEEP_PART
from profiler.profiling import journal_of
from profiler.runs.co_runs import AGREEING_DIFFERENCE
from profiler.runs.outliers import MOST_FAILURES, PROBE_SEEDS
from profiler.steps import Done, Notify, Steps
from profiler.sweeps.claim import MACHINE_ORIGIN, claim
from profiler.sweeps.loads import loads_at, target_of
from profiler.sweeps.refinement import TO_SIGMA, further_points
from profiler.sweeps.spec import METRIC_OF_NAME, RUN_COLUMNS, SweepSpec, cycles_per_ms
from profiler.testbed import Run, RunRefused, Testbed, TestbedChanged, TestbedError, difference_by_error
from profiles import InputError, Load, TestbedDescription, Workload

RUN_SEEDS = 1_000_003

Point = tuple[float, ...]
"""A value of each varied key, in the order of the sweep."""


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run: its number in the order of all, and which repeat of its point it is."""

    number: int
    repeat: int
    run: Run


@dataclass
class SweepRuns:
    """Runs points several times, and keeps all that was measured. A point that is refused, or fails at every attempt,
    is left out from then on. After a failure, `known` is run, so that a testbed that ended is not taken for one on
    which the last points do not work."""

    testbed: Testbed
    loads: Callable[[Point], Sequence[Load]]
    """What runs at a point; the NF that is measured is the first."""
    known: Workload
    """What is sure to run there."""
    seed: int
    """Of the noise of a simulated testbed; each repeat has its own."""
    done: Callable[[int], None]
    """Called after each run."""
    measured: dict[Point, list[SweepRun]] = field(default_factory=dict)
    left_out: dict[Point, str] = field(default_factory=dict)
    """Points that do not run, each with the testbed's reason."""
    _number: int = 0
    _failures: int = 0
    _probes: int = 0

    def measure(self, points: Sequence[Point], repeat: int) -> None:
        """One run of each point, in order. Raises `TestbedError` when several points fail one after another, or what
        ran before: then the testbed is at fault."""
        seed = self.seed + RUN_SEEDS * repeat
        working = [point for point in points if point not in self.left_out]
        together = self._together(working, seed)
        for point in working:
            self._number += 1
            run = together[point] if together else self._run(point, seed)
            if run:
                self.measured.setdefault(point, []).append(SweepRun(self._number, repeat, run))
            self.done(1)

    def _together(self, points: Sequence[Point], seed: int) -> dict[Point, Run]:
        """All points at once where the testbed is faster so; empty where it is not, or something fails."""
        if not self.testbed.batches or not points:
            return {}
        try:
            runs = self.testbed.run_many([self.loads(point) for point in points], seed=seed)
        except TestbedChanged:
            raise
        except TestbedError:
            return {}
        return dict(zip(points, runs, strict=True))

    def _run(self, point: Point, seed: int) -> Run | None:
        try:
            run = self.testbed.run(self.loads(point), seed=seed)
        except TestbedChanged:
            raise
        except RunRefused as error:
            self._leave_out(point, str(error))
            return None
        except TestbedError as error:
            self._failures += 1
            if self._failures > MOST_FAILURES:
                raise
            self._probes += 1
            self.testbed.run([self.known], seed=self.seed + PROBE_SEEDS * self._probes)
            self._leave_out(point, str(error))
            return None
        self._failures = 0
        return run

    def _leave_out(self, point: Point, reason: str) -> None:
        self.left_out[point] = reason
        self.measured.pop(point, None)


# Whether the repeats of a point agree, and which of them a further run replaces.


def agree(found: Sequence[SweepRun]) -> bool:
    """Whether the least and the most throughput differ by little, or by what the errors of best-effort runs explain."""
    least, most = min(found, key=kpps), max(found, key=kpps)
    explained = difference_by_error(least.run.best_effort, most.run.best_effort)
    return 1 - kpps(least) / kpps(most) <= max(AGREEING_DIFFERENCE, explained)


def without_farthest(found: Sequence[SweepRun], further: SweepRun) -> tuple[list[SweepRun], bool]:
    """The runs, with the further one in place of the farthest if it is nearer to the middle of all."""
    middle = median(map(kpps, [*found, further]))
    farthest = max(found, key=lambda one: abs(kpps(one) - middle))
    if abs(kpps(further) - middle) >= abs(kpps(farthest) - middle):
        return list(found), False
    return [replace(further, repeat=run.repeat) if run is farthest else run for run in found], True


def kpps(one: SweepRun) -> float:
    """Throughput of the NF that is measured."""
    return one.run.measurements[0].throughput_kpps


FIRST_SHARE = 0.6
"""Of the points of the first key: evenly over its range. The others follow the curve."""
FEWEST_FIRST = 5
REFINEMENT_ROUNDS = 8
"""Rounds in which further points are chosen."""


@dataclass(frozen=True)
class MeasuredSweep:
    """What was measured, and on what."""

    keys: tuple[str, ...]
    """The varied keys, in the order of each point."""
    points: Mapping[Point, Sequence[SweepRun]]
    """The runs of each point, in order of the repeats; by setting of the later keys, then by the first."""
    left_out: Mapping[Point, str]
    """Points that do not run on the testbed, with the reason."""
    description: TestbedDescription
    """As the testbed described itself."""
    machine: Mapping[str, Any]
    """Facts of the machine where it is the testbed."""

    def as_json(self, testbed: str) -> dict[str, Any]:
        """`machine.json`: the testbed as `--testbed` names it, as it describes itself, and the machine."""
        written = {"testbed": testbed, "description": self.description.model_dump(mode="json")}
        return written | ({MACHINE_ORIGIN: dict(self.machine)} if self.machine else {})


def measure_sweep(
    testbed: Testbed,
    out: Path,
    spec: SweepSpec,
    *,
    machine: Mapping[str, Any] | None = None,
    progress: Done | None = None,
    notify: Notify = lambda message: None,
) -> MeasuredSweep:
    """Measure a sweep that is free of faults (`spec_faults`, `faults_on_testbed`).

    Every run is kept in the journal of `out` before the next begins, so the same call resumes what was interrupted.
    `testbed`: where it runs. `out`: the folder of its results, which is not written here. `spec`: what to measure.
    `machine`: facts of the machine where it is the testbed; those of the first call are kept. `progress`: called after
    every run. `notify`: called with messages: points that are left out, outliers, drift, nothing left to do. Raises
    `InputError` when `out` holds something else or another sweep, no point runs, or a metric is not measured. Raises
    `TestbedError` when the testbed fails; what it measured before is in the journal. Raises `OSError` when the journal
    cannot be written."""
    description = testbed.describe()
    refuse_taken(out, journal_of(out))
    with Journal(journal_of(out)) as journal:
        machine = claim(journal, testbed, spec, machine or {})
        known = len(journal)
        steps = Steps(progress, spec.runs)
        keys = tuple(variation.key for variation in spec.vary)
        runs = SweepRuns(
            JournaledTestbed(testbed, journal, SWEEP_PART),
            lambda point: loads_at(spec, description, dict(zip(keys, point, strict=True))),
            Workload(spec.workload.nf, description.traffic),
            spec.seed,
            steps.done,
        )
        journal.plan([(SWEEP_PART, "", spec.runs)])
        try:
            outliers = _Sweep(spec, description, runs).measure()
        except InputError:
            if len(journal) <= 1:  # the file was wrong, and may change
                journal.forget()
            raise
        journal.finished(SWEEP_PART)
        for message in messages(runs, keys, outliers):
            notify(message)
        if len(journal) == known:
            notify(f"nothing to measure: {known:,} runs are recorded")
    ordered = {point: runs.measured[point] for point in sorted(runs.measured, key=lambda one: (one[1:], one[0]))}
    return MeasuredSweep(keys, ordered, runs.left_out, description, machine)


class _Sweep:
    """Chooses the points of a sweep, and their order."""

    def __init__(self, spec: SweepSpec, description: TestbedDescription, runs: SweepRuns) -> None:
        self._spec = spec
        self._runs = runs
        self._passes = 0
        self._planned = spec.vary[0].count
        self._settings = list(product(*(variation.settings for variation in spec.vary[1:])))
        self._metrics = spec.measure.metrics
        self._cycles_per_ms = cycles_per_ms(description, description.nf(spec.workload.nf))

    def measure(self) -> int:
        """Make all runs; how many were replaced as outliers."""
        repeats = self._spec.measure.repeats
        searching = (repeats + 1) // 2
        points = self._first_points()
        for repeat in range(searching):
            self._pass(points, repeat)
        for new in self._rounds(len(points) // len(self._settings)):
            for repeat in range(searching):
                self._pass(new, repeat)
            points += new
        for repeat in range(searching, repeats):
            self._pass(points, repeat)
        # where repeats differ by more than 10 %, a further run replaces the one that is farthest from the middle
        doubted = [point for point, found in self._runs.measured.items() if not agree(found)]
        before = {point: list(self._runs.measured[point]) for point in doubted}
        self._pass(doubted, self._spec.measure.repeats)
        replaced = 0
        for point, found in before.items():
            *_, further = self._runs.measured.get(point, found)
            if further not in found:
                kept, gone = without_farthest(found, further)
                self._runs.measured[point] = kept
                replaced += gone
        return replaced

    def _first_points(self) -> list[Point]:
        """The first share of the points, evenly over the range, or all values that are listed."""
        axis = self._spec.vary[0].axis
        first = max(min(FEWEST_FIRST, self._planned), round(FIRST_SHARE * self._planned))
        values = axis.even(first) if axis else self._spec.vary[0].settings
        return [(value, *setting) for setting in self._settings for value in values]

    def _rounds(self, measured: int) -> Iterator[list[Point]]:
        """The points of each further round, which depend on what was measured before."""
        axis = self._spec.vary[0].axis
        left = self._planned - measured if axis else 0
        share = max(1, round(left / REFINEMENT_ROUNDS))
        while axis and left > 0:
            new = [
                (value, *setting)
                for setting in self._settings
                for value in further_points(axis, self._curve(setting), min(share, left), self._planned)
            ]
            if not new:
                return
            yield new
            left -= share

    def _curve(self, setting: Point) -> dict[float, list[float]]:
        """The first metric at each value of the first key, one number a run."""
        return {
            point[0]: [self._value(self._metrics[0], run) for run in found]
            for point, found in self._runs.measured.items()
            if point[1:] == setting
        }

    def _pass(self, points: Sequence[Point], repeat: int) -> None:
        """One run of each point, in an order of its own. Raises `InputError` when none of the points runs, or the first
        run lacks a metric."""
        order = np.random.default_rng([self._spec.seed, self._passes]).permutation(len(points)).tolist()
        shuffled = [points[index] for index in order]
        if self._passes == 0:
            self._runs.measure(shuffled[:1], repeat)
            self._refuse_missing_metrics()
            shuffled = shuffled[1:]
        self._runs.measure(shuffled, repeat)
        self._refuse_missing_metrics()
        self._passes += 1
        if not self._runs.measured:
            reason = next(iter(self._runs.left_out.values()))
            targets = [target_of(variation.key, self._spec.workload) for variation in self._spec.vary]
            named = any(target.kind == "parameters" for target in targets)
            hint = "keys are traffic attributes, parameters of the NF, and COMPETITOR.KEY" if named else None
            raise InputError.of("--testbed", f"runs no point of the sweep: {reason}", hint=hint)

    def _refuse_missing_metrics(self) -> None:
        for one, *_ in self._runs.measured.values():
            measured = one.run.measurements[0]
            if missing := [
                name for name in self._metrics if METRIC_OF_NAME[name](measured, self._cycles_per_ms) is None
            ]:
                hint = "leave it out of metrics"
                raise InputError.of("--testbed", f"does not measure {', '.join(missing)}", hint=hint)

    def _value(self, metric: str, one: SweepRun) -> float:
        value = METRIC_OF_NAME[metric](one.run.measurements[0], self._cycles_per_ms)
        return math.nan if value is None else value


# What users should know of the runs of a sweep.


SMALL_DRIFT = 0.01
FEWEST_FOR_DRIFT = 5
OF_MEDIAN = 1.253
"""Standard error of a median over that of a mean, of normal variables."""


def messages(runs: SweepRuns, keys: Sequence[str], outliers: int) -> Iterator[str]:
    """Points that are left out, outliers, drift and best-effort runs."""
    for point, reason in runs.left_out.items():
        shown = ", ".join(f"{key} = {value:g}" for key, value in zip(keys, point, strict=True))
        yield f"{shown}: left out: {reason}"
    if outliers:
        yield f"outliers, not confirmed by repeats and replaced by a further run: {outliers:,}"
    if drift := _drift(list(runs.measured.values())):
        yield drift
    efforts = [run for found in runs.measured.values() for run in found if run.run.best_effort]
    if efforts:
        total = sum(map(len, runs.measured.values()))
        yield f"best-effort runs, disturbed by other work: {len(efforts):,} of {total:,}"


def _drift(points: Sequence[Sequence[SweepRun]]) -> str:
    """A message when the last pass is faster or slower than the first by more than noise."""
    ratios = np.log([kpps(found[-1]) / kpps(found[0]) for found in points if len(found) > 1])
    if len(ratios) < FEWEST_FOR_DRIFT:
        return ""
    middle = float(np.median(ratios))
    error = OF_MEDIAN * TO_SIGMA * float(np.median(np.abs(ratios - middle))) / math.sqrt(len(ratios))
    if abs(middle) < max(SMALL_DRIFT, 3 * error):
        return ""
    return f"testbed drifts: throughput changed by {100 * math.expm1(middle):+.1f} % from the first pass to the last"


# `measurements.csv` of a sweep (docs/formats/sweep.md): a row per run.


EFFORT_COLUMNS = ("standard_error_pct", "disturbed_pct")
"""Only in tables with best-effort runs; empty in the rows of the others."""


def table_of(measured: MeasuredSweep, spec: SweepSpec) -> pd.DataFrame:
    """The runs, by setting of the later keys, then by the first key, then by repeat."""
    cycles = cycles_per_ms(measured.description, measured.description.nf(spec.workload.nf))
    rows = [_row(point, run, spec.measure.metrics, cycles) for point, found in measured.points.items() for run in found]
    columns = [*measured.keys, *RUN_COLUMNS, *spec.measure.metrics, *EFFORT_COLUMNS]
    table = pd.DataFrame(rows, columns=columns)
    table = table.astype(dict.fromkeys(RUN_COLUMNS, int))
    best_effort = any(run.run.best_effort for found in measured.points.values() for run in found)
    return table if best_effort else table.drop(columns=list(EFFORT_COLUMNS))


def _row(point: Point, one: SweepRun, metrics: Sequence[str], cycles: float) -> list[float | None]:
    measurement = one.run.measurements[0]
    effort = one.run.best_effort
    error = effort.standard_error_pct[0] if effort and effort.standard_error_pct else None
    values = [METRIC_OF_NAME[name](measurement, cycles) for name in metrics]
    return [*point, one.repeat, one.number, *values, error, effort.disturbed_pct if effort else None]
