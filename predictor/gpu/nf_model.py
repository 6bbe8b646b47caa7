"""What was learnt of one NF on a GPU server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from predictor.gpu.batching import BatchingModel
from predictor.gpu.sharing import SharingModel
from predictor.gpu.stage_time import StageTime
from profiles import GpuWorkload, TrafficProfile
from profiles.arrays import Floats

STAGE_MODELS = ("pre_post", "transfer", "returned", "kernel")


@dataclass(frozen=True)
class GpuNfModel:
    """The stages of one NF."""

    name: str
    moves: str  # what of each packet it moves to the GPU: `header`, `payload` or `both`; its class of transfers
    batching: BatchingModel  # the wait for a batch
    pre_post: StageTime
    transfer: StageTime
    returned: StageTime  # over the packets of the batch
    kernel: StageTime  # over the packets of a minibatch, with an SM for itself
    sharing: SharingModel | None  # how others on its SM slow its kernel; None where that was not measured

    def stage(self, name: str) -> StageTime:
        """One of `STAGE_MODELS`."""
        found: StageTime = getattr(self, name)
        return found

    def faults(self, load: GpuWorkload) -> list[str]:
        """Which values of a load are outside what was measured, in words."""
        (waiting,), (whole,) = batching_rows([load]), rows(load.traffic, [load.gpu.batch])
        parts = rows(load.traffic, [minibatch.packets for minibatch in load.gpu.minibatches])
        found = [*self.batching.outside(waiting), *self.transfer.outside(whole)]
        found += [fault for part in parts for fault in self.kernel.outside(part)]
        return list(dict.fromkeys(error.replace("count", "batch") for error in found))


def rows(traffic: TrafficProfile, packets: list[int]) -> Floats:
    """Inputs of a `StageTime`, a row per number of packets."""
    return np.array([[count, *traffic.as_tuple()] for count in packets], dtype=np.float64)


def batching_rows(loads: list[GpuWorkload]) -> Floats:
    """Inputs of a `BatchingModel`, a row per load."""
    found = [(load.gpu.batch, load.rate_kpps, *load.traffic.as_tuple()) for load in loads]
    return np.array(found, dtype=np.float64)


# How the workers of a GPU server serve their NFs: what a testbed does not say, found from NFs alone.


WINDOWS_TRIED = (1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 1_000_000)  # numbers of batches on their way that are tried
RECEIVE_US = (0.0, 0.003, 0.006, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1)  # times per packet that are tried
BETTER_ERROR_FACTOR = 0.98  # a value is taken instead of the simplest one if the error becomes smaller by this factor


@dataclass(frozen=True)
class WorkerModel:
    """A worker."""

    window: int = WINDOWS_TRIED[-1]  # the most batches that it has sent and not yet seen back
    receive_us: float = 0.0  # what it does per packet besides pre- and post-processing, such as taking it from the NIC

    @classmethod
    def fit(cls, error: Callable[[WorkerModel], float]) -> WorkerModel:
        """The worker of the smallest error of NFs alone, one value after the other, twice."""
        best = cls()
        least = error(best)
        for _ in range(2):
            for candidates in (
                [cls(window, best.receive_us) for window in WINDOWS_TRIED],
                [cls(best.window, receive_us) for receive_us in RECEIVE_US],
            ):
                for candidate in candidates:
                    if candidate != best and (found := error(candidate)) < BETTER_ERROR_FACTOR * least:
                        best, least = candidate, found
        return best

    def as_dict(self) -> dict[str, float]:
        """What was learnt, for JSON."""
        return {"window": self.window, "receive_us": self.receive_us}

    @classmethod
    def from_mapping(cls, values: Mapping[str, float]) -> WorkerModel:
        """The worker that `as_dict` returned."""
        return cls(int(values["window"]), float(values["receive_us"]))
