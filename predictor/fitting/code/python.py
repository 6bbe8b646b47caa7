"""A fitted model as a Python function that needs no package."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Sequence
from typing import Any

from sympy.printing.pycode import PythonCodePrinter

from predictor.fitting.expressions import double, expression
from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.generated_code import CODES, facts
from predictor.fitting.identifiers import function_name, identifier

AVOIDED = frozenset({"math", *keyword.kwlist, *keyword.softkwlist, *dir(builtins)})


class _Printer(PythonCodePrinter):  # type: ignore[misc]
    def _print_Float(self, number: Any) -> str:
        return double(number)


@CODES.register("python")
def python_code(models: Sequence[FittedModel]) -> str:
    """A module with one function per model; it imports nothing but `math`."""
    taken = set(AVOIDED)
    functions = []
    for model in models:
        name = function_name(model, taken)
        taken.add(name)
        functions.append(_function(model, name, identifier(model.x, {*AVOIDED, name})))
    code = "\n\n\n".join(functions) + "\n"
    return f"import math\n\n\n{code}" if "math." in code else code


def _function(model: FittedModel, name: str, x: str) -> str:
    printer = _Printer({"fully_qualified_modules": True})
    lines = [f"# {fact}" for fact in facts(model)]
    lines.append(f"def {name}({x}: float) -> float:")
    for segment, point in zip(model.segments, [*model.breakpoints, None], strict=True):
        value = printer.doprint(expression(segment, x))
        lines += [f"    if {x} < {point.at!r}:", f"        return {value}"] if point else [f"    return {value}"]
    return "\n".join(lines)
