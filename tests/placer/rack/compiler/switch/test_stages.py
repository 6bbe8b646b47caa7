"""Stages of generated programs by our packer, and tables that NFs of a kind share."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.switch.program import SwitchProgram
from placer.rack.compiler.switch.stages import stages_of
from tests.placer.rack.compiler.made_chains import made_chain
from tests.placer.rack.compiler.made_plans import made_plan


def _branched(kinds: list[str | tuple[str, Mapping[str, float]]], *, shares: bool) -> SwitchProgram:
    """A Match with NFs side by side behind it, all on the switch."""
    edges = [(0, at, f"1/{len(kinds)}", "") for at in range(1, len(kinds) + 1)]
    chain = made_chain(["Match", *kinds], edges)
    return compile_rack(made_plan((chain, " ".join(["switch"] * len(chain.nfs)))), "plan", shares=shares).switch


def _in_a_row(kinds: list[str]) -> SwitchProgram:
    return compile_rack(made_plan((made_chain(kinds), " ".join(["switch"] * len(kinds)))), "plan").switch


def test_branches_share_stages_and_rows_do_not() -> None:
    """Ten NATs side by side take 8 stages, ten in a row 30: exclusive branches depend on nothing of one another."""
    assert stages_of(_branched(["NAT"] * 10, shares=False)) == 8
    assert stages_of(_in_a_row(["NAT"] * 10)) == 30


def test_one_table_for_ten_nats_saves_stages() -> None:
    """Their 65,536 endpoints lie in one table, whose key has the NF as well."""
    shared = _branched(["NAT"] * 10, shares=True)
    assert len(shared.tables) == 1
    assert stages_of(shared) == 5


def test_nfs_with_other_constants_do_not_share() -> None:
    """LBs with the same seed hash alike and share a table; those with different ones do not."""
    alike = ("LB", {"seed": 1.0, "table": 8.0})
    other = ("LB", {"seed": 2.0, "table": 8.0})
    assert len(_branched([alike, alike], shares=True).tables) == 1
    assert len(_branched([alike, other], shares=True).tables) == 2


@pytest.mark.parametrize("shares", [False, True])
def test_entries_of_all_nfs_are_in_the_shared_table(shares: bool) -> None:
    """ACLs with different filters share; each entry is of one of them."""
    acls: list[str | tuple[str, Mapping[str, float]]] = [("ACL", {"rules": 8.0, "seed": float(at)}) for at in (1, 2, 3)]
    tables = _branched(acls, shares=shares).tables
    assert len(tables) == (1 if shares else 3)
    nodes = {entry.key[-1] for table in tables for entry in table.entries}
    assert not shares or nodes == {(2, 0xFFFF), (3, 0xFFFF), (4, 0xFFFF)}
