"""Sequences of arrivals evaluated on several cores."""

from __future__ import annotations

from functools import partial

from experiments import Setting
from experiments.tomur.methodology.arrival_sequences import each_sequence
from experiments.tomur.table6_online import _scores

FOUR = Setting(scale=0.04)


def test_two_processes_return_what_one_returns() -> None:
    """Four sequences give the same results in the same order on one and on two processes."""
    serial, parallel = (list(each_sequence(FOUR, partial(_scores, count=8), jobs)) for jobs in (1, 2))
    assert len(serial) == 4
    assert parallel == serial
