"""The model of one NF, and its throughput under given contention."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from predictor.contention.calibration import Calibration, Conditions
from predictor.contention.core_counts import CoreScale
from predictor.contention.execution import COMPOSITIONS, Composition, Execution
from predictor.contention.intervals import ErrorModel
from predictor.contention.memory import MemoryModel, MemoryRuns
from predictor.contention.neighbours import NeighbourCorrection
from predictor.contention.solo import MeasuredAlone, SoloModel
from profiles import ATTRIBUTES, TrafficProfile
from profiles.arrays import Floats
from profiles.shown import Shown


@dataclass(frozen=True, repr=False)
class NfModel(Shown):
    """The model of one NF."""

    name: str
    cores: int | None  # dedicated cores; None when the profile does not state them
    execution: Execution  # pattern, queues and service times
    solo: SoloModel | None  # alone on the NIC; None when the profile holds no solo runs
    memory: MemoryModel
    """Under memory contention. With `solo`, the logarithm of the ratio to it; else of the throughput (kpps)."""
    measured: Mapping[str, tuple[float, float]]  # per traffic attribute, the range that was measured
    evidence: Mapping[str, float] = field(default_factory=dict)
    """Mean absolute percentage error next to benches under each execution pattern that was tried."""
    evidence_in_co_location: Mapping[str, float] = field(default_factory=dict)
    """The same of all NFs in measured co-locations, where benches did not distinguish the patterns."""
    calibration: Calibration | None = None
    """Correction by measured co-runs; None when there are none, or they do not help."""
    alone: MeasuredAlone | None = None
    """Factors on throughput where it was measured alone; None where noise is not known."""
    neighbours: NeighbourCorrection | None = None
    """Correction by measured co-locations of which the members are known; None where too few were measured."""
    error_model: ErrorModel = field(default_factory=ErrorModel.unknown)  # how far predictions err
    core_scales: Mapping[int, CoreScale] = field(default_factory=dict)
    """What changes on each further number of cores that can be predicted."""
    doubt_at_loads: float = 1.0
    """How much further predictions at an offered rate err than where more is offered than it can carry."""

    @property
    def core_counts(self) -> tuple[int, ...]:
        """The numbers of cores on which it can be predicted, ascending; empty when the profile states none."""
        return tuple(sorted({*self.core_scales, *([] if self.cores is None else [self.cores])}))

    @cached_property
    def accelerators(self) -> tuple[str, ...]:
        """Names of the accelerators it uses."""
        return tuple(use.name for use in self.execution.uses)

    def is_extrapolated(self, traffic: TrafficProfile) -> bool:
        """Whether the traffic lies outside what was measured."""
        values = traffic.as_dict()
        return any(not self.measured[name][0] <= values[name] <= self.measured[name][1] for name in ATTRIBUTES)

    def base_kpps(self, traffic: Floats) -> Floats:
        """Throughput alone with the least accelerator work."""
        return (self.solo or self.memory).kpps(traffic)

    def solo_kpps(self, traffic: Floats) -> Floats:
        """Throughput alone on the NIC, as measured where it was."""
        return self.modelled_solo_kpps(traffic) * self.factor(traffic)

    def factor(self, traffic: Floats) -> Floats:
        """What measurements alone make of every modelled throughput at that traffic."""
        return self.alone.factor(traffic) if self.alone else np.ones(len(traffic))

    def modelled_solo_kpps(self, traffic: Floats, base: Floats | None = None) -> Floats:
        """Throughput alone on the NIC by the resource models; `base` is `base_kpps` where already known."""
        nothing = np.zeros((len(traffic), len(self.execution.uses)))
        return self.execution.throughput(self.base_kpps(traffic) if base is None else base, traffic, nothing, nothing)

    def memory_share(self, runs: MemoryRuns, base: Floats) -> Floats:
        """Share of `base` that memory contention leaves, between 0 and 1."""
        logarithm = self.memory(runs)
        if not self.solo:
            logarithm = logarithm - np.log(base)
        share: Floats = np.exp(np.minimum(logarithm, 0.0))
        return share

    def memory_runs(self, counters: Floats, traffic: Floats) -> MemoryRuns:
        """The inputs of the memory model for competitors with these counters."""
        own_wss = self.solo.working_set(traffic) if self.solo else np.zeros(len(traffic))
        return MemoryRuns(counters, traffic, own_wss)

    def throughput(
        self,
        counters: Floats,
        traffic: Floats,
        competitor_ms: Floats,
        competitor_kpps: Floats,
        composition: Composition | None = None,
    ) -> Floats:
        """Throughput under contention of which only the sums are known, shape (N,). `counters`: the competitors', shape
        (N, 7). `traffic`, `competitor_ms`, `competitor_kpps`: as `Execution.drops` takes them. `composition`: how
        drops on single resources are composed; by the NF's pattern when None.
        """
        solo = self.solo_kpps(traffic)
        drops = self.drops(counters, traffic, competitor_ms, competitor_kpps)
        return np.minimum((composition or COMPOSITIONS[self.execution.pattern])(solo, drops), solo)

    def drops(self, counters: Floats, traffic: Floats, competitor_ms: Floats, competitor_kpps: Floats) -> Floats:
        """The drop that contention for memory, then for each accelerator, causes alone, shape (N, 1 + accelerators)."""
        solo, base = self.modelled_solo_kpps(traffic), self.base_kpps(traffic)
        share = self.memory_share(self.memory_runs(counters, traffic), base)
        memory = np.maximum(solo - self.execution.unqueued(base * share, traffic), 0.0)
        lost = np.column_stack([memory, self.execution.drops(solo, traffic, competitor_ms, competitor_kpps)])
        return lost * self.factor(traffic)[:, None]

    def conditions(self, traffic: Floats, predicted: Floats, competitor_ms: Floats) -> Conditions:
        """The conditions of `predicted` throughput, shape (N,); the rest as `throughput` takes it."""
        own = self.execution.service_ms(traffic)
        return Conditions.of(traffic, predicted, self.solo_kpps(traffic), competitor_ms, own)
