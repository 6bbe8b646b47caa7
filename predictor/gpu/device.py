"""A GPU server as `placer admit` describes it: straight lines over everything that was learnt, for the p99. The layout
and its latency are those of CONTRACTS, section 10: batching of 1000 (batch - 1) / rate, pre/post, transfer slope *
batch + fixed, kernel g * executors + h + the largest penalty of who shares the SM. Bursts, the way back and the error
of the models have no term of their own there; `pre_post_us` covers what the other terms do not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from predictor.gpu.co_location import demands, overload
from predictor.gpu.nf_model import GpuNfModel, WorkerModel, rows
from predictor.gpu.prediction import LatencyErrors
from predictor.gpu.sharing import Sharer
from predictor.gpu.tandem import sample
from profiles import GpuSettings, GpuWorkload, TestbedDescription, TrafficProfile, Workload
from profiles.arrays import Floats

Device = dict[str, Any]

BATCHES_HELD, RATES_HELD, DRAWN_BATCHES = 16, 4, 500
"""Batch sizes and rates at which the latency is held against the models, and batches that are drawn for each."""
INTERVAL_COVERAGE = 0.9  # of the interval whose upper end is the latency
WITHOUT_ERRORS = 1.05  # the upper end over the prediction where no co-location was measured
LONGEST_US = 5000.0  # a latency that nobody promises: beyond, the device need not be right


@dataclass(frozen=True)
class DeviceEntry:
    """An NF as a device lists it."""

    nf: str  # the modelled NF
    traffic: TrafficProfile  # of its packets
    rates_kpps: tuple[float, float]  # the rates between which its latency must be conservative
    longest_us: float = LONGEST_US  # latencies beyond need not be right: the largest that is promised


def device_of(
    testbed: TestbedDescription,
    models: Mapping[str, GpuNfModel],
    worker: WorkerModel,
    errors: LatencyErrors,
    entries: Mapping[str, DeviceEntry],
) -> Device:
    """The DEVICE of `GpuModels.device`, with these NFs."""
    nic = testbed.nic
    assert nic.executors_per_sm and nic.packets_per_executor
    high = errors.interval("p99", 1.0, 0.0, INTERVAL_COVERAGE)
    margin = high[1] if high else WITHOUT_ERRORS
    lines = _Lines(models, worker, nic.executors_per_sm, nic.packets_per_executor, margin)
    classes = _classes(models, entries)
    transfers = lines.transfers(entries, classes)
    described = {}
    for name, entry in entries.items():
        kernel = lines.kernel(entry)
        rest = lines.pre_post(entry, transfers[classes[name]], kernel)
        described[name] = {"class": classes[name], "pre_post_us": rest, "kernel_us": list(kernel)}
    return {
        "sms": nic.sms,
        "executors_per_sm": nic.executors_per_sm,
        "packets_per_executor": nic.packets_per_executor,
        "workers": testbed.workers or nic.cores,
        "arbitration": testbed.arbitration or "sporadic",
        "transfer_us": {name: list(line) for name, line in transfers.items()},
        "nfs": described,
        "sharing_us": {name: lines.penalties(entry, entries) for name, entry in entries.items()},
    }


def line_above(at: Floats, values: Floats) -> tuple[float, float]:
    """The straight line (slope, fixed), neither negative, that is nowhere below `values` and nearest to them."""
    from profiles.linear_programs import linprog

    above = np.column_stack([-at, -np.ones(len(at))])
    # relative distance, so that small batches count as much as large ones
    cost = (np.column_stack([at, np.ones(len(at))]) / values[:, None]).sum(axis=0)
    found = linprog(cost, A_ub=above, b_ub=-values, bounds=[(0, None), (0, None)])
    assert found.x is not None  # a line above all of them exists
    return float(found.x[0]), float(found.x[1])


def _classes(models: Mapping[str, GpuNfModel], entries: Mapping[str, DeviceEntry]) -> dict[str, str]:
    """The class of each entry's transfers; with the packet size where entries of a class differ in it."""
    sizes: dict[str, set[float]] = {}
    for entry in entries.values():
        sizes.setdefault(models[entry.nf].moves, set()).add(entry.traffic.packet_size)
    return {
        name: moves if len(sizes[moves]) == 1 or moves == "header" else f"{moves}-{entry.traffic.packet_size:g}"
        for name, entry in entries.items()
        for moves in [models[entry.nf].moves]
    }


@dataclass(frozen=True)
class _Lines:
    """Straight lines of a device."""

    models: Mapping[str, GpuNfModel]
    worker: WorkerModel
    executors: int
    per_executor: int
    margin: float  # by which factor each time is above its prediction

    def transfers(
        self, entries: Mapping[str, DeviceEntry], classes: Mapping[str, str]
    ) -> dict[str, tuple[float, float]]:
        """Of each class, above the transfers of its NFs."""
        found = {}
        for of_class in dict.fromkeys(classes.values()):
            members = [entry for name, entry in entries.items() if classes[name] == of_class]
            batches = self._batches(members[0])
            slowest = np.max([self._times(member, "transfer", batches) for member in members], axis=0)
            found[of_class] = line_above(batches, slowest)
        return found

    def kernel(self, entry: DeviceEntry) -> tuple[float, float]:
        """Over executors."""
        used = np.arange(1, self.executors + 1, dtype=np.float64)
        return line_above(used, self._times(entry, "kernel", used * self.per_executor))

    def pre_post(self, entry: DeviceEntry, transfer: tuple[float, float], kernel: tuple[float, float]) -> float:
        """Pre/post, the way back, and by what the p99 of bursts exceeds the wait for packets at equal distances."""
        batches = self._batches(entry)
        own = self._times(entry, "pre_post", batches) + self._times(entry, "returned", batches)
        needed = [float(own.min())]
        for rate in np.unique(np.geomspace(*entry.rates_kpps, RATES_HELD)).tolist():
            for batch in batches.tolist():
                p99 = self._p99_alone(entry, int(batch), rate)
                if p99 is not None and p99 <= entry.longest_us:
                    used = np.ceil(min(batch, self.executors * self.per_executor) / self.per_executor)
                    lines = transfer[0] * batch + transfer[1] + kernel[0] * used + kernel[1]
                    needed.append(p99 - float(lines) - 1000.0 * (batch - 1) / rate)
        return max(needed)

    def _p99_alone(self, entry: DeviceEntry, batch: int, rate_kpps: float) -> float | None:
        """The p99 of an NF alone, with the margin; None where the server does not carry it, or it is far too long."""
        if 1000.0 * (batch - 1) / rate_kpps > entry.longest_us:
            return None
        most = self.executors * self.per_executor
        parts = [(sm, min(most, batch - sm * most)) for sm in range(-(-batch // most))]
        load = GpuWorkload(Workload(entry.nf, entry.traffic, rate_kpps), GpuSettings.of(parts, order=0))
        taken = demands(self.models, self.per_executor, [load], self.worker.receive_us)
        if overload([load], taken):
            return None
        return self.margin * sample(taken, window=self.worker.window, batches=DRAWN_BATCHES)[0].p99

    def penalties(self, entry: DeviceEntry, entries: Mapping[str, DeviceEntry]) -> dict[str, float]:
        """What each other NF adds at most: it, or several that together are no larger, has the rest of the SM."""
        sharing = self.models[entry.nf].sharing
        if sharing is None or self.executors < 2:
            return {}
        own = np.arange(1, self.executors, dtype=np.float64)
        alone = self._times(entry, "kernel", own * self.per_executor)
        worst = {
            nf: max(
                float(time) * sharing.slowdown(float(used), [Sharer(nf, self.executors - float(used))])
                for time, used in zip(alone, own, strict=True)
            )
            for nf in {other.nf for other in entries.values()}
        }
        return {name: worst[other.nf] for name, other in entries.items()}

    def _times(self, entry: DeviceEntry, stage: str, packets: Floats) -> Floats:
        value: Floats = self.margin * self.models[entry.nf].stage(stage).mean(rows(entry.traffic, packets.tolist()))
        return value

    def _batches(self, entry: DeviceEntry) -> Floats:
        return np.unique(np.round(np.geomspace(1, self.models[entry.nf].transfer.high[0], BATCHES_HELD)))
