"""Plans for many equal servers: as good as those of each server by itself, and bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placer.rack.chain import Chain
from placer.rack.files.json_twins import chains_of
from placer.rack.place import best_plan, exact_plan
from placer.rack.plan import Status
from placer.rack.rack import Rack
from placer.rack.search.fleet_bound import fleet_bound
from placer.rack.search.fleet_plan import fleet_plan
from tests.placer.rack import lemur


def rack_of_servers(servers: int) -> Rack:
    """Lemur's rack with so many servers."""
    rack = lemur.rack()
    return replace(rack, servers=tuple(replace(rack.servers[0], name=f"s{number}") for number in range(servers)))


def copies(number: int, delta: float) -> tuple[Chain, ...]:
    """So many of each of the chains 1 to 4."""
    names = [(chain, f"{chain}_{copy}") for chain in (1, 2, 3, 4) for copy in range(number)]
    return chains_of({"chains": [lemur.chain_json(chain, delta, name) for chain, name in names]}, "chains")


@pytest.mark.long
@pytest.mark.parametrize("servers", [3, 10])
def test_equal_loads_on_equal_servers_are_proven_optimal(servers: int) -> None:
    """With delta 0.5, each server gives what one server gives by itself, and the bound says that more is impossible."""
    alone = exact_plan(copies(1, 0.5), lemur.rack())
    plan = best_plan(copies(servers, 0.5), rack_of_servers(servers))
    assert plan.status is Status.OPTIMAL
    assert plan.marginal_mbps == pytest.approx(servers * alone.marginal_mbps, rel=1e-9)
    assert len(plan.chains) == 4 * servers


def test_no_device_has_more_cores_than_it_has() -> None:
    """Nor does a NIC carry more than it can, nor has a chain less than its least rate."""
    chains = copies(5, 1.0)
    plan = fleet_plan(chains, rack_of_servers(5))
    cores: dict[int, int] = {}
    loads: dict[tuple[int, str], float] = {}
    for chain, one in zip(chains, plan.chains, strict=True):
        assert one.chain is chain
        assert one.rate_mbps >= float(chain.slo.t_min_mbps) * (1 - 1e-9)
        for group, number in one.subgroups:
            cores[group.device] = cores.get(group.device, 0) + number
            rate = group.rate(number, plan.rack.devices[group.device], chain.packet_bits)
            assert rate is None or one.rate_mbps <= rate * (1 + 1e-9)
        for place, share in one.layout.nic_shares.items():
            loads[place] = loads.get(place, 0.0) + float(share) * one.rate_mbps
    assert max(cores.values()) <= 14
    assert max(loads.values()) <= 40_000 * (1 + 1e-9)


@pytest.mark.parametrize("delta", [0.5, 1.0, 2.0])
def test_the_bound_is_never_below_a_plan(delta: float) -> None:
    """For one server, the exact optimum; for several, the plan."""
    assert (
        fleet_bound(copies(1, delta), lemur.rack()) >= exact_plan(copies(1, delta), lemur.rack()).marginal_mbps - 1e-6
    )
    plan = fleet_plan(copies(4, delta), rack_of_servers(4))
    assert plan.bound_mbps is not None and plan.bound_mbps >= plan.marginal_mbps - 1e-6


def test_too_many_chains_are_infeasible() -> None:
    """Fifteen chains that need a core each do not fit fourteen cores, and the bound says so."""
    chains = chains_of({"chains": [lemur.chain_json(3, 0.5, f"c{number}") for number in range(15 * 3)]}, "chains")
    assert fleet_plan(chains, rack_of_servers(3)).status is Status.INFEASIBLE
