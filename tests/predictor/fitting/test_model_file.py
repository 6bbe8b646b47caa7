"""Fitted models as JSON: what is written is read back, and what is wrong is refused with its place."""

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.integer_table import integer_table
from predictor.fitting.model_file import models_of, models_text
from profiles import InputError
from tests.predictor.fitting.made_up_models import EVERY_MODEL, FOUR_SEGMENTS, HOSTILE_NAMES, PER_SETTING, made_up

Change = Callable[[dict[str, Any]], object]

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


def test_a_file_has_the_keys_of_the_contract() -> None:
    """Whole numbers are written without a decimal point."""
    document = json.loads(models_text([FOUR_SEGMENTS]))
    assert list(document) == [
        "fit", "x", "y", "points", "from", "to", "segments", "breakpoints", "smape_pct", "left_out_smape_pct",
        "noise_pct", "seconds",
    ]  # fmt: skip
    assert document["segments"][0] == {
        "from": 1, "to": 4096, "family": "constant", "parameters": [123.4], "formula": "123.4", "points": 31,
        "smape_pct": 0.41,
    }  # fmt: skip
    assert document["breakpoints"][1] == {"at": 20000.5, "low": 19000.475, "high": 21000.525, "jump": 12.1}
    assert '"from": 1,\n' in models_text([FOUR_SEGMENTS])


def test_models_are_read_back() -> None:
    """Of every family."""
    for model in EVERY_MODEL.values():
        assert models_of(models_text([model]), "m.json") == (model,)


def test_a_table_of_fits_is_read_back() -> None:
    """With the names of the settings first."""
    text = models_text(PER_SETTING)
    document = json.loads(text)
    assert list(document) == ["fit", "x", "y", "settings", "fits"]
    assert document["settings"] == ["packet_size", "flows"]
    assert document["fits"][0]["setting"] == {"packet_size": 64, "flows": -0.5}
    assert models_of(text, "m.json") == PER_SETTING


@given(numbers=st.lists(NUMBERS, min_size=2, max_size=2), edges=st.lists(NUMBERS, min_size=3, max_size=3, unique=True))
def test_numbers_are_read_back_to_the_last_digit(numbers: list[float], edges: list[float]) -> None:
    """Also -0.0, and numbers too large to be whole."""
    model = made_up(tuple(sorted(edges)), ("constant", (numbers[0],)), ("constant", (numbers[1],)))
    low_first = model.breakpoints[0].low <= model.breakpoints[0].high
    if low_first:
        (again,) = models_of(models_text([model]), "m.json")
        assert [repr(one) for one in again.segments] == [repr(one) for one in model.segments]


@pytest.mark.parametrize("name", [one for one in HOSTILE_NAMES if one])
def test_any_name_of_a_column_is_read_back(name: str) -> None:
    model = made_up((0.0, 9.0), ("linear", (1.0, 2.0)), x=name, y=name, setting={name: 3.0})
    assert models_of(models_text([model]), "m.json") == (model,)


WRONG: list[tuple[Change, str]] = [
    (lambda d: d.update(fit=2), "fit: is 2, not 1"),
    (lambda d: d.update(fit=True), "fit: is True, not 1"),
    (lambda d: d.pop("fit"), "fit: is missing: this is no fitted model"),
    (lambda d: d.pop("x"), "x: is missing"),
    (lambda d: d.update(x=""), "x: is empty"),
    (lambda d: d.update(extra=1), "extra: unknown key"),
    (lambda d: d.update(points="many"), "points: 'many' is not a whole number"),
    (lambda d: d.update(points=0), "points: 0 is below 1"),
    (lambda d: d.update(segments=[]), "segments: is too short"),
    (lambda d: d.update(smape_pct=101), "smape_pct: 101 is above 100"),
    (lambda d: d.update(noise_pct=None), "noise_pct: None is not a number"),
    (lambda d: d.update(seconds=-1), "seconds: -1 is below 0"),
    (lambda d: d.update({"from": 2}), "from: 2.0 is not that of the segments, 1.0"),
    (lambda d: d.update({"to": 2}), "to: 2.0 is not that of the segments, 1048576.0"),
    (lambda d: d["segments"][1].update({"from": 5000}), "segments.1.from: 5000.0 is not where the segment before ends"),
    (lambda d: d["segments"][0].update({"to": 1}), "segments.0.to: 1.0 is not above `from`, 1.0"),
    (lambda d: d["segments"][3].update({"to": 9}), "segments.3.to: 9.0 is below `from`"),
    (lambda d: d["segments"][0].update(family="spline"), "segments.0.family: 'spline' is not a family\nhint: families"),
    (lambda d: d["segments"][0].update(family="os.system"), "segments.0.family: 'os.system' is not a family"),
    (lambda d: d["segments"][1].update(parameters=[1, 2]), "segments.1.parameters: there are 2, quadratic has 3"),
    (lambda d: d["segments"][1].update(parameters=[1, "2", 3]), "segments.1.parameters.1: '2' is not a number"),
    (lambda d: d["segments"][2].update(parameters=[0, 0]), "segments.2.parameters: the value at 20000.5 is not finite"),
    (lambda d: d["segments"][0].update(family="log", parameters=[1, 2], **{"from": 0}), "0.0 is not above 0, as log"),
    (lambda d: d["segments"][0].pop("points"), "segments.0.points: is missing"),
    (lambda d: d["segments"][0].update(formula=7), "segments.0.formula: 7 is not text"),
    (lambda d: d.update(breakpoints=[]), "breakpoints: there are 0, between 4 segments"),
    (lambda d: d["breakpoints"][0].update(at=4000), "breakpoints.0.at: 4000.0 is not where a segment begins, 4096.0"),
    (lambda d: d["breakpoints"][0].update(low=9e9), "breakpoints.0.low: 9000000000.0 is above `high`"),
    (lambda d: d.update(setting={"a": "b"}), "setting.a: 'b' is not a number"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_wrong_is_named(change: Change, message: str) -> None:
    document = json.loads(models_text([FOUR_SEGMENTS]))
    change(document)
    with pytest.raises(InputError) as refused:
        models_of(json.dumps(document), "m.json")
    assert f"m.json: {message}" in str(refused.value) or message in str(refused.value)


def test_every_fault_is_named_at_once() -> None:
    document = json.loads(models_text([FOUR_SEGMENTS]))
    document["segments"][0]["family"] = "spline"
    document["segments"][1]["parameters"] = []
    document["breakpoints"].pop()
    with pytest.raises(InputError) as refused:
        models_of(json.dumps(document), "m.json")
    assert len(refused.value.faults) == 3


WRONG_TABLE: list[tuple[Change, str]] = [
    (lambda d: d.update(fits=[]), "fits: is too short"),
    (lambda d: d["fits"][1].update(x="other"), "fits.1.x: 'other' is not that of the table, 'entries'"),
    (lambda d: d["fits"][1].pop("setting"), "fits.1.setting: names nothing, `settings` names packet_size, flows"),
    (lambda d: d["fits"].append(copy.deepcopy(d["fits"][0])), "fits.2.setting: is that of fits.0, too"),
    (lambda d: d["fits"][1]["segments"][0].update(family="no"), "fits.1.segments.0.family: 'no' is not a family"),
]


@pytest.mark.parametrize(("change", "message"), WRONG_TABLE, ids=[message for _, message in WRONG_TABLE])
def test_what_is_wrong_in_a_table_is_named(change: Change, message: str) -> None:
    document = json.loads(models_text(PER_SETTING))
    change(document)
    with pytest.raises(InputError, match=f"m.json: {message}"):
        models_of(json.dumps(document), "m.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "m.json:1: column 1: is not JSON"),
        ("{\n'x'", "m.json:2: column 1: is not JSON"),
        ("[]", "m.json: is no fitted model: it must be a JSON object"),
        ('{"fit": NaN}', "m.json:1: NaN is not a finite number"),
        ('{"fit": 1, "fit": 1}', "m.json:1: fit: is named twice"),
        ("[" * 100_000, "m.json: is nested too deeply"),
        ('{"fit": 1, "fits": 3}', "m.json: fits: 3 is not a list"),
        ('{"fit": 1, "seconds": 1e999}', "m.json: seconds: inf is not a finite number"),
        ('{"fit": 1, "points": ' + "9" * 5000 + "}", "m.json: a number has more than 300 digits: 9999999999..."),
    ],
)
def test_what_is_no_model_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        models_of(text, "m.json")
    assert message in str(refused.value)


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
    table = integer_table(made_up((0.0, 1000.0), ("linear", (1.0, 2.0))), most=10)
    assert len(table.ranges) <= 10 and table.bound > 0.01 and 0.2 < table.largest_error <= table.bound


def test_a_turn_between_ends_counts() -> None:
    """A parabola with equal ends and a minimum that is a tenth of them."""
    table = integer_table(made_up((0.0, 200.0), ("quadratic", (1000.0, -18.0, 0.09))))
    lowest = min(table.ranges, key=lambda one: one.value)
    assert lowest.first <= 100 <= lowest.last
    assert lowest.value / 2.0**table.fraction_bits == pytest.approx(100, rel=0.01)
