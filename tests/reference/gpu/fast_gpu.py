"""A GPU that takes one SLO after another on arrays, each in microseconds."""

from __future__ import annotations

from placer.gpu.batches import MEDIUM_SHARE, layouts
from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.greedy import CAUSE_NAMES, list_admitted, place
from placer.gpu.plan import Admitted, LatencySlo
from placer.gpu.tables import empty_tables, gpu_numbers, nf_times, numbers_of


class FastGpu:
    """A GPU whose SLOs are admitted as they arrive; those before keep batch and SMs.

    Parameters
    ----------
    most
        How many SLOs may arrive.
    """

    def __init__(self, device: GpuDevice, most: int) -> None:
        self.device = device
        self._gpu, self._nfs, self._numbers = gpu_numbers(device), nf_times(device), numbers_of(device)
        self._whole, self._times = empty_tables(self._gpu, most)
        self._most = most
        self._slos: list[LatencySlo] = []
        self._share = 0.0 if device.arbitration is Arbitration.ONE_SHOT else MEDIUM_SHARE
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
        nf, allowance = self._numbers[slo.nf], self._allowances[slo.nf]
        request = (nf, slo.rate_kpps, slo.latency_us, slo.batch or 0, allowance, self._share)
        first = layouts(self._gpu, self._nfs, *request, 1)
        batch, largest = first[0] if len(first) else (0, 0)
        cause = place(self._gpu, self._nfs, self._whole, self._times, len(self._slos), *request, batch, largest)
        self._slos.append(slo)
        return CAUSE_NAMES[cause] or None

    def admitted(self) -> tuple[Admitted, ...]:
        """The SLOs that are admitted, in the order of their transfers."""
        return tuple(list_admitted(self.device, self._slos, self._whole))
