"""A layout as a plan."""

from __future__ import annotations

from collections.abc import Sequence

from placer.gpu.device import GpuDevice
from placer.gpu.exact.problem import Problem
from placer.gpu.exact.sm_layout import SmLayout, settle
from placer.gpu.plan import Admitted, SmShare
from placer.gpu.schedulability import violations
from placer.gpu.slo import LatencySlo


def plan_of(device: GpuDevice, slos: Sequence[LatencySlo], problem: Problem, layout: SmLayout) -> tuple[Admitted, ...]:
    """The admitted SLOs of a layout, in the order of their transfers; checked against the model.

    Raises
    ------
    AssertionError
        The plan breaks the model: a fault of the search.
    """
    count = settle(problem, layout, len(slos))
    admitted = tuple(
        Admitted(slos[i], int(layout.batch[i]), order, _minibatches(problem, layout, i))
        for order, i in enumerate(layout.order[: max(count, 0)].tolist())
    )
    broken = violations(device, admitted)
    assert count >= 0 and not broken, f"a plan breaks the model: {broken}"
    return admitted


def _minibatches(p: Problem, layout: SmLayout, i: int) -> tuple[SmShare, ...]:
    """The batch over its executors, each minibatch full before the next; one that stays empty is left out."""
    left = int(layout.batch[i])
    shares = []
    for part in range(int(layout.parts[i])):
        packets = min(left, int(layout.part_executors[i, part]) * p.width)
        if packets > 0:
            shares.append(SmShare(int(layout.part_sm[i, part]), packets))
        left -= packets
    return tuple(shares)
