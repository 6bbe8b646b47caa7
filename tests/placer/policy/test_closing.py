"""Prices for the last arrivals of a trace."""

from __future__ import annotations

import numpy as np
import pytest

from placer.policy.dual_simplex import OpenClass, PatternProgram
from placer.policy.pattern_table import PatternTable
from placer.strategies.contention_aware import ContentionAware
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, arrival, catalogue
from profiles import Workload


def _prices(classes: list[OpenClass], arrivals: float) -> np.ndarray:
    # workload d takes three of eight cores, and any SLA accepts a drop of a half: at most two fit on a NIC
    table = PatternTable(catalogue().kinds[0], [Workload("d", TOY_TRAFFIC)], ToyOracle(), lambda workload, solo: 0.5)
    program = PatternProgram(table.counts, table.members, 1)
    program.restart(np.where(table.counts > 0, 0, -1).astype(np.int32), classes)
    program.demand(np.array([[arrivals]]))
    program.pivot(100)
    return program.prices()


def test_without_open_nics_a_slot_costs_its_share_of_a_new_one() -> None:
    """Two d fit on a NIC, so each is worth half of one."""
    assert _prices([], 6.0) == pytest.approx(np.array([[0.5]]), rel=1e-3)


def test_where_open_nics_suffice_slots_are_worth_nothing() -> None:
    """Four NICs with one free slot each, and three arrivals to come."""
    half_full = OpenClass(1, np.array([2]), 4)
    assert _prices([half_full], 3.0) == pytest.approx(np.array([[0.0]]), abs=1e-3)
    assert _prices([half_full], 5.0) == pytest.approx(np.array([[0.5]]), rel=1e-3)


def test_without_arrivals_slots_are_worth_nothing() -> None:
    assert _prices([], 0.0) == pytest.approx(np.array([[0.0]]))


def test_the_last_arrivals_fill_open_nics() -> None:
    """At the end of a trace a NIC is opened only where no NIC in use fits: 30 d in a row need 15 NICs."""
    trace = [arrival(f"{number:02}", number, "d", 0.5) for number in range(30)]
    plan = ContentionAware(catalogue(), "toy", oracles=[ToyOracle()]).place(trace)
    assert len({one.nic for one in plan.placements}) == 15
