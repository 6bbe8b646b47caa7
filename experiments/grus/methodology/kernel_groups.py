"""NFs that share one SM, each with some of its executors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

from predictor.gpu.models import GpuModels
from predictor.gpu.nf_model import rows
from predictor.gpu.prediction import Overload
from profiles import GpuSettings, PacedWorkload, Workload

BUSY_SHARES = (0.6, 0.45, 0.3, 0.2, 0.1)
"""Shares of the time for which each kernel would run alone: the first that the server carries, by prediction."""
MOST_KPPS = 4000.0
"""Of one NF, so that its worker keeps up."""


def executors_of(models: GpuModels) -> int:
    """Of one SM."""
    found = models.testbed.nic.executors_per_sm
    assert found
    return found


def busy_load(
    models: GpuModels, nf: str, executors: int, busy: float = BUSY_SHARES[0], order: int = 0
) -> PacedWorkload:
    """The NF with full executors of SM 0, at the rate at which its kernel alone would be as busy."""
    packets, traffic = executors * models.per_executor, models.default_traffic
    alone_us = float(models.models[nf].kernel.mean(rows(traffic, [packets]))[0])
    rate = min(1000.0 * busy * packets / alone_us, MOST_KPPS)
    return PacedWorkload(Workload(nf, traffic), rate, GpuSettings.of([(0, packets)], order=order))


def busy_group(models: GpuModels, nfs: Sequence[str], executors: Sequence[int]) -> list[PacedWorkload] | None:
    """NFs on SM 0, as busy as the server carries them; None where it carries none of `BUSY_SHARES`."""
    for busy in BUSY_SHARES:
        each = enumerate(zip(nfs, executors, strict=True))
        loads = [busy_load(models, nf, used, busy, order) for order, (nf, used) in each]
        try:
            models.predict(loads)
        except Overload:
            continue
        return loads
    return None


def random_shares(rng: Random, parts: int, executors: int) -> list[int]:
    """Random numbers of executors that fill an SM together."""
    cuts = [0, *sorted(rng.sample(range(1, executors), parts - 1)), executors]
    return [high - low for low, high in pairwise(cuts)]
