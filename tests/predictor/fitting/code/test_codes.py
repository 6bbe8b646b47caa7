"""Models as C, LaTeX, P4 and Python: each keeps the error that its comment states."""

import ast
import ctypes
import math
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.generated_code import CODES
from profiles import InputError
from tests.predictor.fitting import made_up_models
from tests.predictor.fitting.code.p4_interpreter import parsed
from tests.predictor.fitting.made_up_models import made_up


def functions(models: Sequence[FittedModel]) -> list[Callable[[float], float]]:
    """The functions of the generated module, in its order."""
    tree = ast.parse(CODES["python"](models))
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


@pytest.mark.parametrize("model", made_up_models.EVERY_MODEL.values(), ids=made_up_models.EVERY_MODEL)
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
    small, large = functions(made_up_models.PER_SETTING)
    assert small.__name__ == "cycles_packet_packet_size_64_flows_minus_0_point_5"
    assert (small(10.0), large(10.0)) == (65.0, 1501.0)


@pytest.mark.parametrize("name", made_up_models.HOSTILE_NAMES)
def test_whatever_columns_are_called_the_module_has_one_function(name: str) -> None:
    """Of a name that says nothing to the interpreter; no part of a column's name is executed."""
    model = made_up((1.0, 9.0), ("exp", (1.0, 2.0, -0.5)), x=name, y=name, setting={name: 1.5})
    (function,) = functions([model])
    assert function(2.0) == pytest.approx(float(model.predict([2.0])[0]))


def test_the_comment_in_python_states_range_and_error() -> None:
    code = CODES["python"]([made_up_models.EVERY_MODEL["four segments"]])
    assert "# Fitted range: 1 <= entries <= 1048576; beyond it, extrapolated." in code
    assert "# Error (sMAPE): 0.73 % of the fit, 0.91 % at points left out of the fit;" in code
    assert "# estimated noise of the measurements: 0.9 %." in code


NOT_NEGATIVE = {name: model for name, model in made_up_models.EVERY_MODEL.items() if model.start >= 0}
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
    model = made_up_models.ONE_SEGMENT[name]
    (control,) = parsed(CODES["p4"]([model]))
    at = np.arange(math.ceil(model.start), math.floor(model.end) + 1)
    exact = model.predict(at)
    error = [abs(control.apply(int(x))[0] / 2.0**control.fraction_bits - y) / y for x, y in zip(at, exact, strict=True)]
    assert float(control.largest_error_pct) == pytest.approx(100 * max(error), rel=0.01)
    assert float(control.mean_error_pct) == pytest.approx(100 * np.mean(error), rel=0.01)


def test_beyond_the_measured_range_the_value_stays_and_is_marked() -> None:
    (control,) = parsed(CODES["p4"]([made_up_models.FOUR_SEGMENTS]))
    first, last = control.apply(1)[0], control.apply(1_048_576)[0]
    assert control.apply(0) == (first, False)
    assert control.apply(1_048_577) == control.apply(2**32 - 1) == (last, False)
    assert control.apply(4095)[0] != control.apply(4096)[0]


def test_there_is_a_control_per_setting() -> None:
    small, large = parsed(CODES["p4"](made_up_models.PER_SETTING))
    assert small.name == "cycles_packet_packet_size_64_flows_minus_0_point_5"
    assert large.apply(50)[0] / 2.0**large.fraction_bits == pytest.approx(1505, rel=0.01)


def test_values_below_zero_are_signed_numbers() -> None:
    """Errors near 0 are relative to a thousandth of the largest value, and the comment says so."""
    code = CODES["p4"]([made_up((0.0, 100.0), ("linear", (-50.0, 1.0)))])
    (control,) = parsed(code)
    assert "out int<32> " in code and "relative to the model's value, or to 0.05 where that is larger." in code
    assert control.apply(0)[0] < 0 == control.apply(50)[0] < control.apply(100)[0]


def test_wide_ranges_need_wide_keys() -> None:
    """A key of 64 bits, and a mean error from places of each entry."""
    code = CODES["p4"]([made_up_models.ONE_SEGMENT["log"]])
    assert "in bit<64> entries_," in code and "the mean from 200 places of each entry:" in code


@pytest.mark.parametrize("name", made_up_models.HOSTILE_NAMES)
def test_whatever_columns_are_called_the_control_is_understood(name: str) -> None:
    (control,) = parsed(CODES["p4"]([made_up((1.0, 9.0), ("linear", (1.0, 2.0)), x=name, y=name)]))
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


WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wmissing-prototypes", "-Wcomment", "-Werror")


def compiled(folder: Path, models: Sequence[FittedModel]) -> list[Callable[[float], float]]:
    """The functions of the compiled file, in its order."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed: generated C is not compiled")
    code = CODES["c"](models)
    source, library = folder / "model.c", folder / "model.so"
    source.write_text(code, encoding="utf-8")
    subprocess.run(["gcc", "-std=c11", "-O2", *WARNINGS, "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    found = ctypes.CDLL(str(library))
    functions = [getattr(found, name) for name in re.findall(r"^(\w+)\(double \w+\)$", code, re.MULTILINE)]
    for function in functions:
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    return functions


def test_the_functions_equal_the_models(tmp_path: Path) -> None:
    """To 1e-9, with every family."""
    models = [replace(model, y=f"{name} of {model.y}") for name, model in made_up_models.EVERY_MODEL.items()]
    functions = compiled(tmp_path, models)
    assert len(functions) == len(models)
    for function, model in zip(functions, models, strict=True):
        at = places(model)
        assert [function(x) for x in at] == pytest.approx(model.predict(at), rel=1e-9, abs=0), model.y


def test_whatever_columns_are_called_the_file_compiles(tmp_path: Path) -> None:
    """Without a warning, with one function per model."""
    models = [made_up((1.0, 9.0), ("log", (1.0, 2.0)), x=name, y=name) for name in made_up_models.HOSTILE_NAMES]
    functions = compiled(tmp_path, [*models, *made_up_models.PER_SETTING])
    assert len(functions) == len(models) + 2
    assert functions[0](1.0) == 1.0 and functions[-1](10.0) == 1501.0


def test_the_comment_states_range_and_error() -> None:
    code = CODES["c"]([made_up_models.EVERY_MODEL["four segments"]])
    assert " * Fitted range: 1 <= entries <= 1048576; beyond it, extrapolated.\n" in code
    assert " * Error (sMAPE): 0.73 % of the fit, 0.91 % at points left out of the fit;\n" in code
    assert "\tif (entries < 20000.5)\n\t\treturn entries*(1e-07*entries - 0.003) + 200.1;\n" in code


CASES = r"""\[
\mathit{cycles\_packet}(\mathit{entries}) =
\begin{cases}
  123.4 & 1 \leq \mathit{entries} < 4096 \\
  200.1 - 0.003 \mathit{entries} + 1 \cdot 10^{-7} \mathit{entries}^{2} & 4096 \leq \mathit{entries} < 20000.5 \\
  \frac{1}{0.001 + 0.0002 \ln{\left(\mathit{entries} \right)}} & 20000.5 \leq \mathit{entries} < 100000 \\
"""


def test_each_segment_is_a_case() -> None:
    """With as many digits as the values need."""
    code = CODES["latex"]([made_up_models.FOUR_SEGMENTS])
    assert CASES in code
    assert code.endswith("& 100000 \\leq \\mathit{entries} \\leq 1048576 \\\\\n\\end{cases}\n\\]\n")
    assert "% Fitted range: 1 <= entries <= 1048576; beyond it, extrapolated.\n" in code


def test_there_is_an_equation_per_setting() -> None:
    code = CODES["latex"](made_up_models.PER_SETTING)
    assert code.count(r"\begin{cases}") == code.count(r"\end{cases}") == 2


@pytest.mark.parametrize("name", made_up_models.HOSTILE_NAMES)
def test_whatever_columns_are_called_braces_match(name: str) -> None:
    """And nothing of a name is a command."""
    code = CODES["latex"]([made_up((1.0, 9.0), ("log", (1.0, 2.0)), x=name, y=name)])
    equation = code[code.index("\\[\n") :]
    assert equation.count("{") == equation.count("}")
    assert name.count("\n") == 0 or "import os" not in equation


def test_one_letter_stays_as_it_is() -> None:
    code = CODES["latex"]([made_up((0.0, 9.0), ("linear", (1.0, -2.5)), x="n", y="T")])
    assert "T(n) =\n\\begin{cases}\n  1 - 2.5 n & 0 \\leq n \\leq 9 \\\\\n" in code


def test_every_family_is_written() -> None:
    for model in made_up_models.EVERY_MODEL.values():
        assert r"\begin{cases}" in CODES["latex"]([model])
