"""Programs with one fault are refused, and the fault is named at its place."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from placer.metacompiler.p4.checker import check
from tests.placer.metacompiler.p4.checker.mutations import MUTATIONS, ProgramMutation
from tests.placer.metacompiler.p4.checker.programs import changed


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.what)
def test_a_wrong_program_is_refused_with_its_fault(mutation: ProgramMutation) -> None:
    faults = check(changed(mutation.program, mutation.old, mutation.new), "switch.p4")
    assert any(mutation.says in fault.message for fault in faults), [str(fault) for fault in faults]
    assert all(re.match(r"switch\.p4:\d+:\d+: \S", str(fault)) for fault in faults)


def test_mutations_are_of_many_kinds() -> None:
    """No two are of one kind, and there are more than 150."""
    kinds = Counter(one.what for one in MUTATIONS)
    assert max(kinds.values()) == 1
    assert len(kinds) > 150
