"""The checker of answers; tests/placer/verify/chains/test_tampering.py holds it to what `placer verify` refuses."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.placer.rack import instances
from tests.placer.rack.checker import faults
from tests.placer.rack.exhaustive import best_rates
from tests.placer.rack.small import ON_SERVER, ON_SWITCH, Json, chain, rack
from tests.placer.rack.test_best_plan import answer_of


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"status": "best"}, "status best is none of"),
        ({"proven": False}, "status optimal with proven False"),
        ({"status": "feasible"}, "status feasible with proven True"),
        ({"status": "infeasible"}, "status infeasible with chains"),
        ({"marginal_mbps": 1}, "marginal 1.0 is 40000.0"),
        ({"bound_mbps": 39_999}, "marginal 40000.0 is above the bound 39999.0"),
        ({"bound_mbps": 40_001}, "optimal, and the bound 40001.0 is above"),
    ],
)
def test_an_answer_that_contradicts_itself_is_noticed(change: Json, fault: str) -> None:
    asked, on = {"chains": [chain("a", "X")]}, rack({"X": ON_SERVER})
    best = best_rates(asked, on)
    assert best
    sound = answer_of(best, asked, on)
    assert faults(asked, on, sound) == []
    assert any(each.startswith(fault) for each in faults(asked, on, sound | change))


def test_nfs_that_branch_or_merge_have_one_core() -> None:
    """An NF counts as branching by all its edges: here both branches go to the switch."""
    one = chain("a", "XPP", edges=[["f0", "f1", "1/2"], ["f0", "f2", "1/2"]])
    on = rack({"X": ON_SERVER, "P": ON_SWITCH})
    best = best_rates({"chains": [one]}, on)
    assert best
    answer = answer_of(best, {"chains": [one]}, on)
    assert faults({"chains": [one]}, on, answer) == []
    answer["chains"][0]["subgroups"][0]["cores"] = 2
    assert faults({"chains": [one]}, on, answer) == ["a: subgroup f0 on s0 has 2 cores, and f0 branches or merges"]


def test_tables_follow_one_another_only_along_edges_on_the_switch() -> None:
    """Two tables in a row need two stages; with a server between them, packets pass the switch anew."""
    on = rack({"P": ON_SWITCH, "X": ON_SERVER}, switch={"stages": 1, "blocks_per_stage": 9})
    assert best_rates({"chains": [chain("a", "PXP")]}, on) is not None
    assert best_rates({"chains": [chain("a", "PPX")]}, on) is None


@pytest.mark.long
@given(st.sampled_from([instances.everyday, instances.edges]), st.integers(0, 10**9), st.data())
@settings(max_examples=25, deadline=None)
def test_an_nf_that_is_moved_alone_is_noticed(generator: instances.Generator, seed: int, data: st.DataObject) -> None:
    """Subgroups, latency and tables no longer are those of the placement."""
    chains, on = generator(seed)
    best = best_rates(chains, on)
    assume(best is not None)
    assert best
    answer = answer_of(best, chains, on)
    assert faults(chains, on, answer) == []
    one = data.draw(st.sampled_from(answer["chains"]))
    nf = data.draw(st.sampled_from(sorted(one["placement"])))
    sites = {"switch", *(group["on"] for other in answer["chains"] for group in other["subgroups"]), "s9"}
    one["placement"][nf] = data.draw(st.sampled_from(sorted(sites - {one["placement"][nf]})))
    assert faults(chains, on, answer)
