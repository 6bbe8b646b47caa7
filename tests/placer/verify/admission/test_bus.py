"""The wait for the bus: cases by hand, and what a simulated bus does."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.verify.admission import latency
from placer.verify.admission.latency import Stream, TooManySteps, one_shot_wait, sporadic_wait, utilisation_of
from tests.effort import examples
from tests.placer.gpu.test_bus import longest_waits


def stream(transfer: float, period: float) -> Stream:
    return Stream(Fraction(str(transfer)), Fraction(str(period)))


def streams_of(*pairs: tuple[float, float]) -> list[Stream]:
    return [stream(*pair) for pair in pairs]


def waits(streams: list[Stream]) -> list[Fraction]:
    """The wait of each stream, smallest order first."""
    return [sporadic_wait(one, streams[:place], streams[place + 1 :]) for place, one in enumerate(streams)]


def test_once_each_waits_for_all_earlier() -> None:
    """2 + 3 us for the third of three transfers."""
    assert one_shot_wait(streams_of((2, 9), (3, 9))) == 5


@pytest.mark.parametrize(
    ("streams", "expected"),
    [
        ([(3, 10)], [0]),
        ([(3, 10), (2, 10)], [2, 3]),
        ([(2, 5), (1, 20), (1, 20)], [1, 3, 3]),
        # at 4, when the bus becomes free, the first arrives again and goes before the third
        ([(2, 4), (2, 9), (1, 100)], [2, 3, 6]),
        # at 4 = 2 + 2, the first arrives again and goes before the second
        ([(2, 4), (1, 8), (2, 9)], [2, 6, 3]),
        ([(0, 1), (5, 6)], [5, 0]),
    ],
)
def test_hand_cases_of_recurring_transfers(streams: list[tuple[float, float]], expected: list[int]) -> None:
    """Each bound is found by drawing the bus."""
    assert waits(streams_of(*streams)) == expected


def test_the_second_batch_of_a_busy_period_can_wait_longest() -> None:
    """Davis et al., section 3.1: three messages of 1 ms with periods 2.5, 3.5 and 3.5 ms.

    The third waits 2 ms in its first instance, and 2.5 ms in its second.
    """
    assert waits(streams_of((1, 2.5), (1, 3.5), (1, 3.5))) == [1, 2, Fraction("2.5")]


def test_a_bus_next_to_its_limit_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends after its number of steps."""
    monkeypatch.setattr(latency, "MOST_STEPS", 50)
    with pytest.raises(TooManySteps):
        waits(streams_of((1, 2), (1, 2.0001)))


tenths = st.integers(min_value=1, max_value=60).map(lambda number: Fraction(number, 10))


@st.composite
def buses(draw: st.DrawFn) -> list[Stream]:
    """Two to four streams that leave the bus idle at times."""
    number = draw(st.integers(2, 4))
    shares = draw(st.lists(st.integers(3, 30), min_size=number, max_size=number))
    chosen = [
        Stream(transfer, Fraction(round(transfer * share * 2), 10))
        for transfer, share in zip(draw(st.lists(tenths, min_size=number, max_size=number)), shares, strict=True)
    ]
    chosen = [Stream(one.transfer, max(one.period, one.transfer)) for one in chosen]
    while utilisation_of(chosen) >= 1:
        chosen = [Stream(one.transfer, one.period + 1) for one in chosen]
    return chosen


@settings(max_examples=examples(150))
@given(buses())
def test_the_bound_is_reached_when_all_arrive_together_behind_the_longest_later_transfer(streams: list[Stream]) -> None:
    """At the critical instant, a simulated bus lets a batch of each stream wait exactly as long as the bound."""
    for place, own in enumerate(streams):
        blocking = max((one.transfer for one in streams[place + 1 :]), default=Fraction(0))
        present = streams[: place + 1]
        horizon = (blocking + sum(one.transfer for one in present)) / (1 - utilisation_of(present)) + own.period
        arrivals = [[one.period * batch for batch in range(int(horizon / one.period) + 2)] for one in present]
        longest = longest_waits([one.transfer for one in present], arrivals, blocking)
        assert longest[place] == sporadic_wait(own, streams[:place], streams[place + 1 :])


@settings(max_examples=examples(150))
@given(buses(), st.data())
def test_no_random_arrivals_exceed_the_bound(streams: list[Stream], data: st.DataObject) -> None:
    """Batches at least a period apart, from any first instants, never wait longer than the bound."""
    arrivals = []
    for one in streams:
        extra = data.draw(st.lists(st.sampled_from([0, 0, 0, 1, 7]), min_size=2, max_size=25))
        gaps = [Fraction(more, 10) + (one.period if number else 0) for number, more in enumerate(extra)]
        arrivals.append(list(accumulate(gaps)))
        assert all(after - before >= one.period for before, after in pairwise(arrivals[-1]))
    longest = longest_waits([one.transfer for one in streams], arrivals)
    assert all(wait <= bound for wait, bound in zip(longest, waits(streams), strict=True))
