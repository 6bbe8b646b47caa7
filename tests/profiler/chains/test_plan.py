"""Which chains are measured, on which cores."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.chains.plan import MOST_PLACEMENTS, ChainOnCores, ChainRequest, draw_orders, place_chains, placements
from profiles import InputError, NfStage
from tests.profiler.toy_server import server_description

TOY = server_description()
GATE, CODER = NfStage("gate"), NfStage("coder")


def planned(*chains: str, **other: object) -> list[ChainOnCores]:
    return place_chains(ChainRequest(chains, **other), TOY, 0)  # type: ignore[arg-type]


def test_a_chain_is_placed_on_one_core_and_on_two() -> None:
    """After each of its NFs alone."""
    assert planned("gate,coder") == [
        ChainOnCores((GATE,), ((0,),)),
        ChainOnCores((CODER,), ((0,),)),
        ChainOnCores((GATE, CODER), ((0, 1),)),
        ChainOnCores((GATE, CODER), ((0,), (1,))),
    ]


def test_a_placement_of_the_user_is_the_only_one() -> None:
    """A bar begins the next core; parameters stay with their NF, which is measured with them alone, too."""
    few = NfStage.of("gate", {"rules": 2})
    assert planned("gate:rules=2,coder|gate")[3:] == [ChainOnCores((few, CODER, GATE), ((0, 1), (2,)))]
    assert planned("gate:rules=2,coder|gate")[0] == ChainOnCores((few,), ((0,),))


def test_no_more_cores_are_used_than_allowed() -> None:
    """The NIC has four; a user may allow fewer."""
    assert max(len(one.cores) for one in planned("gate,gate,gate,gate,gate")) == 4
    assert max(len(one.cores) for one in planned("gate,gate,gate", most_cores=2)) == 2


def test_shares_are_combined_over_cores() -> None:
    """All of it is written as no share; each combination is measured."""
    found = [one.shares for one in planned("gate|coder", shares=(1.0, 0.5)) if len(one.cores) == 2]
    assert sorted(found) == [(), (0.5, 0.5), (0.5, 1.0), (1.0, 0.5)]


def test_a_chain_that_is_named_twice_is_measured_once() -> None:
    assert planned("gate,coder", "gate,coder") == planned("gate,coder")


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 5))
def test_placements_have_each_stage_once_in_order(stages: int, most: int, seed: int) -> None:
    """The first is run to completion; with enough cores the last has a core per stage; there are not too many."""
    found = placements(stages, most, seed)
    assert found[0] == (tuple(range(stages)),) and len(found[-1]) == min(stages, most)
    assert len(found) <= MOST_PLACEMENTS and len(set(found)) == len(found)
    for cores in found:
        assert [stage for core in cores for stage in core] == list(range(stages)) and len(cores) <= most


def test_three_stages_have_four_placements() -> None:
    assert placements(3, 3, 0) == [((0, 1, 2),), ((0,), (1, 2)), ((0, 1), (2,)), ((0,), (1,), (2,))]


@settings(max_examples=25)
@given(st.integers(2, 3), st.integers(1, 60), st.integers(0, 9))
def test_orders_are_drawn_evenly_and_grow_with_their_number(length: int, count: int, seed: int) -> None:
    """No NF is in one by more than a few orders than another; fewer orders are the first of more."""
    nfs = list("abcdefg")
    drawn = draw_orders(nfs, length, count, seed)
    assert draw_orders(nfs, length, count + 1, seed)[:count] == drawn
    assert len(set(drawn)) == len(drawn) and all(len(set(order)) == length for order in drawn)
    used = Counter(nf for order in drawn for nf in order)
    if len(drawn) == count:
        assert max(used.values()) - min(used[nf] for nf in nfs) <= 2


def test_nfs_that_chains_cannot_name_are_not_drawn() -> None:
    """A comma separates stages, so an NF with a comma in its name is left out."""
    described = server_description(nfs=[{"name": name, "cores": 1} for name in ("a,b", "c", "d|e", "f")])
    drawn = place_chains(ChainRequest(drawn=["pairs"]), described, 0)
    assert {stage.nf for one in drawn for stage in one.stages} == {"c", "f"}


def test_all_orders_are_drawn_where_there_are_no_more() -> None:
    """Three NFs have six pairs."""
    assert len(draw_orders(["a", "b", "c"], 2, 100, 0)) == 6


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (ChainRequest(["gate,oder"]), "--chain: 'gate,oder': the testbed has no oder\nhint: did you mean coder?"),
        (ChainRequest(["gate,,coder"]), "--chain: 'gate,,coder': a stage is empty\nhint: as in"),
        (ChainRequest(["gate:rules"]), "'rules' is not of the form NAME=NUMBER"),
        (ChainRequest(["gate:rules=1000"]), "chain gate: stage 0: rules 1000 is outside [1, 100]"),
        (ChainRequest(["coder:rules=1"]), "chain coder: stage 0: coder has no parameter rules"),
        (ChainRequest(["gate|gate|gate"], most_cores=2), "'gate|gate|gate' needs 3 cores, 2 are allowed"),
        (
            ChainRequest(drawn=["quadruples"]),
            "--chains: 'quadruples' is not understood\nhint: it is one of pairs, triples",
        ),
        (ChainRequest(drawn=["pairs"], nfs=["gate", "x"]), "--nf: the testbed has no x"),
        (ChainRequest(drawn=["triples"]), "--chains: triples need 3 different NFs, there are 2"),
        (ChainRequest(["gate"], shares=[0, 2]), "--share: 0 is not above 0 and at most 1\n--share: 2 is not"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(plan: ChainRequest, message: str) -> None:
    with pytest.raises(InputError) as raised:
        place_chains(plan, TOY, 0)
    assert message in str(raised.value)
