"""What is measured of an NF beyond its default number of cores and beyond saturation, after all else. On each further
number of cores: alone, and beside memory and accelerator benches. Then co-locations at random rates, numbers of cores
and traffic, by which errors of predictions are known where NFs are offered less than they can carry. Tomur has neither:
its NFs have two cores each and are saturated (section 7.1)."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.random import Generator

from profiler import contention as contention_runs
from profiler.bench_points import accelerator_points
from profiler.export import nf_profile, with_loads
from profiler.journal.journal import Journal
from profiler.journal.records import CORES_PART, LOADS_PART
from profiler.runs.co_runs import random_traffic
from profiler.runs.nf_runs import NfRuns, QuotaSpent, solo_points
from profiler.runs.outliers import ConfirmedTestbed, WorkingRuns
from profiler.sampling import EvenPoints, Range, at, neat, position_in, traffic_ranges, traffic_with
from profiler.steps import Notify
from profiler.testbed_stack import TestbedStack
from profiles import CoLocation, InputError, NfDescription, TestbedDescription, TrafficProfile, Workload
from profiles.arrays import Floats
from profiles.profile import KPPS_COLUMN, TRAFFIC_COLUMNS, NfProfile

MATTERING_CHANGE = 0.05
"""An attribute is not varied on further numbers of cores if it changes throughput alone by less than this anywhere."""
RATE_SHARES = (0.05, 1.1)  # least and most of a random rate, as shares of what the NF carries alone
SATURATED_SHARE = 0.2  # the share of NFs that are saturated among those with random rates


@dataclass(frozen=True)
class FurtherCores:
    """Measures NFs on further numbers of cores and at rates. `stack`: the testbed. `journal`: records what is measured
    completely. `benches`, `neighbours`: the contention, as for the default number of cores. `counts`: per NF that fits,
    the numbers of cores to measure, the default first. `seed`: of every choice, and of the noise of a simulated
    testbed. `done`: called with the number of runs, after each batch. `notify`: called with messages."""

    stack: TestbedStack
    journal: Journal
    benches: contention_runs.BenchLevels
    neighbours: Sequence[contention_runs.Neighbour]
    counts: Mapping[str, Sequence[int]]
    seed: int
    done: Callable[[int], None]
    notify: Notify

    def measure(self, profiles: Sequence[NfProfile], of_cores: int, of_loads: int) -> list[NfProfile]:
        """The profiles with what is measured further of their NFs: of each, `of_cores` runs over all further numbers of
        cores, and `of_loads` at rates. Raises `TestbedError` when the testbed fails."""
        several = sum(len(self.counts[profile.name]) > 1 for profile in profiles)
        alone = contention_runs.NEIGHBOUR_TRAFFICS * sum(len(counts) - 1 for counts in self.counts.values())
        loads = len(profiles) * of_loads + alone if of_loads else 0
        parts = {CORES_PART: several * of_cores, LOADS_PART: loads}
        self.journal.plan((part, "", planned) for part, planned in parts.items() if planned)
        testbed = self.stack.part(CORES_PART)
        measured = [self._on_further_cores(testbed, profile, of_cores) for profile in profiles]
        self.journal.finished(CORES_PART)
        testbed = self.stack.part(LOADS_PART)
        if of_loads:
            capacities = self._measure_capacities(testbed)
            measured = [self._at_rates(testbed, profile, capacities, of_loads) for profile in measured]
        self.journal.finished(LOADS_PART)
        return measured

    def _on_further_cores(self, testbed: ConfirmedTestbed, profile: NfProfile, quota: int) -> NfProfile:
        """The NF on each further number of cores, half of the runs alone and half beside benches."""
        description = testbed.describe()
        nf = description.nf(profile.name)
        further = self.counts[nf.name][1:]
        found = {}
        for cores in further:
            each = quota // len(further)
            rng = np.random.default_rng([self.seed, zlib.crc32(nf.name.encode()), 3])
            memory = contention_runs.MemoryContention(
                self.benches.memory, description.nic.cores - cores, rng, self.neighbours
            )
            described = nf.model_copy(update={"cores": cores})
            runs = NfRuns(testbed, described, memory, quota=each, seed=self.seed, done=self.done, notify=self.notify)
            ranges = find_mattering(description, profile.solo)
            with contextlib.suppress(QuotaSpent):
                runs.measure(solo_points(_spread_traffic(description.traffic, ranges, each - each // 2, rng)))
                runs.measure(self._contended(description, runs, ranges, each // 2, rng))
            runs.replace_outliers()
            found[cores] = nf_profile(description, runs)
        return replace(profile, further=found)

    def _contended(
        self, description: TestbedDescription, runs: NfRuns, ranges: Mapping[str, Range], count: int, rng: Generator
    ) -> list[contention_runs.OperatingPoint]:
        """Half of the points beside the benches of its accelerators, if it has any; the others beside memory benches,
        every other one at default traffic."""
        points = accelerator_points(description, runs.nf, self.benches)
        few = min(count // 2, len(points))
        chosen = [points[index * len(points) // few] for index in range(few)]
        contentions = [runs.memory.strongest(), *runs.memory.mixtures(count - few - 1)]
        varied = {name: bounds for name, bounds in ranges.items() if name in runs.attributes}
        traffics = _spread_traffic(runs.base, varied, len(contentions), rng)
        return chosen + [
            (traffics[index % len(traffics)] if index % 2 else runs.base, contention)
            for index, contention in enumerate(contentions)
            if contention.levels
        ]

    def _measure_capacities(self, testbed: ConfirmedTestbed) -> Capacities:
        """What every NF of the testbed carries alone, on each number of cores, at default and at some other traffic. So
        the co-locations of an NF do not depend on which others are profiled."""
        description = testbed.describe()
        alone = [
            _load_on(nf, cores, traffic)
            for nf in description.fitting_nfs
            for cores in self.counts[nf.name]
            for traffic in contention_runs.neighbour_traffics(description, self.seed)
        ]
        runs = testbed.first.run_many([[load] for load in alone], seed=self.seed)
        carried = ((load, run.measurements[0].throughput_kpps) for load, run in zip(alone, runs, strict=True))
        return Capacities(traffic_ranges(description), dict(carried))

    def _at_rates(self, testbed: ConfirmedTestbed, profile: NfProfile, capacities: Capacities, count: int) -> NfProfile:
        description = testbed.describe()
        nf = description.nf(profile.name)
        of_nf = {
            _load_on(nf, cores, TrafficProfile(*traffic)): float(kpps)
            for cores in self.counts[nf.name]
            for *traffic, kpps in profile.on_cores(cores).solo[[*TRAFFIC_COLUMNS, KPPS_COLUMN]].to_numpy().tolist()
        }
        capacities = replace(capacities, carried=capacities.carried | of_nf)
        rng = np.random.default_rng([self.seed, zlib.crc32(nf.name.encode()), 4])
        drawn = [self._draw(description, nf, capacities, index % 2 == 0, rng) for index in range(count)]
        working = WorkingRuns(testbed.first, Workload(nf.name, description.traffic), self.done)
        runs = working.run(drawn, self.seed)
        if left_out := count - len(runs):
            self.notify(f"{nf.name}: {left_out} of {count} co-locations at rates do not run here; left out")
        return with_loads(
            profile, [(one, tuple(measured.throughput_kpps for measured in run.measurements)) for one, run in runs]
        )

    def _draw(
        self,
        description: TestbedDescription,
        nf: NfDescription,
        capacities: Capacities,
        by_magnitude: bool,
        rng: Generator,
    ) -> CoLocation:
        """The NF and random others that fit, each on a random number of cores, at random traffic and a random rate."""
        others = description.fitting_nfs
        free = description.nic.cores
        most = free // min(min(self.counts[other.name]) for other in others)
        partners = rng.integers(len(others), size=int(rng.integers(1, max(most, 2)))).tolist()
        loads: list[Workload] = []
        for member in (nf, *(others[index] for index in partners)):
            if fitting := [cores for cores in self.counts[member.name] if cores <= free]:
                cores = fitting[int(rng.integers(len(fitting)))]
                free -= cores
                load = _load_on(member, cores, random_traffic(description, by_magnitude, rng))
                rate_kpps = neat(float(rng.uniform(*RATE_SHARES)) * capacities.estimate(load))
                loads.append(load if rng.random() < SATURATED_SHARE else replace(load, rate_kpps=rate_kpps))
        return tuple(loads)


@dataclass(frozen=True)
class Capacities:
    """What NFs carry alone (kpps), of those loads that were measured, and the ranges of traffic."""

    ranges: Mapping[str, Range]
    carried: dict[Workload, float]

    def estimate(self, load: Workload) -> float:
        """Throughput (kpps) on as many cores at the nearest traffic that was measured."""
        measured = [one for one in self.carried if (one.nf, one.cores) == (load.nf, load.cores)]
        place = self._place(load)
        return self.carried[min(measured, key=lambda one: float(((self._place(one) - place) ** 2).sum()))]

    def _place(self, load: Workload) -> Floats:
        values = load.traffic.as_dict()
        return np.array([position_in(bounds, values[name]) for name, bounds in self.ranges.items()])


def choose_counts(
    description: TestbedDescription, targets: Sequence[NfDescription], cores: Sequence[int], notify: Notify
) -> dict[str, list[int]]:
    """Of every NF that fits, the numbers of cores to measure: the default, then those of `cores` that it can be given.
    Raises `InputError` when no NF to profile can be given one of them."""
    counts = {
        nf.name: [nf.cores, *sorted({*cores} & {*nf.counts} & {*range(description.nic.cores + 1)} - {nf.cores})]
        for nf in description.fitting_nfs
    }
    for count in sorted(set(cores)):
        without = [nf for nf in targets if count not in counts[nf.name]]
        if len(without) == len(targets):
            possible = sorted({n for nf in targets for n in nf.counts if n <= description.nic.cores})
            hint = f"possible are {', '.join(map(str, possible))}"
            raise InputError.of("--cores", f"{description.name} gives no NF {count} cores", hint=hint)
        if without:
            notify(f"{', '.join(nf.name for nf in without)}: not measured on {count} cores, which cannot be given")
    return counts


def _load_on(nf: NfDescription, cores: int, traffic: TrafficProfile) -> Workload:
    """The saturated NF on this many cores, which are only written where they are not the default."""
    return Workload(nf.name, traffic, cores=0 if cores == nf.cores else cores)


def _spread_traffic(
    base: TrafficProfile, ranges: Mapping[str, Range], count: int, rng: Generator
) -> list[TrafficProfile]:
    """The base, each attribute at its ends, then all of them evenly together; those without a range as in the base."""
    ends = [{name: end} for name in ranges for end in (0.0, 1.0)]
    between = EvenPoints(len(ranges), rng).take(count).tolist() if ranges else []
    spots: list[dict[str, float]] = [{}, *ends, *(dict(zip(ranges, spot, strict=True)) for spot in between)]
    traffics = [
        traffic_with(base, {name: at(ranges[name], position) for name, position in spot.items()}) for spot in spots
    ]
    return list(dict.fromkeys(traffics))[:count]


def find_mattering(description: TestbedDescription, solo: pd.DataFrame) -> dict[str, Range]:
    """The attributes, with their ranges, that change the throughput of an NF alone anywhere. One matters unless
    throughput differs by less than `MATTERING_CHANGE` in all solo runs that differ in it alone. Packet size always
    does, because the port may limit what more cores carry."""
    ranges = traffic_ranges(description)
    found = {}
    for name, bounds in ranges.items():
        kpps = solo.groupby([other for other in TRAFFIC_COLUMNS if other != name])[KPPS_COLUMN]
        pairs = kpps.agg(["min", "max", "count"]).query("count > 1")
        change = (1 - pairs["min"] / pairs["max"]).max()
        if name == "packet_size" or not len(pairs) or change >= MATTERING_CHANGE:
            found[name] = bounds
    return found
