"""What a plan can break."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placer.gpu.device import GpuDevice
from placer.gpu.plan import Admitted, SmShare
from placer.gpu.schedulability import violations
from tests.placer.gpu.devices import slos_of, small_device

DEVICE = small_device(kernel_us=(0.0, 30.0), beta_us=4.0)
A, B = slos_of(55, 55)
ALONE = Admitted(A, 1, 0, (SmShare(0, 1),))
"""Batching 0, pre/post 5, transfer 10, kernel 30: 45 us, every 100 us."""


@pytest.mark.parametrize(
    ("plan", "causes"),
    [
        ([ALONE], []),
        # The second waits 10 us: 55 us, just in time.
        ([ALONE, Admitted(B, 1, 1, (SmShare(1, 1),))], []),
        # On the same SM, its kernel takes 4 us longer.
        ([ALONE, Admitted(B, 1, 1, (SmShare(0, 1),))], ["pcie"]),
        ([ALONE, Admitted(B, 1, 0, (SmShare(1, 1),))], ["pcie", "pcie"]),
        # 100 us to collect two packets.
        ([Admitted(A, 2, 0, (SmShare(0, 2),))], ["batching"]),
        ([Admitted(replace(A, batch=2), 1, 0, (SmShare(0, 1),))], ["batching"]),
        ([Admitted(A, 1, 0, (SmShare(2, 1),))], ["executors"]),
        ([Admitted(A, 1, 0, ())], ["executors", "kernel"]),
        ([Admitted(replace(A, latency_us=9999.0), 30, 0, (SmShare(0, 30),))], ["executors"]),
        ([Admitted(replace(A, latency_us=9999.0), 20, 0, (SmShare(0, 10), SmShare(0, 10)))], ["executors"]),
        # Every 25 us a packet: neither kernel is done by then.
        ([Admitted(replace(A, rate_kpps=40.0), 1, 0, (SmShare(0, 1),))], ["kernel"]),
        # Every 4 us: not even the CPU.
        ([Admitted(replace(A, rate_kpps=250.0), 1, 0, (SmShare(0, 1),))], ["batching"]),
        ([Admitted(replace(A, latency_us=30.0), 1, 0, (SmShare(0, 1),))], ["kernel"]),
        ([Admitted(replace(A, latency_us=40.0), 1, 0, (SmShare(0, 1),))], ["pcie"]),
    ],
)
def test_violations_name_the_cause(plan: list[Admitted], causes: list[str]) -> None:
    """Each plan with what it breaks."""
    assert [one.cause for one in violations(DEVICE, plan)] == causes


def test_workers_limit_the_number() -> None:
    """With one worker, the second SLO has none."""
    plan = [ALONE, Admitted(B, 1, 1, (SmShare(1, 1),))]
    device: GpuDevice = replace(DEVICE, workers=1)
    assert [(one.id, one.cause) for one in violations(device, plan)] == [("b", "workers")]
