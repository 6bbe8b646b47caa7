"""Cycles per packet of each NF on one core: clock / throughput, less the cycles of the source (Lemur, section 3.2).

The source's cycles are those of the null NF, which passes packets from the source to the sink. Cycles are measured at
default traffic, at the ends of each traffic attribute, and at all corners; the traffic at which an NF takes most is
then run again, and only these runs count, so that noise does not choose the result. For NFs with rules, runs with other
numbers of rules follow at that traffic, and a straight line is fitted to them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

import numpy as np

from profiler.journal.journal import Journal
from profiler.journal.records import CYCLES_PART
from profiler.runs.co_runs import SoloRepeats
from profiler.runs.outliers import ConfirmedTestbed
from profiler.sampling import Range, at, corners, traffic_ranges, traffic_with, whole
from profiler.testbed import Measurement
from profiler.testbed_stack import TestbedStack
from profiles import ConfiguredWorkload, Load, NfDescription, TestbedDescription, TrafficProfile, Workload
from profiles.cycles import CyclesOfRules, MeasuredCycles, NfCycles
from profiles.description import NULL_NF

RULES_PARAMETER = "rules"
SEARCH_RUNS = 3  # runs at each traffic to find the worst one
WORST_REPEATS = 12  # further runs at the worst traffic
RULE_POINTS = (0.0, 1 / 3, 2 / 3, 1.0)  # where in the range of its rules an NF is measured, besides the default


def offers_null(description: TestbedDescription) -> bool:
    """Whether cycles can be measured: the testbed has a null NF that fits."""
    return any(nf.name == NULL_NF and nf.cores <= description.nic.cores for nf in description.nfs)


def cycle_runs(description: TestbedDescription, nfs: Sequence[NfDescription]) -> int:
    """About how many runs `measure_cycles` takes."""
    with_rules = sum(RULES_PARAMETER in nf.parameters for nf in nfs)
    each = SEARCH_RUNS * len(_traffics(description)) + WORST_REPEATS
    return each * (1 + len(nfs)) + (SEARCH_RUNS * len(RULE_POINTS)) * with_rules


def measure_part_of_cycles(
    stack: TestbedStack,
    journal: Journal,
    nfs: Sequence[NfDescription],
    *,
    seed: int = 0,
    done: Callable[[int], None] = lambda runs: None,
    notify: Callable[[str], None] = lambda message: None,
) -> MeasuredCycles | None:
    """The cycles per packet of each NF, as a part of a profiling; None where the testbed has no null NF."""
    testbed = stack.part(CYCLES_PART)
    description = testbed.describe()
    if not nfs or not offers_null(description):
        return None
    journal.plan([(CYCLES_PART, "", cycle_runs(description, nfs))])
    cycles = measure_cycles(testbed, nfs, seed=seed, done=done, notify=notify)
    journal.finished(CYCLES_PART)
    return cycles


def measure_cycles(
    testbed: ConfirmedTestbed,
    nfs: Sequence[NfDescription],
    *,
    seed: int = 0,
    done: Callable[[int], None] = lambda runs: None,
    notify: Callable[[str], None] = lambda message: None,
) -> MeasuredCycles | None:
    """The cycles per packet of each NF; None where the testbed gives no clock. What is measured of an NF does not
    depend on which others are measured with it. Raises `TestbedError` when the testbed fails."""
    description = testbed.describe()
    runs = SoloRepeats(testbed, Workload(nfs[0].name, description.traffic), seed, done)
    traffics = _traffics(description)
    null = runs.measure([Workload(NULL_NF, traffic) for traffic in traffics], SEARCH_RUNS)
    clock_mhz = _clock_mhz(description, [run for found in null.values() for run in found])
    if not clock_mhz:
        notify("cycles per packet are not known: the testbed neither describes its clock nor counts cycles")
        return None
    found = runs.measure([Workload(nf.name, traffic) for nf in nfs for traffic in traffics], SEARCH_RUNS)
    cycles = _Cycles(clock_mhz, {nf.name: nf.cores for nf in description.nfs}, null | found)
    worst = {nf.name: cycles.worst(nf.name, traffics) for nf in nfs if any(run.nf == nf.name for run in found)}
    nulls = dict.fromkeys(Workload(NULL_NF, workload.traffic) for workload in worst.values())
    cycles.repeats |= runs.measure([*nulls, *worst.values()], WORST_REPEATS, first=SEARCH_RUNS)
    cycles.repeats |= runs.measure(
        [workload for nf in nfs if nf.name in worst for workload in _with_rules(nf, worst)], SEARCH_RUNS
    )
    if left_out := [nf.name for nf in nfs if nf.name not in worst]:
        notify(f"{', '.join(left_out)}: not known in cycles, because they do not run alone here")
    measured = {nf.name: cycles.of_nf(nf, worst[nf.name], description.traffic) for nf in nfs if nf.name in worst}
    return MeasuredCycles(clock_mhz, cycles.mean(Workload(NULL_NF, description.traffic)), measured)


@dataclass
class _Cycles:
    """Cycles per packet by load, with the source: runs of the search, and the repeats that count."""

    clock_mhz: float
    cores: Mapping[str, int]
    searched: Mapping[Workload, Sequence[Measurement]]
    repeats: dict[Load, list[Measurement]] = field(default_factory=dict)

    def worst(self, nf: str, traffics: Sequence[TrafficProfile]) -> Workload:
        """The NF at the traffic at which it takes most."""
        loads = [Workload(nf, traffic) for traffic in traffics if Workload(nf, traffic) in self.searched]
        return max(loads, key=lambda load: self.mean(load) - self.mean(Workload(NULL_NF, load.traffic)))

    def mean(self, load: Workload) -> float:
        """Over the runs of the search."""
        return fmean(self._of(load.nf, self.searched[load]))

    def of_nf(self, nf: NfDescription, worst: Workload, default: TrafficProfile) -> NfCycles:
        """The cycles of an NF without the source."""
        source = fmean(self._of(NULL_NF, self.repeats[Workload(NULL_NF, worst.traffic)]))
        own = [cycles - source for cycles in self._of(nf.name, self.repeats[worst])]
        at_default = Workload(nf.name, default)
        return NfCycles(
            fmean(own),
            min(own),
            max(own),
            len(own),
            worst.traffic,
            self.mean(at_default) - self.mean(Workload(NULL_NF, default)),
            bool(nf.replicable),
            self._of_rules(nf, worst, fmean(own), source),
        )

    def _of_rules(self, nf: NfDescription, worst: Workload, cycles: float, source: float) -> CyclesOfRules | None:
        """The straight line through the cycles at all numbers of rules, weighted by their relative noise."""
        measured = {
            dict(load.parameters)[RULES_PARAMETER]: fmean(self._of(nf.name, found)) - source
            for load, found in self.repeats.items()
            if isinstance(load, ConfiguredWorkload) and load.workload == worst
        }
        if not measured:
            return None
        default = nf.default_parameters[RULES_PARAMETER]
        rules = np.array([default, *measured])
        values = np.array([cycles, *measured.values()])
        slope, base = np.polyfit(rules, values, 1, w=1 / (values + source))
        error = np.max(np.abs(base + slope * rules - values) / values)
        return CyclesOfRules(default, float(slope), 100 * float(error))

    def _of(self, nf: str, found: Sequence[Measurement]) -> list[float]:
        """Cycles per packet of each run, with the source."""
        return [self.cores[nf] * self.clock_mhz * 1e3 / run.throughput_kpps for run in found]


def _with_rules(nf: NfDescription, worst: Mapping[str, Workload]) -> list[ConfiguredWorkload]:
    """The NF with other numbers of rules than the default."""
    if RULES_PARAMETER not in nf.parameters or RULES_PARAMETER not in nf.default_parameters:
        return []
    numbers = dict.fromkeys(
        whole(nf.parameters[RULES_PARAMETER], _between(nf.parameters[RULES_PARAMETER], p)) for p in RULE_POINTS
    )
    return [
        ConfiguredWorkload.of(worst[nf.name], {RULES_PARAMETER: number})
        for number in numbers
        if number != nf.default_parameters[RULES_PARAMETER]
    ]


def _between(bounds: Range, position: float) -> float:
    """The value at a position in [0, 1] of a range."""
    low, high = bounds
    return low + (high - low) * position


def _traffics(description: TestbedDescription) -> list[TrafficProfile]:
    """Default traffic, each attribute at its ends, and all of them at their ends together."""
    ranges = traffic_ranges(description)
    names = tuple(ranges)
    ends = [{name: end} for name in names for end in (0.0, 1.0)]
    spots = [{}, *ends, *corners(names)]
    traffics = [
        traffic_with(description.traffic, {name: at(ranges[name], position) for name, position in spot.items()})
        for spot in spots
    ]
    return list(dict.fromkeys(traffics))


def _clock_mhz(description: TestbedDescription, null: Sequence[Measurement]) -> float:
    """As the testbed describes it, else as counted: instructions per second / instructions per cycle; 0 if neither."""
    if description.nic.clock_mhz:
        return description.nic.clock_mhz
    counted = [run.counters.irt / run.counters.ipc / 1e6 for run in null if run.counters.ipc > 0]
    return median(counted) / description.nf(NULL_NF).cores if counted else 0.0
