"""Workloads and chains as keys, here and in other processes."""

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles import (
    ChainLoad,
    ConfiguredWorkload,
    GpuSettings,
    GpuWorkload,
    Minibatch,
    NfStage,
    TrafficProfile,
    Workload,
)
from profiles.chain import parse_chain, stages_text

NAT = Workload("NAT", TrafficProfile(1000, 64, 0))


def test_equal_workloads_are_one_key() -> None:
    """Whichever way they were made; another NF or traffic is another key."""
    for same in (Workload("NAT", TrafficProfile(1000.0, 64.0)), pickle.loads(pickle.dumps(NAT)), replace(NAT)):
        assert {NAT: 1}[same] == 1
    assert replace(NAT, nf="ACL") not in {NAT: 1}
    assert replace(NAT, traffic=TrafficProfile(1001, 64, 0)) not in {NAT: 1}


def test_a_workload_of_another_process_is_the_same_key() -> None:
    """Python hashes text differently in every process."""
    code = (
        "import pickle, sys; from profiles import TrafficProfile, Workload;"
        "sys.stdout.buffer.write(pickle.dumps(Workload('NAT', TrafficProfile(1000, 64, 0))))"
    )
    for seed in ("1", "2"):
        made = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        assert {NAT: 1}[pickle.loads(made.stdout)] == 1


def test_a_workload_has_six_fields_and_is_frozen() -> None:
    """The hash is none of them."""
    offered = {"rate_kpps": inf, "cores": 0, "latency_us": inf, "latency_statistic": "p99"}
    assert asdict(NAT) == {"nf": "NAT", "traffic": {"flows": 1000, "packet_size": 64, "mtbr": 0}, **offered}
    with pytest.raises(FrozenInstanceError):
        NAT.nf = "ACL"  # type: ignore[misc]
    assert not hasattr(NAT, "__dict__")


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
    assert chain.as_request()["shares"] == [0.5] and chain.as_request()["rate_kpps"] == 7


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


# Chains as people write them.


names = st.text(
    st.characters(blacklist_characters=",:|= ", blacklist_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), min_size=1
)
stages = st.lists(
    st.builds(NfStage.of, names, st.dictionaries(names, st.integers(-(10**6), 10**6), max_size=2)),
    min_size=1,
    max_size=4,
)


def test_stages_have_their_parameters() -> None:
    """Spaces around a stage do not matter."""
    parsed, cores = parse_chain("ACL:rules=1024:denied_pct=0.5, NAT")
    assert parsed == (NfStage.of("ACL", {"rules": 1024, "denied_pct": 0.5}), NfStage("NAT")) and cores is None


def test_a_bar_begins_the_next_core() -> None:
    assert parse_chain("a,b|c|d,e")[1] == ((0, 1), (2,), (3, 4))


@given(stages)
def test_what_is_written_is_read_again(chain: list[NfStage]) -> None:
    """Names without separators, and whole numbers."""
    assert parse_chain(stages_text(chain)) == (tuple(chain), None)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", "a stage is empty"),
        ("a,,b", "a stage is empty"),
        ("a|", "a stage is empty"),
        ("a:rules", "'rules' is not of the form NAME=NUMBER"),
        ("a:=1", "'=1' is not of the form NAME=NUMBER"),
        ("a:rules=many", "'rules=many' is not of the form NAME=NUMBER"),
        ("a:rules=nan", "'rules=nan' is not of the form NAME=NUMBER"),
        ("a:rules=1:rules=2", "a has rules twice"),
        (",a:x", "a stage is empty; 'x' is not of the form NAME=NUMBER"),  # all faults at once
    ],
)
def test_what_is_no_chain_is_refused_with_every_fault(text: str, faults: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_chain(text)
    assert str(raised.value) == faults


def test_a_paced_workload_writes_what_is_set() -> None:
    """Rate and settings; what is absent stays away."""
    assert replace(NAT, rate_kpps=5.5).as_request() == {**NAT.as_request(), "rate_kpps": 5.5}
    gpu = GpuSettings.of([(0, 3), (4, 2)], order=1, flush_us=90.0)
    assert gpu == GpuSettings(5, 1, (Minibatch(0, 3), Minibatch(4, 2)), 90.0)
    assert GpuWorkload(replace(NAT, rate_kpps=5.5), gpu).as_request()["gpu"] == {
        "batch": 5,
        "order": 1,
        "flush_us": 90.0,
        "minibatches": [{"sm": 0, "packets": 3}, {"sm": 4, "packets": 2}],
    }
    assert GpuSettings(7, None, scheduler="temporal").as_request() == {"batch": 7, "scheduler": "temporal"}


def test_a_paced_workload_is_known_by_its_nf_and_traffic() -> None:
    """Equal ones are one key."""
    one, other = (GpuWorkload(replace(NAT, rate_kpps=5.5), GpuSettings.of([(0, 3)], order=1)) for _ in range(2))
    assert (one.nf, one.label, one.traffic) == ("NAT", "NAT", NAT.traffic) and {one: 1}[other] == 1
