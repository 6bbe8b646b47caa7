"""Each strategy by hand: which NFs it places where, and how it gives out cores."""

from typing import Any

import pytest

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.plan import RackPlan
from placer.rack.strategies import CHAIN_STRATEGIES, Notify

NFS = {
    "A": {"server": {"cycles": 1000}, "switch": {"blocks": 1}},
    "B": {"server": {"cycles": 2000}},
    "S": {"server": {"cycles": 3000}, "smartnic": {"cycles": 500}},
    "Cheap": {"server": {"cycles": 100}, "switch": {"blocks": 1}},
    "Light": {"server": {"cycles": 100}},
    "Fixed": {"switch": {"blocks": 1}},
    "One": {"server": {"cycles": 1000, "replicable": False}},
}


def chain(name: str, nfs: str, t_min: float = 0, d_max: float | None = None) -> dict[str, Any]:
    ids = nfs.split()
    return {
        "name": name, "packet_size": 125, "t_min_mbps": t_min, "t_max_mbps": 100_000, "d_max_us": d_max,
        "nfs": [{"id": f"{nf}{at}", "nf": nf} for at, nf in enumerate(ids)],
        "edges": [[f"{ids[at]}{at}", f"{ids[at + 1]}{at + 1}"] for at in range(len(ids) - 1)],
    }  # fmt: skip


def plan(
    strategy: str,
    *chains: dict[str, Any],
    servers: int = 1,
    smartnic: bool = False,
    time_limit: float = 10.0,
    notify: Notify = print,
    **switch: Any,
) -> RackPlan:
    """Cores of 1 GHz, packets of 1,000 bits: an NF of 1,000 cycles carries 1,000 Mbps a core."""
    all_servers: list[dict[str, Any]] = [
        {"name": f"s{at}", "cores": 6, "clock_mhz": 1000, "nic_mbps": 10_000} for at in range(servers)
    ]
    if smartnic:
        all_servers[0]["smartnic"] = {"name": "n0", "cores": 2, "clock_mhz": 1000}
    rack = rack_of({"switch": switch, "crossing_us": 5, "servers": all_servers, "nfs": NFS}, "rack")
    place = CHAIN_STRATEGIES[strategy]
    return place(chains_of({"chains": list(chains)}, "chains"), rack, time_limit=time_limit, notify=notify)


def sites(found: RackPlan) -> list[list[str]]:
    return [[one.site_name(at) for at in range(len(one.chain.nfs))] for one in found.chains]


def cores(found: RackPlan) -> list[tuple[int, ...]]:
    return [one.cores for one in found.chains]


def test_hardware_preferred_bounces_for_a_switch_and_spreads_cores() -> None:
    """B A B makes two subgroups; four spare cores go to the slowest in turn."""
    found = plan("hardware-preferred", chain("c", "B A B"))
    assert sites(found) == [["s0", "switch", "s0"]] and cores(found) == [(3, 3)]
    assert [one.rate_mbps for one in found.chains] == [1500.0]


def test_hardware_preferred_takes_a_smartnic() -> None:
    assert sites(plan("hardware-preferred", chain("c", "A S B"), smartnic=True)) == [["switch", "n0", "s0"]]


def test_software_preferred_makes_one_subgroup() -> None:
    found = plan("software-preferred", chain("c", "B A B"), chain("d", "A"))
    assert sites(found) == [["s0", "s0", "s0"], ["s0"]] and cores(found) == [(3,), (3,)]


def test_minimum_bounce_uses_the_switch_where_that_makes_no_subgroup_more() -> None:
    found = plan("minimum-bounce", chain("c", "A B A B A"))
    assert sites(found) == [["switch", "s0", "s0", "s0", "switch"]] and cores(found) == [(6,)]


def test_an_nf_that_cannot_be_replicated_gets_no_spare_core() -> None:
    found = plan("hardware-preferred", chain("c", "One"), chain("d", "B"))
    assert cores(found) == [(1,), (5,)]


def test_greedy_serves_the_least_rates_first_and_then_the_first_chain() -> None:
    """d needs three cores for 1,500 Mbps; c takes the three that are left."""
    found = plan("greedy", chain("c", "B", 200), chain("d", "B", 1500))
    assert cores(found) == [(3,), (3,)]
    assert cores(plan("greedy", chain("c", "B"), chain("d", "B"))) == [(5,), (1,)]
    assert plan("hardware-preferred", chain("c", "B", 200), chain("d", "B", 1600)).notes == (
        "d reaches 1,500.0 Mbps of its t_min, 1,600.0 Mbps",
    )


def test_chains_spread_over_servers() -> None:
    found = plan("hardware-preferred", *(chain(f"c{at}", "B A B") for at in range(3)), servers=3)
    assert sites(found) == [[f"s{at}", "switch", f"s{at}"] for at in range(3)]


def test_what_a_choice_ignores_is_refused_afterwards() -> None:
    """Latency, stages of the switch, cores."""
    assert "latency" in plan("hardware-preferred", chain("c", "B A B", d_max=23)).notes[0]
    assert plan("software-preferred", chain("c", "B A B", d_max=23)).chains
    assert "stages" in plan("hardware-preferred", chain("c", "B A B"), stages=0).notes[0]
    assert "cores" in plan("hardware-preferred", chain("c", "B A B A B A B A B A B A B")).notes[0]


def test_lemur_joins_subgroups_where_two_cores_for_both_are_faster() -> None:
    """B, Cheap and Light take 2,200 cycles on two cores, B alone 2,000 on one: six cores carry 2,727 Mbps."""
    found = plan("lemur", chain("c", "B Cheap Light"))
    assert sites(found) == [["s0", "s0", "s0"]] and cores(found) == [(6,)]
    assert plan("greedy", chain("c", "B Cheap Light")).chains[0].rate_mbps == 2500.0


def test_lemur_leaves_subgroups_apart_where_one_has_no_replicas() -> None:
    """B with One and A would be 4,000 cycles on a single core."""
    found = plan("lemur", chain("c", "B A One"))
    assert sites(found) == [["s0", "switch", "s0"]] and found.chains[0].rate_mbps == 1000.0


def test_lemur_joins_subgroups_to_keep_a_latency() -> None:
    """Four crossings of 5 us are too long; the aggressive placement has two."""
    found = plan("lemur", chain("c", "B A B", d_max=23))
    assert sites(found) == [["s0", "s0", "s0"]] and found.chains[0].rate_mbps == 1200.0


def test_lemur_moves_the_nf_with_fewest_cycles_off_a_full_switch() -> None:
    """One stage holds one of two tables; Cheap takes fewer cycles than A."""
    found = plan("lemur", chain("c", "A"), chain("d", "Cheap"), stages=1)
    assert sites(found) == [["switch"], ["s0"]]
    assert "stages" in plan("lemur", chain("c", "Fixed"), stages=0).notes[0]


def test_no_profiling_gives_cores_to_cheap_nfs() -> None:
    """Six cores for B with 2,000 cycles and Cheap with 100: three each; lemur leaves one for Cheap."""
    both = chain("c", "B", 1000), chain("d", "Cheap B", 0)
    assert cores(plan("no-profiling", *both)) == [(3,), (3,)]
    slow = chain("c", "B", 2000), chain("d", "Light", 0)
    assert plan("lemur", *slow).chains and "t_min" in plan("no-profiling", *slow).notes[0]


def test_no_core_allocation_gives_each_subgroup_a_core() -> None:
    found = plan("no-core-allocation", chain("c", "B A B"))
    assert cores(found) == [(1, 1)] and found.chains[0].rate_mbps == 500.0


@pytest.mark.parametrize("strategy", [name for name in CHAIN_STRATEGIES if name != "optimal"])
def test_a_time_limit_ends_the_choice_of_layouts(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first part of a chain's layouts, with a message."""
    monkeypatch.setattr("placer.rack.options.PART_LAYOUTS", 4)
    said: list[str] = []
    found = plan(strategy, chain("c", "A A A A"), time_limit=0.0, notify=said.append)
    assert said == ["the time is over: c gets the best of a part of its layouts"]
    assert found.notes or found.chains


def test_optimal_leaves_the_switch_alone_where_that_saves_cores() -> None:
    """With A on the server one subgroup has all six cores: 1,200 Mbps. Apart they reach 1,500 Mbps."""
    assert plan("optimal", chain("c", "B A B")).chains[0].rate_mbps == 1500.0
    assert plan("optimal", chain("c", "B A B", d_max=23)).chains[0].rate_mbps == 1200.0
