"""Profiling of latency: `latency.csv` of each NF (docs/formats/profile.md)."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from numpy.random import Generator

from profiler.export import refuse_taken
from profiler.journal.journal import Journal
from profiler.journal.records import BENCHES_PART, LATENCY_PART
from profiler.profiling import journal_of, targets_of
from profiler.runs.outliers import ConfirmedTestbed, WorkingRuns, known_workload
from profiler.sampling import EvenPoints, at, neat, traffic_ranges, traffic_with
from profiler.steps import Done, Notify, Steps
from profiler.testbed import PacketLatency, Run, Testbed
from profiler.testbed_stack import TestbedStack
from profiles import ChainLoad, CoLocation, InputError, Load, NfDescription, TestbedDescription, Workload, latency_table
from profiles.aside import files_aside
from profiles.description import NULL_NF
from profiles.latency_table import LATENCY_FILE as FILE
from profiles.profile import write_json
from profiles.table import write_table

# Latency at shares of what an NF carries beside others, several times each.


OFFERED_SHARES = (0.1, 0.3, 0.5, 0.65, 0.8, 0.9, 0.95)
"""Offered rates, as shares of the throughput of the NF in a closed loop in the same co-location."""
RUNS_PER_RATE = 2
CARRIED_SHARE = 0.98  # a smaller share of the offered packets that leaves means overload
SEED_STRIDE = 1_000_003
FIRST_SEED = 70_000  # chains have the seeds before

Row = dict[str, object]
CoLocationLoads = tuple[Load, ...]


@dataclass(frozen=True, slots=True)
class LatencyAtRate:
    """An NF at an offered rate, with its throughput in a closed loop in the same co-location, and the repeats."""

    setting: "LatencySetting"
    capacity_kpps: float
    rate_kpps: float
    repeats: tuple[PacketLatency, ...]

    def row(self) -> Row:
        """The row of `latency.csv`: medians of the repeats."""
        p99s = [repeat.p99 for repeat in self.repeats]
        return {
            **self.setting.workload.traffic.as_dict(),
            latency_table.COMPETITORS_COLUMN: latency_table.competitors_text(other.nf for other in self.setting.others),
            latency_table.CAPACITY_COLUMN: self.capacity_kpps,
            latency_table.RATE_COLUMN: self.rate_kpps,
            latency_table.MEAN_COLUMN: median(repeat.mean for repeat in self.repeats),
            latency_table.P50_COLUMN: median(repeat.p50 for repeat in self.repeats),
            latency_table.P99_COLUMN: median(p99s),
            latency_table.MAX_COLUMN: max(repeat.max for repeat in self.repeats),
            latency_table.REPEATS_COLUMN: len(p99s),
            latency_table.SPREAD_COLUMN: max(p99s) - min(p99s) if len(p99s) > 1 else None,
        }


class LatencyRuns:
    """Runs settings on a testbed, first in a closed loop and then at rates. `testbed`: where they run. `known`: what is
    sure to run there: it is run after a failure, so that a broken testbed is noticed. `seed`: of the noise of a
    simulated testbed; each repeat has its own. `done`: called with the number of runs, after each batch."""

    def __init__(
        self, testbed: ConfirmedTestbed, known: Workload, seed: int, done: Callable[[int], None] = lambda runs: None
    ) -> None:
        self._description: TestbedDescription = testbed.describe()
        self._closed = WorkingRuns(testbed, known, done)
        self._open = WorkingRuns(testbed.first, known, done)
        self._seed = seed
        self.refused: list[LatencySetting] = []  # settings that do not run on the testbed
        self.overloaded = 0  # rates that an NF did not carry

    def measure(self, settings: "Sequence[LatencySetting]", times: int) -> list[LatencyAtRate]:
        """The latencies of every setting that runs, by setting and rising rate, without rates that are not carried.
        Raises `TestbedError` when the testbed fails, and `InputError` when it measures no latency."""
        by_loads = {setting.loads(self._description): setting for setting in settings}
        closed = self._closed.run(list(by_loads), self._seed + SEED_STRIDE * FIRST_SEED)
        capacities = {by_loads[loads]: run.measurements[0].throughput_kpps for loads, run in closed}
        self.refused += [setting for setting in settings if setting not in capacities]
        wanted = {
            one.loads(self._description, rate): (one, capacity, rate)
            for one, capacity in capacities.items()
            for rate in (neat(share * capacity) for share in OFFERED_SHARES)
        }
        found = self._repeats(list(wanted), times)
        return [LatencyAtRate(*wanted[loads], tuple(latencies)) for loads, latencies in found.items()]

    def _repeats(
        self, co_locations: Sequence[CoLocationLoads], times: int
    ) -> dict[CoLocationLoads, list[PacketLatency]]:
        found: dict[CoLocationLoads, list[PacketLatency]] = {co_location: [] for co_location in co_locations}
        for repeat in range(times):
            left = list(found)
            runs = dict(self._open.run(left, self._seed + SEED_STRIDE * (FIRST_SEED + 1 + repeat)))
            for loads in left:
                latency = self._latency(loads, runs[loads]) if loads in runs else None
                if latency is None:
                    self.overloaded += 1
                    del found[loads]
                else:
                    found[loads].append(latency)
        return found

    def _latency(self, loads: CoLocationLoads, run: Run) -> PacketLatency | None:
        """The latency of the first load; None where it does not carry its rate."""
        one = run.measurements[0]
        if one.latency_us is None:
            message = f"{self._description.name} measures no latency of {loads[0].label} at a rate"
            raise InputError.of("--latency", message, hint="a testbed that does answers with `latency_us`")
        rate_kpps = getattr(loads[0], "rate_kpps", 0.0)
        return one.latency_us if one.throughput_kpps >= CARRIED_SHARE * rate_kpps else None


MOST_TIMES = 1000


def profile_latency(
    testbed: Testbed,
    out: Path,
    *,
    nfs: Sequence[str] | None = None,
    times: int = RUNS_PER_RATE,
    seed: int = 0,
    progress: Done | None = None,
    notify: Notify = lambda message: None,
) -> Path:
    """Measure the latency of NFs at offered rates, alone and beside others, into the profile directory `out`.

    Every run is kept in the journal of `out` before the next begins, so the same call resumes what was interrupted. All
    other files of `out` stay. `testbed`: where the NFs run; it offers packets at rates, to NFs or at least to chains.
    `out`: the profile directory. `nfs`: their names; when None, all of the testbed that fit its NIC. `times`: runs at
    each rate. `seed`: of every choice, and of the noise of a simulated testbed. `progress`: called after every batch of
    runs. `notify`: called with messages: drift, what is left out, nothing left to do. Returns `out`. Raises
    `InputError` when the testbed offers no rates or measures no latency, an NF is not known, or `out` holds something
    else. Raises `TestbedError` when the testbed fails; what it measured before is in the journal. Raises `OSError` when
    the journal or the directory cannot be written; what was measured before stays."""
    if seed < 0:
        raise InputError.of("--seed", f"{seed} is negative")
    if not 1 <= times <= MOST_TIMES:
        raise InputError.of("--repeats", f"{times} is not between 1 and {MOST_TIMES:,}")
    description = testbed.describe()
    if not offers_rates(description):
        hint = 'a testbed that does describes `"paced": true`, or at least `"chains": true`'
        raise InputError.of("--latency", f"{description.name} offers packets at no given rate", hint=hint)
    refuse_taken(out, journal_of(out))
    targets = _targets(description, nfs, notify)
    settings = {nf.name: draw_settings(description, nf, seed) for nf in targets}
    # how many runs a setting takes
    runs = sum(map(len, settings.values())) * (1 + len(OFFERED_SHARES) * times)
    with Journal(journal_of(out)) as journal:
        journal.claim(testbed, seed)
        known = len(journal)
        stack = TestbedStack(testbed, journal, seed, notify)
        stack.part(BENCHES_PART)  # drift counts from there
        journal.plan([(LATENCY_PART, "", runs)])
        steps = Steps(progress, runs)
        measuring = LatencyRuns(stack.part(LATENCY_PART), known_workload(description), seed, steps.done)
        measured = {nf: measuring.measure(drawn, times) for nf, drawn in settings.items()}
        journal.finished(LATENCY_PART)
        if measuring.refused:
            names = ", ".join(dict.fromkeys(setting.workload.nf for setting in measuring.refused))
            notify(f"{len(measuring.refused)} co-locations of {names} do not run here; left out")
        if measuring.overloaded:
            notify(f"{measuring.overloaded} offered rates were not carried; left out")
        if len(journal) == known:
            notify(f"nothing to measure: {known:,} runs are recorded")
    write_latencies(out, description, measured)
    return out


def write_latencies(out: Path, description: TestbedDescription, measured: dict[str, list[LatencyAtRate]]) -> None:
    """Write `testbed.json`, and `latency.csv` of each NF of which anything was measured; all other files stay."""
    with files_aside(out) as aside:
        write_json(description.model_dump(mode="json"), aside / "testbed.json")
        for nf, found in measured.items():
            if found:
                rows = pd.DataFrame([result.row() for result in found], columns=latency_table.LATENCY_COLUMNS)
                write_table(rows, aside / nf / f"{FILE}.csv")


def _targets(description: TestbedDescription, names: Sequence[str] | None, notify: Notify) -> list[NfDescription]:
    targets = targets_of(description, names, notify)
    if description.paced:
        return targets
    several = [nf.name for nf in targets if nf.cores > 1]
    if several:
        notify(
            f"{', '.join(several)}: left out; {description.name} offers rates to chains, and these need several cores"
        )
    return [nf for nf in targets if nf.name not in several]


# Where latency is measured: the traffic of an NF, and the NFs beside it.


SETTINGS_ALONE, SETTINGS_BESIDE = 4, 4
"""Settings of each NF alone, and beside others: the first at default traffic, the others evenly over all traffic."""
DEFAULT_BESIDE = 2  # of those beside others, how many have default traffic


@dataclass(frozen=True, slots=True)
class LatencySetting:
    """An NF with its traffic, and the NFs beside it, which are as fast as they go, at default traffic."""

    workload: Workload
    others: CoLocation = ()

    def loads(self, description: TestbedDescription, rate_kpps: float = 0.0) -> tuple[Load, ...]:
        """What runs: the NF first, at this rate; at 0 it is as fast as it goes."""
        return at_rate(description, self.workload, rate_kpps), *self.others


def offers_rates(description: TestbedDescription) -> bool:
    """Whether a testbed offers packets to NFs at a rate, or at least to chains, of which an NF is one of one stage."""
    return description.paced or description.chains


def at_rate(description: TestbedDescription, workload: Workload, rate_kpps: float) -> Load:
    """The NF at this rate (kpps), or for 0 as fast as it goes, such that the testbed measures latency at a rate. Where
    only chains have rates, it is a chain of one stage on one core, in a closed loop, too: that is not the same
    program."""
    if not description.paced:
        return ChainLoad.of([workload.nf], [[0]], workload.traffic, rate_kpps=rate_kpps)
    return replace(workload, rate_kpps=rate_kpps or inf)


def draw_settings(description: TestbedDescription, nf: NfDescription, seed: int) -> list[LatencySetting]:
    """The settings of one NF: alone at several traffic profiles, then beside random NFs that fit the NIC with it."""
    rng = np.random.default_rng([seed, zlib.crc32(nf.name.encode()), 2])
    ranges = traffic_ranges(description)
    spots = EvenPoints(len(ranges), rng).take(SETTINGS_ALONE + SETTINGS_BESIDE - 1 - DEFAULT_BESIDE).tolist()
    traffics = [
        traffic_with(
            description.traffic, {name: at(ranges[name], where) for name, where in zip(ranges, spot, strict=True)}
        )
        for spot in spots
    ]
    alone = [description.traffic, *traffics[: SETTINGS_ALONE - 1]]
    beside = [*[description.traffic] * DEFAULT_BESIDE, *traffics[SETTINGS_ALONE - 1 :]]
    settings = [LatencySetting(Workload(nf.name, traffic)) for traffic in alone]
    settings += [
        LatencySetting(Workload(nf.name, traffic), _others(description, nf, (at_all + 1) / SETTINGS_BESIDE, rng))
        for at_all, traffic in enumerate(beside)
    ]
    return list(dict.fromkeys(settings))


def _others(description: TestbedDescription, nf: NfDescription, share: float, rng: Generator) -> CoLocation:
    """Random NFs on this share of the cores that are left."""
    left = description.nic.cores - nf.cores
    free = max(round(share * left), min(left, 1))
    others = []
    while fitting := [nf for nf in description.fitting_nfs if nf.cores <= free and nf.name != NULL_NF]:
        others.append(fitting[int(rng.integers(len(fitting)))])
        free -= others[-1].cores
    return tuple(sorted(Workload(other.name, description.traffic) for other in others))
