"""Models as C: what gcc compiles equals the model."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.generated_code import CODES
from tests.predictor.fitting.code.test_python import places
from tests.predictor.fitting.made_up_models import EVERY_MODEL, HOSTILE_NAMES, PER_SETTING, made_up

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
    models = [replace(model, y=f"{name} of {model.y}") for name, model in EVERY_MODEL.items()]
    functions = compiled(tmp_path, models)
    assert len(functions) == len(models)
    for function, model in zip(functions, models, strict=True):
        at = places(model)
        assert [function(x) for x in at] == pytest.approx(model.predict(at), rel=1e-9, abs=0), model.y


def test_whatever_columns_are_called_the_file_compiles(tmp_path: Path) -> None:
    """Without a warning, with one function per model."""
    models = [made_up((1.0, 9.0), ("log", (1.0, 2.0)), x=name, y=name) for name in HOSTILE_NAMES]
    functions = compiled(tmp_path, [*models, *PER_SETTING])
    assert len(functions) == len(models) + 2
    assert functions[0](1.0) == 1.0 and functions[-1](10.0) == 1501.0


def test_the_comment_states_range_and_error() -> None:
    code = CODES["c"]([EVERY_MODEL["four segments"]])
    assert " * Fitted range: 1 <= entries <= 1048576; beyond it, extrapolated.\n" in code
    assert " * Error (sMAPE): 0.73 % of the fit, 0.91 % at points left out of the fit;\n" in code
    assert "\tif (entries < 20000.5)\n\t\treturn entries*(1e-07*entries - 0.003) + 200.1;\n" in code
