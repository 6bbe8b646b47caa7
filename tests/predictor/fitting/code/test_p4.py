"""Models as P4: the table, executed by an interpreter of whole numbers, keeps the error that its comment states."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.generated_code import CODES
from profiles import InputError
from tests.predictor.fitting.code.p4_interpreter import parsed
from tests.predictor.fitting.made_up_models import (
    EVERY_MODEL,
    FOUR_SEGMENTS,
    HOSTILE_NAMES,
    ONE_SEGMENT,
    PER_SETTING,
    made_up,
)

NOT_NEGATIVE = {name: model for name, model in EVERY_MODEL.items() if model.start >= 0}
MOST_COMPARED = 30_000


def compared(model: FittedModel) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Whole numbers of the model's range: all, or if there are many, evenly and geometrically spaced ones."""
    first, last = math.ceil(model.start), math.floor(model.end)
    if last - first < MOST_COMPARED:
        return np.arange(first, last + 1, dtype=float)
    geometric = first + np.expm1(np.linspace(0, np.log1p(last - first), MOST_COMPARED // 2))
    return np.unique(np.rint([*np.linspace(first, last, MOST_COMPARED // 2), *geometric]))


@pytest.mark.parametrize("model", NOT_NEGATIVE.values(), ids=NOT_NEGATIVE)
def test_the_stated_error_holds(model: FittedModel) -> None:
    """At most 1 % of every value, in at most 1,024 entries."""
    (control,) = parsed(CODES["p4"]([model]))
    assert len(control.entries) <= 1_024
    at = compared(model)
    found = [control.apply(int(x)) for x in at]
    assert all(measured for _, measured in found)
    exact = model.predict(at)
    error = np.abs(np.array([value for value, _ in found]) / 2.0**control.fraction_bits - exact) / np.abs(exact)
    assert 100 * error.max() <= float(control.largest_error_pct) * (1 + 1e-9)
    assert control.largest_error_pct <= 1


@pytest.mark.parametrize("name", ["linear", "degree-4", "inverse-exp", "inverse-quadratic", "constant"])
def test_stated_errors_are_those_of_every_whole_number(name: str) -> None:
    """Neither too large nor too small, to the three digits shown."""
    model = ONE_SEGMENT[name]
    (control,) = parsed(CODES["p4"]([model]))
    at = np.arange(math.ceil(model.start), math.floor(model.end) + 1)
    exact = model.predict(at)
    error = [abs(control.apply(int(x))[0] / 2.0**control.fraction_bits - y) / y for x, y in zip(at, exact, strict=True)]
    assert float(control.largest_error_pct) == pytest.approx(100 * max(error), rel=0.01)
    assert float(control.mean_error_pct) == pytest.approx(100 * np.mean(error), rel=0.01)


def test_beyond_the_measured_range_the_value_stays_and_is_marked() -> None:
    (control,) = parsed(CODES["p4"]([FOUR_SEGMENTS]))
    first, last = control.apply(1)[0], control.apply(1_048_576)[0]
    assert control.apply(0) == (first, False)
    assert control.apply(1_048_577) == control.apply(2**32 - 1) == (last, False)
    assert control.apply(4095)[0] != control.apply(4096)[0]


def test_there_is_a_control_per_setting() -> None:
    small, large = parsed(CODES["p4"](PER_SETTING))
    assert small.name == "cycles_packet_packet_size_64_flows_minus_0_point_5"
    assert large.apply(50)[0] / 2.0**large.fraction_bits == pytest.approx(1505, rel=0.01)


def test_values_below_zero_are_signed_numbers() -> None:
    """Errors near 0 are relative to a thousandth of the largest value, and the comment says so."""
    model = made_up((0.0, 100.0), ("linear", (-50.0, 1.0)))
    code = CODES["p4"]([model])
    (control,) = parsed(code)
    assert "out int<32> " in code and "relative to the model's value, or to 0.05 where that is larger." in code
    assert control.apply(0)[0] < 0 == control.apply(50)[0] < control.apply(100)[0]


def test_wide_ranges_need_wide_keys() -> None:
    """A key of 64 bits, and a mean error from places of each entry."""
    code = CODES["p4"]([ONE_SEGMENT["log"]])
    assert "in bit<64> entries_," in code and "the mean from 200 places of each entry:" in code


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_whatever_columns_are_called_the_control_is_understood(name: str) -> None:
    model = made_up((1.0, 9.0), ("linear", (1.0, 2.0)), x=name, y=name)
    (control,) = parsed(CODES["p4"]([model]))
    assert control.apply(4)[0] == 9 * 2**control.fraction_bits


@pytest.mark.parametrize(
    ("model", "wrong"),
    [
        (made_up((-1.0, 9.0), ("linear", (1.0, 2.0))), "the model is of x from -1 to 9"),
        (made_up((0.25, 0.75), ("linear", (1.0, 2.0))), "there is no whole number from 0.25 to 0.75"),
        (made_up((0.0, 1e17), ("linear", (1.0, 2.0))), "whole numbers from 0 to 2^53"),
        (made_up((0.0, 9.0), ("inverse-linear", (-4.0, 1.0))), "no finite value at a whole number"),
        (made_up((0.0, 9.0), ("linear", (1e15, 1e19))), "too large"),
    ],
)
def test_models_that_no_table_holds_are_refused(model: FittedModel, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong.replace("^", r"\^")):
        CODES["p4"]([model])


NUMBERS = st.floats(-1e3, 1e3)


@settings(deadline=None, max_examples=25)
@given(
    edges=st.lists(st.floats(0.5, 400), min_size=3, max_size=3, unique=True),
    cubic=st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    logarithm=st.tuples(NUMBERS, NUMBERS),
)
def test_the_stated_error_holds_for_any_model(
    edges: list[float], cubic: tuple[float, ...], logarithm: tuple[float, ...]
) -> None:
    """Also where values change their sign, or a segment holds no whole number."""
    model = made_up(tuple(sorted(edges)), ("degree-3", cubic), ("log", logarithm))
    assume(math.ceil(model.start) <= math.floor(model.end))
    code = CODES["p4"]([model])
    (control,) = parsed(code)
    floor = re.search(r"or to (\S+) where that is larger", code)
    for x in range(math.ceil(model.start), math.floor(model.end) + 1):
        exact = float(model.predict([x])[0])
        size = max(abs(exact), float(floor[1]) * (1 - 1e-5) if floor else 0.0)
        found = control.apply(x)[0] / 2.0**control.fraction_bits
        assert 100 * abs(found - exact) <= float(control.largest_error_pct) * size * (1 + 1e-5)
