"""Models as LaTeX: a case per segment."""

from __future__ import annotations

import pytest

from predictor.fitting.generated_code import CODES
from tests.predictor.fitting.made_up_models import EVERY_MODEL, FOUR_SEGMENTS, HOSTILE_NAMES, PER_SETTING, made_up

CASES = r"""\[
\mathit{cycles\_packet}(\mathit{entries}) =
\begin{cases}
  123.4 & 1 \leq \mathit{entries} < 4096 \\
  200.1 - 0.003 \mathit{entries} + 1 \cdot 10^{-7} \mathit{entries}^{2} & 4096 \leq \mathit{entries} < 20000.5 \\
  \frac{1}{0.001 + 0.0002 \ln{\left(\mathit{entries} \right)}} & 20000.5 \leq \mathit{entries} < 100000 \\
"""


def test_each_segment_is_a_case() -> None:
    """With as many digits as the values need."""
    code = CODES["latex"]([FOUR_SEGMENTS])
    assert CASES in code
    assert code.endswith("& 100000 \\leq \\mathit{entries} \\leq 1048576 \\\\\n\\end{cases}\n\\]\n")
    assert "% Fitted range: 1 <= entries <= 1048576; beyond it, extrapolated.\n" in code


def test_there_is_an_equation_per_setting() -> None:
    code = CODES["latex"](PER_SETTING)
    assert code.count(r"\begin{cases}") == code.count(r"\end{cases}") == 2


@pytest.mark.parametrize("name", HOSTILE_NAMES)
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
    for model in EVERY_MODEL.values():
        assert r"\begin{cases}" in CODES["latex"]([model])
