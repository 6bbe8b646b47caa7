"""Waits for the bus, worked by hand."""

from collections.abc import Sequence
from fractions import Fraction
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.gpu.bus import one_shot_wait, sporadic_wait

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


@pytest.mark.long
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
