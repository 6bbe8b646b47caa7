"""A fitted model as a Python function that needs no package."""

import builtins
import keyword
from collections.abc import Sequence

from sympy.printing.pycode import PythonCodePrinter

from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.generated_code import CODES, DoublePrinter, branches, facts, function_names, identifier

AVOIDED_NAMES = frozenset({"math", *keyword.kwlist, *keyword.softkwlist, *dir(builtins)})


class _Printer(DoublePrinter, PythonCodePrinter):  # type: ignore[misc]
    pass


@CODES.register("python")
def python_code(models: Sequence[FittedModel]) -> str:
    """A module with one function per model; it imports nothing but `math`."""
    names = function_names(models, AVOIDED_NAMES)
    code = "\n\n\n".join(_function(model, name) for model, name in zip(models, names, strict=True)) + "\n"
    return f"import math\n\n\n{code}" if "math." in code else code


def _function(model: FittedModel, name: str) -> str:
    x = identifier(model.x, {*AVOIDED_NAMES, name})
    lines = [f"# {fact}" for fact in facts(model)]
    lines.append(f"def {name}({x}: float) -> float:")
    for value, end in branches(model, x, _Printer({"fully_qualified_modules": True})):
        lines += [f"    if {x} < {end}:", f"        return {value}"] if end else [f"    return {value}"]
    return "\n".join(lines)
