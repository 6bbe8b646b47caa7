"""What was learnt of one NF on a GPU server."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.gpu.batching import BatchingModel
from predictor.gpu.sharing import SharingModel
from predictor.gpu.stage_time import StageTime
from profiles import PacedWorkload, TrafficProfile

Array = NDArray[np.float64]

STAGE_MODELS = ("pre_post", "transfer", "returned", "kernel")


@dataclass(frozen=True)
class GpuNfModel:
    """The stages of one NF.

    Parameters
    ----------
    name
        The NF.
    moves
        What of each packet it moves to the GPU: `header`, `payload` or `both`; its class of transfers.
    batching
        The wait for a batch.
    pre_post, transfer, returned
        Over the packets of the batch.
    kernel
        Over the packets of a minibatch, with an SM for itself.
    sharing
        How others on its SM slow its kernel; None where that was not measured.
    """

    name: str
    moves: str
    batching: BatchingModel
    pre_post: StageTime
    transfer: StageTime
    returned: StageTime
    kernel: StageTime
    sharing: SharingModel | None

    def stage(self, name: str) -> StageTime:
        """One of `STAGE_MODELS`."""
        found: StageTime = getattr(self, name)
        return found

    def faults(self, load: PacedWorkload) -> list[str]:
        """Which values of a load are outside what was measured, in words."""
        assert load.gpu is not None
        (waiting,), (whole,) = batching_rows([load]), rows(load.traffic, [load.gpu.batch])
        parts = rows(load.traffic, [one.packets for one in load.gpu.minibatches])
        found = [*self.batching.outside(waiting), *self.transfer.outside(whole)]
        found += [fault for part in parts for fault in self.kernel.outside(part)]
        return list(dict.fromkeys(one.replace("count", "batch") for one in found))


def rows(traffic: TrafficProfile, packets: list[int]) -> Array:
    """Inputs of a `StageTime`, a row per number of packets."""
    return np.array([[count, *traffic.as_tuple()] for count in packets], dtype=np.float64)


def batching_rows(loads: list[PacedWorkload]) -> Array:
    """Inputs of a `BatchingModel`, a row per load."""
    found = [(one.gpu.batch, one.rate_kpps, *one.traffic.as_tuple()) for one in loads if one.gpu]
    return np.array(found, dtype=np.float64)
