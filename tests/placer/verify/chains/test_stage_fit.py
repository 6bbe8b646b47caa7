"""Whether tables fit the stages of a switch, as the check decides it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.rack.files.json_twins import chains_of, rack_of
from placer.verify.chains.stage_fit import fits
from tests.placer.rack.small import chain, rack
from tests.placer.rack.table_search import fits_stages


@given(
    st.lists(st.text("ABCD", min_size=1, max_size=5), min_size=1, max_size=3),
    st.integers(0, 6),
    st.integers(1, 4),
)
def test_it_fits_if_an_exact_search_says_so(kinds: list[str], stages: int, most: int) -> None:
    """Tables of 0 to 3 blocks, in chains."""
    chains = chains_of({"chains": [chain(f"c{at}", one) for at, one in enumerate(kinds)]}, "chains")
    nfs = {kind: {"switch": {"blocks": blocks}} for blocks, kind in enumerate("ABCD")}
    on = rack_of(rack(nfs, switch={"stages": stages, "blocks_per_stage": most}), "rack")
    tables = [(number, nf) for number, one in enumerate(kinds) for nf in range(len(one))]
    blocks = {table: "ABCD".index(kinds[table[0]][table[1]]) for table in tables}
    before = {(number, nf): {(number, nf - 1)} if nf else set() for number, nf in tables}
    assert fits(chains, on, tables) == fits_stages(blocks, before, stages, most)


@pytest.mark.parametrize(("on_switch", "fit"), [(2, False), (3, True)])
def test_stages_for_encapsulation_are_taken_only_where_packets_cross(on_switch: int, fit: bool) -> None:
    """Three in a row fit three stages; two of them do not fit the one that encapsulation leaves."""
    chains = chains_of({"chains": [chain("a", "XXX")]}, "chains")
    switch = {"stages": 3, "blocks_per_stage": 1}
    on = rack_of(rack({"X": {"switch": {"blocks": 1}}}, switch=switch, overheads={"stages": 2}), "rack")
    assert fits(chains, on, [(0, nf) for nf in range(on_switch)]) is fit


def test_a_question_that_takes_too_long_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a cut is not accepted, and a plan is not said to fit."""
    blocks = (5, 4, 3, 3, 3, 2)  # 5 + 3 + 2 and 4 + 3 + 3, which is not what taking the largest first finds
    nfs = {f"X{one}": {"switch": {"blocks": one}} for one in blocks}
    each = [chain(f"c{at}", "X", nfs=[{"id": "f0", "nf": f"X{one}"}]) for at, one in enumerate(blocks)]
    chains = chains_of({"chains": each}, "chains")
    on = rack_of(rack(nfs, switch={"stages": 2, "blocks_per_stage": 10}), "rack")
    tables = [(at, 0) for at in range(len(blocks))]
    assert fits(chains, on, tables) is True
    monkeypatch.setattr("placer.verify.chains.stage_fit.MOST_STATES", 3)
    assert fits(chains, on, tables) is None
