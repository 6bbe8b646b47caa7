"""Tables of ranges: as few as the error bound allows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.integer_table import integer_table
from tests.predictor.fitting.made_up_models import made_up


def fewest(model: FittedModel, bound: float) -> int:
    """The least number of runs of whole numbers that some number is within the bound of, by trying every cut."""
    values = model.predict(np.arange(int(model.start), int(model.end) + 1))
    best = [0] + [len(values)] * len(values)
    for end in range(1, len(values) + 1):
        for begin in range(end):
            run = values[begin:end]
            if run.max() * (1 - bound) <= run.min() * (1 + bound):
                best[end] = min(best[end], best[begin] + 1)
    return best[-1]


@settings(deadline=None, max_examples=20)
@given(at=st.integers(5, 55), slope=st.floats(0.1, 20), curve=st.floats(-0.3, 0.3), rate=st.floats(-0.05, 0.05))
def test_there_are_as_few_ranges_as_the_bound_allows(at: int, slope: float, curve: float, rate: float) -> None:
    """Compared with every way to cut; rounding to whole values may cost one range at most."""
    model = made_up(
        (0.0, float(at), 60.0), ("quadratic", (600.0 + 1080.0, -slope, curve)), ("exp", (300.0, 10.0, rate)),
    )  # fmt: skip
    table = integer_table(model, bound=0.05)
    assert fewest(model, 0.05) <= len(table.ranges) <= fewest(model, 0.05) + 1
    assert table.largest_error <= 0.05 * (1 + 1e-9)
    assert (table.ranges[0].first, table.ranges[-1].last) == (0, 60)


def test_with_too_few_ranges_the_error_grows() -> None:
    """A line from 1 to 2,001 in ten ranges."""
    model = made_up((0.0, 1000.0), ("linear", (1.0, 2.0)))
    table = integer_table(model, most=10)
    assert len(table.ranges) <= 10 and table.bound > 0.01 and 0.2 < table.largest_error <= table.bound


def test_a_turn_between_ends_counts() -> None:
    """A parabola with equal ends and a minimum that is a tenth of them."""
    model = made_up((0.0, 200.0), ("quadratic", (1000.0, -18.0, 0.09)))
    table = integer_table(model)
    lowest = min(table.ranges, key=lambda one: one.value)
    assert lowest.first <= 100 <= lowest.last
    assert lowest.value / 2.0**table.fraction_bits == pytest.approx(100, rel=0.01)
