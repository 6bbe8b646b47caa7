"""By how much cycles grow, as the models of a testbed predict it (Tomur, section 4.1.2).

Models know NFs alone on their cores; a subgroup runs several in turn. On each of its cores, a subgroup is taken for
the mean of its NFs over time: each contributes its counters, but for the working set, by the share of time that it
runs; all working sets lie in the cache at once, so these add up. Replicas count once for each core. Every NF then meets
the summed counters of all other cores, also those of other replicas, and slows down by the ratio of its throughput
alone to that under such contention. Cores are taken to be always busy, as they are where their subgroup limits its
chain.

Not predicted is what NFs of one core do to one another's private cache.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from placer.rack.chain import Chain, ChainNf
from placer.rack.contention.co_location import Member
from placer.rack.files.chains_file import ChainsText
from placer.rack.rack import Device, Rack
from predictor import Models
from predictor.registry import Predictor
from profiles import COUNTERS, InputError, TrafficProfile, Workload
from profiles.arrays import Floats
from profiles.chain import NfStage
from profiles.faults import suggestion
from profiles.profile import TRAFFIC_COLUMNS

SERVER_TESTBED, TOMUR_PREDICTOR = "server", "tomur"
DEFAULT_RISK = 0.05  # the share of cases in which an NF may be slower than predicted
MEDIAN_RISK = 0.5
MOST_CORES = 1_000_000  # where the testbed of the models is not known
SHOWN_DEVICES = 3  # devices that a note names
LEAST_KPPS = 1e-9  # of a rate, kpps
WORKING_SET = COUNTERS.index("wss")


@dataclass(frozen=True)
class NfOfModels:
    """An NF on a device that the models answer for. `chain`, `id`: where it is used first."""

    chain: str
    id: str
    workload: Workload  # as the models know it
    faults: tuple[tuple[str, str | None], ...] = ()


@dataclass
class ModelledGrowth:
    """Predicts growth by models.

    `predictor`: the name of one in the models; another one of these where there is none of that name. `risk`: the share
    of cases in which an NF may be slower than predicted; 0.5 for the median, which predictors without estimates of
    their errors always return.
    """

    rack: Rack
    models: Models
    predictor: str = TOMUR_PREDICTOR
    risk: float = DEFAULT_RISK
    _own: dict[Workload, Floats] = field(default_factory=dict, init=False)
    _known: dict[object, list[list[float]]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.predictor not in self.models.predictors:
            self.predictor = min(self.models.predictors)

    def answers_for(self, device: Device) -> bool:
        """Whether the models are of such a device: those of a server say nothing of SmartNICs."""
        nic = self.models.testbed.nic if self.models.testbed else None
        return device.is_smartnic != (nic is not None and nic.kind == SERVER_TESTBED)

    @property
    def by(self) -> Predictor:
        return self.models.predictors[self.predictor]

    def notes(self) -> Iterator[str]:
        """How certain predictions are, and what models do not answer, or only beyond what was measured."""
        if self.by.supports_risk:
            yield f"rates as {self.predictor} predicts: at most {100 * self.risk:g} % of NFs are expected to be slower"
        else:
            yield f"rates as {self.predictor} predicts, without a margin: it does not estimate its errors"
        if warning := self.by.risk_warning(self.risk):
            yield warning
        if silent := [device.name for device in self.rack.devices if not self.answers_for(device)]:
            yield f"contention on {_some(silent)} is not predicted: the models are of another kind of device"
        nic = self.models.testbed and self.models.testbed.nic
        known = nic.cores if nic else MOST_CORES
        if larger := [device.name for device in self.rack.devices if self.answers_for(device) and device.cores > known]:
            yield f"the models are of {known} cores, fewer than those of {_some(larger)}: predictions are extrapolated"

    def nfs(self, chains: Sequence[Chain]) -> Iterator[NfOfModels]:
        """The NFs that may run on devices that the models answer for, each kind and packet size once."""
        seen = set()
        devices = [device for device in self.rack.devices if device.cores and self.answers_for(device)]
        for chain in chains:
            for at, nf in enumerate(chain.nfs):
                on = [device for device in devices if self.rack.cost_on(chain, at, device)]
                stages = {testbed_nf(self.rack, nf, device) for device in on}
                for stage in sorted(stages):
                    if (stage, chain.packet_size) not in seen:
                        seen.add((stage, chain.packet_size))
                        workload = self._workload(stage, chain)
                        yield NfOfModels(chain.name, nf.id, workload, tuple(self._faults(nf, stage, workload)))

    def _faults(self, nf: ChainNf, stage: NfStage, workload: Workload) -> Iterator[tuple[str, str | None]]:
        if stage.nf not in self.models.nfs:
            named = f"testbed_nf = ... names the NF that it corresponds to; {suggestion(stage.nf, self.models.nfs)}"
            yield f"NF {nf.nf} is not in the models{'' if nf.nf == stage.nf else f', nor is {stage.nf}'}", named
            return
        for column, message in self.models.check(workload):
            yield f"NF {nf.nf}: {column} {message}", None
        described = self.models.testbed and next(nf for nf in self.models.testbed.nfs if nf.name == stage.nf)
        defaults = described.default_parameters if described else {}
        for name, value in stage.parameters:
            if defaults.get(name) != value:
                known = f"{name} {defaults[name]:g} only" if name in defaults else f"no parameter {name}"
                hint = "without testbed_parameters, the NF with its defaults stands for it"
                yield f"NF {nf.nf}: the models know {stage.nf} with {known}, not {value:g}", hint
        if self.models.models[stage.nf].solo is None:
            yield f"NF {nf.nf}: the models do not hold {stage.nf} alone, so what it does to others is not known", None

    def __call__(self, device: Device, members: Sequence[Member]) -> list[list[float]]:
        """As `CycleGrowth`; 1 on devices that the models do not answer for."""
        if not self.answers_for(device):
            return [[1.0] * len(member.nfs) for member in members]
        workloads = [
            tuple(self._workload(testbed_nf(self.rack, nf, device), member.chain) for nf in member.kinds)
            for member in members
        ]
        asked = tuple((each, one.busy, one.cores) for each, one in zip(workloads, members, strict=True))
        if asked not in self._known:
            self._known[asked] = self._predict(workloads, members)
        return self._known[asked]

    def _predict(self, workloads: Sequence[Sequence[Workload]], members: Sequence[Member]) -> list[list[float]]:
        exerted = [self._exert(each, one.busy) for each, one in zip(workloads, members, strict=True)]
        everything = sum(
            (each * one.cores for each, one in zip(exerted, members, strict=True)), np.zeros(len(COUNTERS))
        )
        met = {
            (workload, at): np.maximum(everything - exerted[at], 0.0)
            for at, each in enumerate(workloads)
            for workload in each
        }
        factors: dict[tuple[Workload, int], float] = {}
        for nf in sorted({workload.nf for workload, _ in met}):
            of_nf = {key: counters for key, counters in met.items() if key[0].nf == nf}
            factors |= zip(of_nf, self._factors(nf, of_nf), strict=True)
        return [[factors[workload, at] for workload in each] for at, each in enumerate(workloads)]

    def _exert(self, workloads: Sequence[Workload], busy: Sequence[float]) -> Floats:
        """The counters of one core that runs these NFs in turn."""
        own = np.array([self._counters(workload) for workload in workloads])
        exerted: Floats = np.asarray(busy) @ own
        exerted[WORKING_SET] = own[:, WORKING_SET].sum()
        return exerted

    def _counters(self, workload: Workload) -> Floats:
        if workload not in self._own:
            solo = self.models.models[workload.nf].solo
            assert solo is not None
            self._own[workload] = solo.own_counters(np.array([workload.traffic.as_tuple()]))[0]
        return self._own[workload]

    def _factors(self, nf: str, met: Mapping[tuple[Workload, int], Floats]) -> list[float]:
        rows = [workload.traffic.as_tuple() for workload, _ in met]
        table = pd.DataFrame(np.hstack([rows, list(met.values())]), columns=[*TRAFFIC_COLUMNS, *COUNTERS])
        found = self.by.contention_details(nf, table, coverage=max(1 - 2 * self.risk, 0.0))
        kpps = [
            prediction.throughput_kpps
            if prediction.low_kpps is None or self.risk >= MEDIAN_RISK
            else prediction.low_kpps
            for prediction in found
        ]
        return [
            max(one.solo_kpps / max(rate, LEAST_KPPS), 1.0) if counters.any() else 1.0
            for one, rate, counters in zip(found, kpps, met.values(), strict=True)
        ]

    def _workload(self, stage: NfStage, chain: Chain) -> Workload:
        return Workload(stage.nf, chain_traffic(self.rack, chain, self.models.default_traffic))


def _some(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_DEVICES
    return ", ".join(names[:SHOWN_DEVICES]) + (f" and {more:,} more" if more > 0 else "")


def refuse_unknown(growth: ModelledGrowth, read: ChainsText) -> None:
    """Refuse NFs for which the models have no answer.

    Raises InputError with every fault, at its place in the file of chains.
    """
    faults = [read.fault(nf.chain, nf.id, *fault) for nf in growth.nfs(read.chains) for fault in nf.faults]
    if faults:
        raise InputError(faults)


# What a testbed, and models of it, call the NFs and the traffic of a rack.


def testbed_nf(rack: Rack, nf: ChainNf, device: Device) -> NfStage:
    """The NF that an NF of the rack corresponds to on a device: the one that the rack names, else that of its name."""
    costs = rack.costs[nf.nf]
    cost = costs.smartnic if device.is_smartnic else costs.server
    return (cost and cost.testbed_nf) or NfStage(nf.nf)


def chain_traffic(rack: Rack, chain: Chain, default: TrafficProfile) -> TrafficProfile:
    """The chain's packet size, with the flows and matches that the rack states, else those of the testbed's default."""
    asked = rack.testbed
    flows = default.flows if asked.flows is None else asked.flows
    mtbr = default.mtbr if asked.mtbr is None else asked.mtbr
    return TrafficProfile(flows, float(chain.packet_size), mtbr)
