"""Any strategy on any small instance: its plan keeps every limit, and is never better than the proven optimum."""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.place import best_plan
from placer.rack.plan import RackPlan, Status
from placer.rack.strategies import CHAIN_STRATEGIES

RIVALS = [name for name in CHAIN_STRATEGIES if name != "optimal"]
KINDS = "ABCD"
ABOVE = 1 + 1e-8


@st.composite
def racks(draw: st.DrawFn) -> dict[str, Any]:
    """One server, perhaps with a SmartNIC, and four kinds of NF that run in some places."""
    servers = []
    for number in range(1):
        server: dict[str, Any] = {
            "name": f"s{number}",
            "cores": draw(st.integers(1, 5)),
            "clock_mhz": 1000,
            "nic_mbps": draw(st.sampled_from([1500, 4000])),
        }
        if draw(st.booleans()):
            server["smartnic"] = {"name": f"n{number}", "cores": draw(st.integers(1, 2)), "clock_mhz": 800}
        servers.append(server)
    nfs: dict[str, Any] = {}
    for kind in KINDS:
        cost = {"cycles": draw(st.integers(100, 2000)), "replicable": draw(st.booleans())}
        places = draw(st.lists(st.sampled_from(["server", "switch", "smartnic"]), unique=True))
        nfs[kind] = {"server": cost} | {
            place: {"blocks": 1} if place == "switch" else cost for place in places if place != "server"
        }
    overheads = {"subgroup_cycles": draw(st.sampled_from([0, 220])), "replica_cycles": draw(st.sampled_from([0, 180]))}
    stages = draw(st.sampled_from([None, 1, 3]))
    switch = {"stages": stages, "blocks_per_stage": 2}
    return {"switch": switch, "crossing_us": 5, "servers": servers, "nfs": nfs, "overheads": overheads}


@st.composite
def chains(draw: st.DrawFn) -> dict[str, Any]:
    """One or two chains of one to four NFs; some branch."""
    found = []
    for number in range(draw(st.integers(1, 2))):
        kinds = draw(st.text(KINDS, min_size=1, max_size=4))
        edges = [[f"f{at}", f"f{at + 1}"] for at in range(len(kinds) - 1)]
        if len(kinds) == 4 and draw(st.booleans()):
            edges = [["f0", "f1", "1/3"], ["f0", "f2", "2/3"], ["f1", "f3"], ["f2", "f3"]]
        found.append({
            "name": f"c{number}", "packet_size": 125, "edges": edges,
            "t_min_mbps": draw(st.sampled_from([0, 100, 600])), "t_max_mbps": draw(st.sampled_from([900, 100_000])),
            "d_max_us": draw(st.sampled_from([None, 13, 30])),
            "nfs": [{"id": f"f{at}", "nf": kind} for at, kind in enumerate(kinds)],
        })  # fmt: skip
    return {"chains": found}


def assert_kept(plan: RackPlan) -> None:
    """SLOs, cores and NICs."""
    used = [0] * len(plan.rack.devices)
    carried: dict[tuple[int, str], float] = {}
    for one in plan.chains:
        slo = one.chain.slo
        assert float(slo.t_min_mbps) <= one.rate_mbps * ABOVE and one.rate_mbps <= float(slo.t_max_mbps) * ABOVE
        assert slo.d_max_us is None or float(one.layout.latency_us) <= float(slo.d_max_us) * ABOVE
        for group, cores in one.subgroups:
            used[group.device] += cores
            rate = group.rate(cores, plan.rack.devices[group.device], one.chain.packet_bits)
            assert cores == 1 or (cores > 1 and group.cycles_of_replicas is not None)
            assert rate is None or one.rate_mbps <= float(rate) * ABOVE
        for name, share in one.layout.nic_shares.items():
            carried[name] = carried.get(name, 0.0) + one.rate_mbps * float(share)
    assert all(cores <= device.cores for cores, device in zip(used, plan.rack.devices, strict=True))
    assert all(mbps <= float(plan.rack.servers[server].nic_mbps) * ABOVE for (server, _), mbps in carried.items())


@settings(max_examples=10, deadline=None, phases=[Phase.generate])
@given(on=racks(), which=chains())
def test_plans_keep_every_limit_and_none_is_above_the_optimum(on: dict[str, Any], which: dict[str, Any]) -> None:
    """And an instance that is infeasible is placed by none."""
    read, rack = chains_of(which, "chains"), rack_of(on, "rack")
    best = best_plan(read, rack, time_limit=5)
    assert_kept(best)
    assert best.status in (Status.OPTIMAL, Status.INFEASIBLE)
    for strategy in RIVALS:
        plan = CHAIN_STRATEGIES[strategy](read, rack, time_limit=5, notify=print)
        assert_kept(plan)
        if plan.chains:
            assert best.chains and plan.marginal_mbps <= best.marginal_mbps + 1e-6 * max(best.marginal_mbps, 1.0)
        else:
            assert plan.notes and plan.status is Status.UNKNOWN
