"""Models as Python: the functions run, and equal the model."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.generated_code import CODES
from tests.predictor.fitting.made_up_models import EVERY_MODEL, HOSTILE_NAMES, PER_SETTING, made_up


def functions(models: Sequence[FittedModel]) -> list[Callable[[float], float]]:
    """The functions of the generated module, in its order."""
    code = CODES["python"](models)
    tree = ast.parse(code)
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imported] in ([], ["import math"])
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert len(tree.body) == len(names) + len(imported)
    namespace: dict[str, Callable[[float], float]] = {}
    exec(compile(tree, "generated", "exec"), namespace)
    return [namespace[name] for name in names]


def places(model: FittedModel) -> list[float]:
    """Where a model is compared: throughout, at each breakpoint and on both sides of it."""
    near = [np.nextafter(one.at, side) for one in model.breakpoints for side in (-np.inf, one.at, np.inf)]
    return sorted([*np.linspace(model.start, model.end, 101).tolist(), *map(float, near)])


@pytest.mark.parametrize("model", EVERY_MODEL.values(), ids=EVERY_MODEL)
def test_the_function_equals_the_model(model: FittedModel) -> None:
    """To 1e-9, with every family."""
    (function,) = functions([model])
    at = places(model)
    assert [function(x) for x in at] == pytest.approx(model.predict(at), rel=1e-9, abs=0)


@settings(deadline=None, max_examples=25)
@given(
    parameters=st.lists(st.floats(1e-6, 1e6), min_size=6, max_size=6),
    edges=st.lists(st.floats(1e-3, 1e3), min_size=4, max_size=4, unique=True),
)
def test_no_digit_of_a_parameter_or_breakpoint_is_lost(parameters: list[float], edges: list[float]) -> None:
    a, b, c, d, e, f = parameters
    model = made_up(
        tuple(sorted(edges)), ("quadratic", (a, b, c)), ("inverse-inverse", (d, e)), ("log", (f, a)),
    )  # fmt: skip
    (function,) = functions([model])
    for x in places(model):
        assert function(x) == pytest.approx(float(model.predict([x])[0]), rel=1e-12, abs=1e-9)


def test_a_table_of_fits_is_one_function_per_setting() -> None:
    """Their names are those of the settings."""
    small, large = functions(PER_SETTING)
    assert small.__name__ == "cycles_packet_packet_size_64_flows_minus_0_point_5"
    assert (small(10.0), large(10.0)) == (65.0, 1501.0)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_whatever_columns_are_called_the_module_has_one_function(name: str) -> None:
    """Of a name that says nothing to the interpreter; no part of a column's name is executed."""
    model = made_up((1.0, 9.0), ("exp", (1.0, 2.0, -0.5)), x=name, y=name, setting={name: 1.5})
    (function,) = functions([model])
    assert function(2.0) == pytest.approx(float(model.predict([2.0])[0]))


def test_the_comment_states_range_and_error() -> None:
    code = CODES["python"]([EVERY_MODEL["four segments"]])
    assert "# Fitted range: 1 <= entries <= 1048576; beyond it, extrapolated." in code
    assert "# Error (sMAPE): 0.73 % of the fit, 0.91 % at points left out of the fit;" in code
    assert "# estimated noise of the measurements: 0.9 %." in code
