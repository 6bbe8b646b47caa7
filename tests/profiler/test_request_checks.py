"""Requests that no testbed of a description can run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from profiler.protocol.request_checks import refusals
from profiler.simulated import SimulatedServer
from profiles import ChainLoad, ConfiguredWorkload, Load, NfStage, TrafficProfile, Workload
from tests.profiler.toy_testbed import description

SERVER = SimulatedServer().describe()
TRAFFIC = SERVER.traffic


def chain(stages: Sequence[str | NfStage], cores: Sequence[Sequence[int]], **other: object) -> ChainLoad:
    return ChainLoad.of(stages, cores, TRAFFIC, **other)  # type: ignore[arg-type]


def test_chains_of_every_placement_are_accepted() -> None:
    """Run to completion, a pipeline, stages of one core apart, shares of cores, and an NF with parameters."""
    accepted: list[Load] = [
        chain(["ACL", "NAT"], [[0, 1]]),
        chain(["ACL", "NAT"], [[1], [0]]),
        chain(["ACL", "NAT", "LB"], [[0, 2], [1]], shares=[0.5, 1]),
        chain([NfStage.of("ACL", {"rules": 1024}), "ACL"], [[0, 1]]),
        ConfiguredWorkload.of(Workload("ACL", TRAFFIC), {"rules": 1024}),
    ]
    assert refusals(SERVER, accepted) == []


@pytest.mark.parametrize(
    ("load", "faults"),
    [
        (chain(["ACL", "Firewall"], [[0, 1]]), ["chain ACL,Firewall: stage 1: NF Firewall is not known"]),
        (chain(["ACL", "NAT"], [[0]]), ["chain ACL,NAT: stage 1 (NAT) is on no core"]),
        (chain(["ACL", "NAT"], [[0, 1], [1]]), ["chain ACL,NAT: stage 1 (NAT) is placed 2 times"]),
        (chain(["ACL"], [[0, 0]]), ["chain ACL: stage 0 (ACL) is placed 2 times"]),
        (chain(["ACL"], []), ["chain ACL: has no cores"]),
        (chain(["ACL"], [[0], []]), ["chain ACL: core 1 has no stage"]),
        (chain(["ACL"], [[0, 1]]), ["chain ACL: stage 1 does not exist: there are 1, numbered from 0"]),
        (chain(["ACL"], [[0, -1]]), ["chain ACL: stage -1 does not exist: there are 1, numbered from 0"]),
        (chain(["ACL"] * 17, [[at] for at in range(17)]), ["needs 17 cores, the NIC has 16"]),
        (chain(["ACL"], [[0]], shares=[0]), ["chain ACL: share 0 is not above 0 and at most 1"]),
        (chain(["ACL"], [[0]], shares=[1.5]), ["chain ACL: share 1.5 is not above 0 and at most 1"]),
        (chain(["ACL"], [[0]], shares=[1, 1]), ["chain ACL: has 2 shares for 1 cores"]),
        (chain([NfStage.of("NAT", {"rules": 9})], [[0]]), ["chain NAT: stage 0: NAT has no parameter rules"]),
        (chain([NfStage.of("ACL", {"rules": 0})], [[0]]), ["chain ACL: stage 0: rules 0 is outside [1, 4096]"]),
        (ChainLoad.of(["ACL"], [[0]], TrafficProfile(0, 1500)), ["chain ACL: flows 0 is outside [1, 100000]"]),
        (ConfiguredWorkload.of(Workload("NAT", TRAFFIC), {"rules": 9}), ["NAT has no parameter rules"]),
    ],
)
def test_each_fault_of_a_chain_is_named(load: Load, faults: list[str]) -> None:
    """With the chain, and the stage, core or value that is wrong."""
    assert refusals(SERVER, [load]) == faults


def test_all_faults_of_a_request_are_named_at_once() -> None:
    """So that one answer is enough to correct a request."""
    wrong = chain([NfStage.of("NAT", {"rules": 9}), "Firewall"], [[0], []], shares=[2, 1])
    assert len(refusals(SERVER, [wrong, wrong])) == 2 * 5


def test_a_testbed_without_chains_refuses_them_by_name() -> None:
    """Whatever the chain is."""
    assert refusals(description(), [chain(["ACL"], [[0]])]) == ["chains of NFs are not known to toy"]
