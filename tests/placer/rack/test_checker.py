"""The checker names each fault of an answer."""

from collections.abc import Callable
from copy import deepcopy

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.placer.rack import instances
from tests.placer.rack.checker import faults
from tests.placer.rack.exhaustive import best_rates
from tests.placer.rack.small import ON_SERVER, ON_SWITCH, Json, chain, rack, server
from tests.placer.rack.test_best_plan import answer_of

SMARTNIC = {"name": "n0", "cores": 1, "clock_mhz": 1000}
RACK = rack(
    {
        "Match": ON_SWITCH | ON_SERVER,
        "Encrypt": ON_SERVER,
        "Limiter": {"server": {"cycles": 20, "replicable": False}, "smartnic": {"cycles": 100, "replicable": False}},
    },
    server("s0", nic_mbps=20_000, smartnic=SMARTNIC),
    server("s1"),
    switch={"stages": 1, "blocks_per_stage": 2},
    crossing_us=6,
)
CHAIN = chain("a", "XXXX", t_min_mbps=600, d_max_us=14) | {
    "nfs": [
        {"id": "in", "nf": "Match"},
        {"id": "enc", "nf": "Encrypt"},
        {"id": "lim", "nf": "Limiter"},
        {"id": "out", "nf": "Match"},
    ],
    "edges": [["in", "enc", 1], ["enc", "lim", "1"], ["lim", "out", 1]],
}
ANSWER = {
    "status": "optimal",
    "proven": True,
    "marginal_mbps": 19_400,
    "bound_mbps": 19_400,
    "seconds": 0.1,
    "chains": [
        {
            "name": "a",
            "rate_mbps": 20_000,
            "latency_us": 13.1,
            "placement": {"in": "switch", "enc": "s0", "lim": "n0", "out": "switch"},
            "subgroups": [{"on": "s0", "nfs": ["enc"], "cores": 2}, {"on": "n0", "nfs": ["lim"], "cores": 1}],
        }
    ],
    "conflict": [],
    "relaxations": [],
}
LimitChange = Callable[[Json, Json, Json], object]


def test_a_sound_answer_has_no_fault() -> None:
    """Two cores at 12,000 Mbps, a NIC of 20,000, 12 us of crossings and 1.1 us of cycles."""
    assert faults({"chains": [CHAIN]}, RACK, ANSWER) == []


def _rate(answer: Json, mbps: float) -> None:
    answer["chains"][0]["rate_mbps"] = mbps
    answer["marginal_mbps"] = answer["bound_mbps"] = mbps - 600


def _cores(answer: Json, group: int, cores: object) -> None:
    answer["chains"][0]["subgroups"][group]["cores"] = cores


def _at(answer: Json, site: str, nf: str = "enc", group: int = 0) -> None:
    answer["chains"][0]["placement"][nf] = site
    answer["chains"][0]["subgroups"][group]["on"] = site


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        # of the answer
        (lambda _, __, answer: answer.update(status="best"), "status best is none of"),
        (lambda _, __, answer: answer.update(proven=False), "status optimal with proven False"),
        (lambda _, __, answer: answer.update(status="feasible"), "status feasible with proven True"),
        (lambda _, __, answer: answer.update(status="infeasible"), "status infeasible with chains"),
        (lambda _, __, answer: answer.update(chains=[]), "the placed chains are not those that were asked for"),
        (lambda _, __, answer: answer.update(chains=answer["chains"] * 2), "the placed chains are not those"),
        (lambda _, __, answer: answer.update(marginal_mbps=20_000, bound_mbps=20_000), "marginal 20000.0 is 19400.0"),
        (lambda _, __, answer: answer.update(bound_mbps=19_399), "marginal 19400.0 is above the bound 19399.0"),
        (lambda _, __, answer: answer.update(bound_mbps=19_401), "optimal, and the bound 19401.0 is above"),
        # of where NFs are
        (lambda _, __, answer: answer["chains"][0]["placement"].pop("in"), "a: places other NFs than it has"),
        (lambda _, __, answer: _at(answer, "s9"), "a: enc is on s9, which the rack has not"),
        (lambda _, __, answer: _at(answer, "switch"), "a: enc cannot run on switch"),
        (lambda _, __, answer: _at(answer, "n0"), "a: enc cannot run on n0"),
        # of rates and latency
        (lambda _, __, answer: _rate(answer, 599), "a: rate 599.0 is below t_min 600.0"),
        (lambda chain, _, __: chain.update(t_max_mbps=19_999), "a: rate 20000.0 is above t_max 19999.0"),
        (lambda _, __, answer: answer["chains"][0].update(latency_us=13), "a: latency 13 is 13.1"),
        (lambda chain, _, __: chain.update(d_max_us=13), "a: latency 13.1 is above d_max 13"),
        (lambda _, rack, __: rack.update(crossing_us=5), "a: latency 13.1 is 11.1"),
        (lambda _, __, answer: _at(answer, "s1"), "a: latency 13.1 is 25.1"),
        # of subgroups
        (lambda _, __, answer: answer["chains"][0]["subgroups"].pop(), "a: the subgroups are not the connected NFs"),
        (lambda _, __, answer: answer["chains"][0]["subgroups"][0].update(on="s1"), "a: the subgroups are not"),
        (lambda _, __, answer: _cores(answer, 0, 1.5), "a: subgroup enc on s0 has 1.5 cores"),
        (lambda _, __, answer: _cores(answer, 0, 0), "a: subgroup enc on s0 has 0 cores"),
        (lambda _, __, answer: _cores(answer, 0, 1), "a: subgroup enc on s0 needs 1.6666666666666667 cores, not 1"),
        (lambda _, __, answer: _cores(answer, 1, 2), "a: subgroup lim on n0 has 2 cores, and lim is not replicable"),
        (lambda _, rack, __: rack["overheads"].update(subgroup_cycles=341), "subgroup enc on s0 needs 2.00"),
        (lambda _, rack, __: rack["overheads"].update(replica_cycles=341), "subgroup enc on s0 needs 2.00"),
        # of the rack
        (lambda _, __, answer: _cores(answer, 0, 5), "s0: 5 cores are used, of 4"),
        (lambda _, rack, __: rack["servers"][0].update(reserved_cores=3), "s0: 2 cores are used, of 1"),
        (lambda _, rack, __: rack["servers"][0].update(nic_mbps=19_999), "s0: its NIC carries 20000.0 Mbps in"),
        (lambda _, __, answer: _at(answer, "s1"), "s0: its NIC carries 20000.0 Mbps out"),
        (lambda _, rack, __: rack["switch"].update(blocks_per_stage=1), "switch: the 2 tables do not fit 1 stages"),
        (lambda _, rack, __: rack["switch"].update(reserved_stages=1), "switch: the 2 tables do not fit 0 stages"),
        (lambda _, rack, __: rack["overheads"].update(stages=1), "switch: the 2 tables do not fit 0 stages"),
        (
            lambda _, rack, __: rack["switch"].update(kind="openflow", table_order=["Limiter"]),
            "a: its NFs on the switch do not follow the order",
        ),
    ],
)
def test_a_fault_is_named(change: LimitChange, fault: str) -> None:
    """One change of a sound instance or answer."""
    one, on, answer = deepcopy(CHAIN), deepcopy(RACK) | {"overheads": {}}, deepcopy(ANSWER)
    if "Mbps out" in fault:
        on["servers"][0]["nic_mbps"] = 19_000
    change(one, on, answer)
    found = faults({"chains": [one]}, on, answer)
    assert any(fault in each for each in found), found


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
    nfs = {"P": ON_SWITCH, "X": ON_SERVER}
    on = rack(nfs, switch={"stages": 1, "blocks_per_stage": 9})
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
