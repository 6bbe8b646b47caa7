"""A GPU that takes one SLO after another on arrays, each in microseconds."""

from __future__ import annotations

import numpy as np

from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.fast.batches import batch_of
from placer.gpu.fast.grus import GpuArrays, admitted
from placer.gpu.fast.place import CAUSES, place
from placer.gpu.fast.tables import COUNTS, TENANTS, empty_tables
from placer.gpu.greedy.admit import LARGER_BATCHES
from placer.gpu.plan import Admitted
from placer.gpu.slo import LatencySlo


class FastGpu:
    """A GPU whose SLOs are admitted as they arrive; those before keep batch and SMs.

    Parameters
    ----------
    most
        How many SLOs may arrive.
    """

    def __init__(self, device: GpuDevice, most: int) -> None:
        self.device = device
        self._gpu = GpuArrays(device)
        self._whole, self._times = empty_tables(self._gpu.sizes, most)
        self._periods = np.empty(self._whole.shape[1])
        self._most = most
        self._slos: list[LatencySlo] = []
        self._share = 0.0 if device.arbitration is Arbitration.ONE_SHOT else LARGER_BATCHES[0]
        self._allowances = {nf: device.penalty(nf, device.nfs) for nf in device.nfs}

    def arrive(self, slo: LatencySlo) -> str | None:
        """Admit an SLO if all keep their latency with it, and return None; else the cause.

        Raises
        ------
        ValueError
            More arrive than were announced.
        """
        if len(self._slos) >= self._most:
            raise ValueError(f"The GPU was made for {self._most} SLOs.")
        nf, allowance, pinned = self._gpu.numbers[slo.nf], self._allowances[slo.nf], slo.batch or 0
        sizes, nfs = self._gpu.sizes, self._gpu.nfs
        first = batch_of(
            sizes,
            nfs,
            nf,
            slo.rate_kpps,
            slo.latency_us,
            pinned,
            sizes[1],
            allowance if not pinned else 0.0,
            self._share,
        )
        cause = place(
            sizes, nfs, self._whole, self._times, self._periods, len(self._slos), nf, slo.rate_kpps, slo.latency_us,
            pinned, allowance, self._share, first,
        )  # fmt: skip
        self._slos.append(slo)
        return CAUSES[cause] or None

    def admitted(self) -> tuple[Admitted, ...]:
        """The SLOs that are admitted, in the order of their transfers."""
        return tuple(admitted(self.device, self._slos, self._whole)) if self._whole[COUNTS, TENANTS] else ()
