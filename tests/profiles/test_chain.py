"""Chains as the testbed protocol writes them."""

from __future__ import annotations

from profiles import ChainLoad, ConfiguredWorkload, NfStage, TrafficProfile, Workload

TRAFFIC = TrafficProfile(1000, 64, 0)


def test_a_chain_is_written_as_the_protocol_has_it() -> None:
    """Stages with their parameters, the stages of each core, and the offered load; 0 is a closed loop."""
    chain = ChainLoad.of([NfStage.of("ACL", {"rules": 9}), "NAT"], [[0, 1]], TRAFFIC)
    assert chain.as_request() == {
        "kind": "chain",
        "stages": [{"name": "ACL", "parameters": {"rules": 9}}, {"name": "NAT", "parameters": {}}],
        "cores": [[0, 1]],
        "traffic": {"flows": 1000, "packet_size": 64, "mtbr": 0},
        "rate_kpps": 0,
    }


def test_shares_are_written_only_where_there_are_any() -> None:
    """A chain without them has all of its cores."""
    chain = ChainLoad.of(["ACL"], [[0]], TRAFFIC, shares=[0.5], rate_kpps=7)
    assert chain.as_request()["shares"] == [0.5]
    assert chain.as_request()["rate_kpps"] == 7


def test_equal_chains_are_one_key() -> None:
    """Whole numbers and decimals of one value are equal; another order of stages is another chain."""
    chain = ChainLoad.of(["ACL", "NAT"], [[0], [1]], TRAFFIC, rate_kpps=5)
    assert {chain: 1}[ChainLoad.of(["ACL", "NAT"], [[0], [1]], TRAFFIC, rate_kpps=5.0)] == 1
    assert ChainLoad.of(["NAT", "ACL"], [[0], [1]], TRAFFIC, rate_kpps=5) != chain


def test_loads_are_called_by_their_nfs() -> None:
    """An NF with parameters by its name, a chain by all names in order."""
    nf = ConfiguredWorkload.of(Workload("ACL", TRAFFIC), {"rules": 9})
    assert (nf.label, ChainLoad.of(["ACL", "NAT"], [[0, 1]], TRAFFIC).label) == ("ACL", "ACL,NAT")
    assert nf.as_request() == {**Workload("ACL", TRAFFIC).as_request(), "parameters": {"rules": 9}}
