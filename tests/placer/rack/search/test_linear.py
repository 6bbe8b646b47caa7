"""The linear programs under all relaxations."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from placer.rack.search import relaxation

ONE = np.ones(1)
NOBODY = np.zeros(1, dtype=np.int64)


def test_a_program_beyond_its_limits_has_no_solution() -> None:
    """One column that uses 2 of a limit of 1."""
    assert relaxation.largest_gain(ONE, 2.0 * np.ones((1, 1)), ONE, NOBODY, ONE) is None


def test_a_solver_that_gives_up_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is an error, never that there is no solution."""
    monkeypatch.setattr(relaxation, "linprog", lambda *_, **__: SimpleNamespace(status=4, x=None, message="numbers"))
    with pytest.raises(ArithmeticError, match="numbers"):
        relaxation.largest_gain(ONE, np.ones((1, 1)), ONE, NOBODY, ONE)
