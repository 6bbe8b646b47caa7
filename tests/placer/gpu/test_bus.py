"""Waits for the bus, worked by hand.

Greedy admission, compiled: of many SLOs, and of equal ones; small cases are in `test_methods.py`."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.gpu.bus import one_shot_wait, sporadic_wait
from placer.gpu.device import Arbitration, GpuNf
from placer.gpu.greedy import admit_greedily
from placer.gpu.plan import Admission, LatencySlo
from placer.gpu.tables import slo_arrays
from tests.placer.gpu.instances import broken_rules, small_gpu

pytestmark = pytest.mark.long  # the kernels of admission take half a minute to compile

Arrivals = Sequence[Sequence[Fraction]]  # times at which each stream's batches arrive, in ascending order


def longest_waits(
    transfers: Sequence[Fraction], arrivals: Arrivals, busy_until: Fraction | None = None
) -> list[Fraction]:
    """The longest time that a batch of each stream waits for the bus. `transfers`: the time of a transfer of each
    stream, smallest order first. `arrivals`: as many lists. A batch that arrives at the instant at which the bus
    becomes free takes part in the choice. `busy_until`: end of a transfer that already began."""
    queues = [list(reversed(times)) for times in arrivals]
    longest = [Fraction(0)] * len(transfers)
    now = busy_until or Fraction(0)
    while waiting := [times[-1] for times in queues if times]:
        now = max(now, min(waiting))
        chosen = next(stream for stream, times in enumerate(queues) if times and times[-1] <= now)
        longest[chosen] = max(longest[chosen], now - queues[chosen].pop())
        now += transfers[chosen]
    return longest


def test_one_shot_waits_for_all_earlier_transfers() -> None:
    """Three transfers of 10, 20 and 5 us delay the fourth by 35 us."""
    assert one_shot_wait([10, 20, 5]) == 35


@pytest.mark.parametrize(
    ("transfer", "period", "earlier", "periods", "blocking", "wait"),
    [
        (1.0, 10.0, [], [], 7.0, 7.0),  # without earlier ones, the wait is the largest later transfer
        # Davis et al. (2007), section 3: the second instance of C waits longest, 3.5 - 1 us; the first waits 1 + 1
        (1.0, 3.5, [1.0, 1.0], [2.5, 3.5], 0.0, 2.5),
        (1.0, 100.0, [2.0], [4.0], 2.0, 6.0),  # floor(4 / 4) + 1 = 2 earlier arrivals of 2 us: from a wait of 4 us on
        (5.0, 10.0, [5.0], [10.0], 0.0, inf),  # a full bus: utilisation 0.5 + 0.5 is not below 1
    ],
)
def test_waits_of_recurring_transfers_by_hand(transfer, period, earlier, periods, blocking, wait) -> None:  # type: ignore[no-untyped-def]
    assert sporadic_wait(transfer, period, earlier, periods, blocking) == pytest.approx(wait)


@given(st.integers(0, 10_000))
def test_the_wait_is_the_largest_over_a_long_run_of_instances(seed: int) -> None:
    """Searching far beyond the busy period, instance by instance, finds no longer wait."""
    rng = Random(seed)
    count = rng.randint(1, 4)
    periods = [rng.randint(5, 30) for _ in range(count)]
    times = [rng.randint(1, 4) for _ in range(count)]
    blocking = rng.randint(0, 5)
    expected = inf
    if sum(time / period for time, period in zip(times, periods, strict=True)) < 1:
        expected = max(wait_of(k, times, periods, blocking) for k in range(200))
    assert sporadic_wait(times[0], periods[0], times[1:], periods[1:], blocking) == pytest.approx(expected)


def wait_of(instance: int, times: list[int], periods: list[int], blocking: int) -> int:
    """How long one instance waits; whole numbers."""
    start, before = 0, -1
    while start > before:
        before = start
        start = blocking + instance * times[0]
        start += sum((before // period + 1) * time for time, period in zip(times[1:], periods[1:], strict=True))
    return start - instance * periods[0]


def test_times_of_a_million_years_are_no_batch() -> None:
    """A kernel in which more packets arrive than an integer counts is too slow."""
    slow = replace(small_gpu(), nfs={"acl": GpuNf("header", 5.0, (0.0, 1e12))}, sharing_us={})
    assert [one.cause for one in admit_greedily(slow, [LatencySlo("a", "acl", 1e12, 1e12)])[1]] == ["executors"]


@pytest.mark.parametrize("arbitration", Arbitration)
def test_a_set_of_many_slos_keeps_the_model(arbitration: Arbitration) -> None:
    """Eighty SLOs on twelve SMs, many of which are shared."""
    rng = Random(1)
    device = small_gpu(arbitration, sms=12, executors=12, workers=80)
    slos = [
        LatencySlo(f"{number}", rng.choice(("acl", "ids")), rng.uniform(2, 10), rng.uniform(600, 4000))
        for number in range(80)
    ]
    admitted, rejected = admit_greedily(device, slos)
    assert len(admitted) > 12
    assert broken_rules(device, slos, Admission(admitted, rejected, 80, len(admitted) == 80, 0.0)) == []


@pytest.mark.parametrize("arbitration", Arbitration)
def test_of_equal_slos_the_first_are_admitted(arbitration: Arbitration) -> None:
    """A hundred that differ in their names only: as many as fit, from the first one on, in this order."""
    slos = [LatencySlo(f"{number}", "acl", 10.0, 130.0) for number in range(100)]
    admitted, rejected = admit_greedily(small_gpu(arbitration, sms=8, workers=100), slos)
    assert 8 < len(admitted) < 32 and [one.slo for one in (*admitted, *rejected)] == slos


def test_slos_become_arrays() -> None:
    """NFs by number, 0 where no batch is fixed."""
    arrays = slo_arrays(small_gpu(), [LatencySlo("a", "ids", 4.0, 50.0, 7), LatencySlo("b", "acl", 5.0, 60.0)])
    assert [column.tolist() for column in arrays] == [[1, 0], [4.0, 5.0], [50.0, 60.0], [7, 0]]
