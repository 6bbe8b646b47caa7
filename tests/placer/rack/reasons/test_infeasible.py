"""Why chains do not fit: each change that is named is enough, and a little less is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from placer.rack.chain import Chain
from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.place import exact_plan
from placer.rack.plan import Limit, LimitChange, Status
from placer.rack.rack import Rack
from placer.rack.reasons.infeasible import Infeasible, explain_infeasible
from tests.placer.rack import lemur


def changed(chains: Sequence[Chain], rack: Rack, change: LimitChange, factor: float) -> tuple[list[Chain], Rack]:
    """The instance with a change, scaled by a factor; of whole numbers one less instead."""
    to = Fraction(change.to) * Fraction(factor)
    kind, of = change.limit.kind, change.limit.of
    if kind in ("t_min", "d_max"):
        key = "t_min_mbps" if kind == "t_min" else "d_max_us"
        return [replace(one, slo=replace(one.slo, **{key: to})) if one.name == of else one for one in chains], rack
    if kind == "blocks":
        blocks = int(change.to) - (factor < 1)
        return list(chains), replace(rack, switch=replace(rack.switch, blocks_per_stage=blocks))
    servers = []
    for server in rack.servers:
        if server.name == of and kind == "nic_mbps":
            server = replace(server, nic_mbps=to)
        elif server.name == of:
            server = replace(server, cores=int(change.to) - (factor < 1))
        servers.append(server)
    return list(chains), replace(rack, servers=tuple(servers))


def feasible(chains: Sequence[Chain], rack: Rack) -> bool:
    return exact_plan(chains, rack).status is not Status.INFEASIBLE


@pytest.mark.parametrize(("numbers", "delta"), [((1, 2, 3, 4), 2.5), ((1, 2, 3, 4), 4), ((1, 3, 4), 3.5)])
def test_each_change_is_enough_and_a_little_less_is_not(numbers: tuple[int, ...], delta: float) -> None:
    """Lemur's chains that do not fit one server."""
    chains, rack = lemur.chains(numbers, delta), lemur.rack()
    changes = list(Infeasible(chains, rack).relaxations())
    assert {change.limit.kind for change in changes} >= {"cores"}
    for change in changes:
        assert feasible(*changed(chains, rack, change, 1.0)), change
        less = 1.01 if change.limit.kind == "t_min" else 0.99
        assert not feasible(*changed(chains, rack, change, less)), change


def test_a_latency_that_no_layout_keeps_is_raised_to_the_least_one() -> None:
    """Dedup runs on a server only: two crossings of 6 us, and Dedup, ACL and Limiter on the server are the least."""
    (chain,) = lemur.chains((3,), 0.5)
    chain = replace(chain, slo=replace(chain.slo, d_max_us=Fraction(20)))
    plan = explain_infeasible(exact_plan([chain], lemur.rack()), [chain])
    assert plan.conflict == (Limit("d_max", "chain3"),)
    (change,) = plan.changes
    assert change.limit == Limit("d_max", "chain3")
    assert change.to == pytest.approx(12 + (33_186 + 985 + 20) / 1700)


def test_a_slow_nic_is_named() -> None:
    """A chain of one NF at 1 Gbps needs a NIC of 1 Gbps in each direction."""
    chains = chains_of(
        {"chains": [{"name": "c", "t_min_mbps": 1000, "t_max_mbps": 1000, "nfs": [{"id": "a", "nf": "A"}]}]}, "chains"
    )
    server = {"name": "s", "cores": 4, "clock_mhz": 2000, "nic_mbps": 500}
    rack = rack_of({"switch": {}, "servers": [server], "nfs": {"A": {"server": {"cycles": 100}}}}, "rack")
    plan = explain_infeasible(exact_plan(chains, rack), chains)
    assert plan.conflict == (Limit("t_min", "c"), Limit("nic_mbps", "s"))
    by_kind = {change.limit.kind: change.to for change in plan.changes}
    assert by_kind["t_min"] == pytest.approx(500) and by_kind["nic_mbps"] == pytest.approx(1000, rel=1e-3)


def test_no_core_is_enough_where_an_nf_runs_nowhere() -> None:
    """Then nothing is enough, and no limit is in conflict."""
    chains = chains_of(
        {"chains": [{"name": "c", "t_min_mbps": 1, "t_max_mbps": 1, "nfs": [{"id": "a", "nf": "A"}]}]}, "chains"
    )
    rack = rack_of({"switch": {}, "servers": [], "nfs": {"A": {"server": {"cycles": 100}}}}, "rack")
    plan = explain_infeasible(exact_plan(chains, rack), chains)
    assert plan.status is Status.INFEASIBLE and plan.changes == plan.conflict == ()
