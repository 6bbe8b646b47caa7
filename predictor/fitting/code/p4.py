"""A fitted model as a P4-16 control: a table that matches x by ranges and sets a whole value. A switch cannot multiply
by fractions or take logarithms; it looks the value up. It stands for the value divided by a power of two. The comment
states by how much the table differs from the model."""

import math
from collections.abc import Sequence

from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.generated_code import CODES, comment_text, facts, function_names, identifier
from predictor.fitting.integer_table import RANGE_SAMPLES, IntegerTable, integer_table

P4_KEYWORDS = """
    abstract action actions apply bit bool break const continue control default default_action else entries enum error
    exit extern false for header header_union if in inout int key list main match_kind out package parser pragma
    priority return select size state string struct switch table this transition true tuple type typedef value_set
    varbit void
"""
GENERATED_NAMES = ("accept", "reject", "NoAction", "value", "measured", "inside", "outside", "lookup")
AVOIDED_NAMES = frozenset((*P4_KEYWORDS.split(), *GENERATED_NAMES))
NARROW_BITS, WIDE_BITS = 32, 64
FIRST_LINE = "// To include after the architecture, such as v1model.p4, which declares the match kind `range`.\n\n"


@CODES.register("p4")
def p4_code(models: Sequence[FittedModel]) -> str:
    """A file with one control per model, to include after the architecture, which declares the match kind `range`."""
    names = function_names(models, AVOIDED_NAMES)
    return FIRST_LINE + "\n\n".join(_control(model, name) for model, name in zip(models, names, strict=True)) + "\n"


def _control(model: FittedModel, name: str) -> str:
    table = integer_table(model)
    out = f"{name}_value"
    x = identifier(model.x, {*AVOIDED_NAMES, name, out})
    values = [span.value for span in table.ranges]
    signed = min(values) < 0
    x_type = f"bit<{_width(table.ranges[-1].last)}>"
    y_type = f"{'int' if signed else 'bit'}<{_width(max(map(abs, values)) * (2 if signed else 1))}>"
    rows = [f"{span.first} .. {span.last} : inside({span.value});" for span in table.ranges]
    if table.ranges[0].first > 0:
        rows.insert(0, f"0 .. {table.ranges[0].first - 1} : outside({values[0]});")
    return "\n".join(
        [
            "/*",
            *(f" * {line}" for line in [*facts(model), *_of_table(table, comment_text(model.x))]),
            " */",
            f"control {name}(in {x_type} {x}, out {y_type} {out}, out bool measured) {{",
            *_action("inside", y_type, out, "true"),
            *_action("outside", y_type, out, "false"),
            "    table lookup {",
            f"        key = {{ {x} : range; }}",
            "        actions = { inside; outside; }",
            "        const entries = {",
            *(f"            {row}" for row in rows),
            "        }",
            f"        const default_action = outside({values[-1]});",
            f"        size = {len(rows)};",
            "    }",
            "    apply {",
            "        lookup.apply();",
            "    }",
            "}",
        ]
    )


def _action(action: str, y_type: str, out: str, measured: str) -> list[str]:
    return [
        f"    action {action}({y_type} value) {{",
        f"        {out} = value;",
        f"        measured = {measured};",
        "    }",
    ]


def _of_table(table: IntegerTable, x: str) -> list[str]:
    first, last = table.ranges[0].first, table.ranges[-1].last
    relative = "the model's value" + (f", or to {table.floor:.6g} where that is larger" if table.floor else "")
    how = "every whole number" if table.enumerated else f"the mean from {RANGE_SAMPLES} places of each entry"
    return [
        f"The value is that of the model times 2^{table.fraction_bits} = {2**table.fraction_bits}.",
        f"Table against model, {x} from {first} to {last}, {how}:",
        f"largest error {_up(100 * table.largest_error)} %, mean error {_up(100 * table.mean_error)} %,",
        f"relative to {relative}.",
        "Outside of that range, `measured` is false and the value that of the nearest entry.",
    ]


def _up(percent: float) -> str:
    """Rounded up to three digits, so that what is stated holds."""
    if percent <= 0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(percent)) - 2)
    return f"{math.ceil(percent / step * (1 - 1e-12)) * step:.4g}"


def _width(largest: int) -> int:
    return NARROW_BITS if largest < 2**NARROW_BITS else WIDE_BITS
