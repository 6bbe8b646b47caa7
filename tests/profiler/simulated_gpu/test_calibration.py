"""The simulated GPU agrees with the numbers that Grus prints; `pytest -s` shows the table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from profiler.simulated_gpu import SimulatedGpu
from profiler.testbed import GpuStages, Measurement
from profiles import PacedWorkload, TrafficProfile
from tests.profiler.simulated_gpu.loads import on_sms, scheduled

GPU = SimulatedGpu()
FIREWALL = TrafficProfile(30, 850, 0)
"""Of figures 1 and 9: 2 Gb/s; mean packet size and flows of a firewall are not printed, these are chosen."""
TWO_GBPS = 2e6 / 8 / 850


def first(loads: Sequence[PacedWorkload]) -> Measurement:
    return GPU.run(loads, noise=False).measurements[0]


def stages(load: PacedWorkload) -> GpuStages:
    found = first([load]).stages_us
    assert found is not None
    return found


@cache
def firewalls(number: int, scheduler: str | None) -> tuple[float, float]:
    """Mean latency (us) and throughput (kpps) of the first of so many firewalls; None: by order, two executors each."""
    if scheduler:
        one = first([scheduled("ACL", scheduler, traffic=FIREWALL)] * number)
    else:
        every = [[(at // 2, 128), (at // 2 + 10, 128)] if at else [(0, 256)] for at in range(number)]
        one = first(
            [on_sms("ACL", split, order=at, rate_kpps=TWO_GBPS, traffic=FIREWALL) for at, split in enumerate(every)]
        )
    assert one.latency_us is not None
    return one.latency_us.mean, one.throughput_kpps


def increase(others: int, scheduler: str | None) -> float:
    return firewalls(1 + others, scheduler)[0] / firewalls(1, scheduler)[0] - 1


def show(what: str, printed: str, here: str) -> None:
    print(f"{what:<64} {printed:>14} {here:>14}")


@pytest.mark.parametrize(("others", "printed", "within"), [(2, 0.19, 0.05), (9, 2.1, 0.6)])
def test_a_firewall_slows_down_as_in_figure_1(others: int, printed: float, within: float) -> None:
    """Under the scheduler of the GPU, in turns; the throughput does not drop."""
    found = increase(others, "temporal")
    show(f"figure 1: latency of a firewall beside {others} others", f"+{printed}x", f"+{found:.2f}x")
    assert found == pytest.approx(printed, abs=within)
    assert firewalls(1 + others, "temporal")[1] > 0.99 * firewalls(1, "temporal")[1]


def test_the_first_order_is_hardly_disturbed_as_in_figure_9() -> None:
    """Below 10 % beside nine others, with two executors and order 0; it waits for a transfer under way at most."""
    found = increase(9, None)
    show("figure 9: the same with executors and order 0, 9 others", "below +0.10x", f"+{found:.3f}x")
    assert 0 < found < 0.10


def test_the_worker_of_the_nids_needs_what_figure_3_prints() -> None:
    """31 us for 256 packets."""
    found = stages(on_sms("NIDS")).pre_post
    show("figure 3(b): before and after the GPU, NIDS, 256 packets", "31 us", f"{found:.1f} us")
    assert found == pytest.approx(31, abs=1)


@pytest.mark.parametrize(("nf", "printed"), [("ACL", 2.2), ("NIDS", 3.5), ("IPSec", 4.1)])
def test_transfers_are_about_linear_as_in_figure_10(nf: str, printed: float) -> None:
    """A line through batches of 32 to 1,024 packets misses them by less than in the paper, whose card had noise."""
    batches = np.array([32, 64, 128, 256, 512, 1024])
    found = [stages(on_sms(nf, [(0, batch)])) for batch in batches.tolist()]
    times = np.array([one.transfer + one.returned for one in found])
    deviation = 100 * float(np.mean(np.abs(np.polyval(np.polyfit(batches, times, 1), batches) / times - 1)))
    show(f"figure 10(b): a line through transfers both ways, {nf}", f"{printed} %", f"{deviation:.2f} %")
    assert deviation < printed


def test_batching_is_about_linear_as_in_figure_10() -> None:
    """A line through the mean times of batches of 32 to 1,024 packets, in single runs."""
    batches = np.array([32, 64, 128, 256, 512, 1024])
    runs = [GPU.run([on_sms("ACL", [(0, batch)])], seed=2).measurements[0].stages_us for batch in batches.tolist()]
    times = np.array([one.batching for one in runs if one is not None])
    deviation = 100 * float(np.mean(np.abs(np.polyval(np.polyfit(batches, times, 1), batches) / times - 1)))
    show("figure 10(a): a line through batching, mean deviation", "1.2 to 1.6 %", f"{deviation:.2f} %")
    assert deviation < 4.7
