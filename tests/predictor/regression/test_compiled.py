"""Compiled kernels: what is said while they are compiled."""

from __future__ import annotations

from numba import njit

from predictor.regression.compiled import announce_compiling


def test_compiling_is_announced_once_to_who_asked_last() -> None:
    """A kernel that is compiled already is not announced, nor is the next one."""
    first, last = list[str](), list[str]()
    announce_compiling(first.append)
    announce_compiling(last.append)
    one, other = njit(lambda x: x + 1), njit(lambda x: x + 2)
    assert one(1) == 2 and one(2) == 3 and other(1) == 3
    assert not first
    assert len(last) == 1 and last[0].startswith("compiling")
