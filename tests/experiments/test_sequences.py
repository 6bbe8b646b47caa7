"""Sequences over several cores."""

from __future__ import annotations

from functools import partial

from experiments import Setting
from experiments.methodology.sequences import each_sequence
from experiments.tomur.table6_online import _placed

FOUR = Setting(scale=0.04)


def test_several_cores_tell_what_one_tells() -> None:
    """Four sequences over two processes are those of one, in order and to the last digit."""
    serial, spread = (list(each_sequence(FOUR, partial(_placed, count=40), jobs)) for jobs in (1, 2))
    assert len(serial) == 4
    assert spread == serial
