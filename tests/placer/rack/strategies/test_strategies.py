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


C = chain("c", "B A B")
THREE = [chain(f"c{at}", "B A B") for at in range(3)]
OFF_SWITCH, BOUNCED = ["s0", "s0", "s0"], ["s0", "switch", "s0"]


@pytest.mark.parametrize(
    ("strategy", "chains", "more", "places", "given", "mbps"),
    [
        # B A B makes two subgroups; four spare cores go to the slowest in turn
        ("hardware-preferred", [C], {}, [BOUNCED], [(3, 3)], [1500]),
        ("hardware-preferred", [chain("c", "A S B")], {"smartnic": True}, [["switch", "n0", "s0"]], None, None),
        ("hardware-preferred", THREE, {"servers": 3}, [[f"s{at}", "switch", f"s{at}"] for at in range(3)], None, None),
        # an NF that cannot be replicated gets no spare core
        ("hardware-preferred", [chain("c", "One"), chain("d", "B")], {}, [["s0"]] * 2, [(1,), (5,)], None),
        ("software-preferred", [C, chain("d", "A")], {}, [OFF_SWITCH, ["s0"]], [(3,), (3,)], None),
        # the switch is used where that makes no subgroup more
        ("minimum-bounce", [chain("c", "A B A B A")], {}, [["switch", *OFF_SWITCH, "switch"]], [(6,)], None),
        # d needs three cores for 1,500 Mbps; c takes the three that are left; without least rates the first is first
        ("greedy", [chain("c", "B", 200), chain("d", "B", 1500)], {}, [["s0"]] * 2, [(3,), (3,)], None),
        ("greedy", [chain("c", "B"), chain("d", "B")], {}, [["s0"]] * 2, [(5,), (1,)], None),
        # B, Cheap and Light take 2,200 cycles on two cores, B alone 2,000 on one: six cores carry 2,727 Mbps
        ("lemur", [chain("c", "B Cheap Light")], {}, [OFF_SWITCH], [(6,)], [pytest.approx(2727, abs=1)]),
        ("greedy", [chain("c", "B Cheap Light")], {}, [BOUNCED], None, [2500]),
        # B with One and A would be 4,000 cycles on a single core
        ("lemur", [chain("c", "B A One")], {}, [BOUNCED], None, [1000]),
        # four crossings of 5 us are too long; the aggressive placement has two
        ("lemur", [chain("c", "B A B", d_max=23)], {}, [OFF_SWITCH], None, [1200]),
        # one stage holds one of two tables; Cheap takes fewer cycles than A
        ("lemur", [chain("c", "A"), chain("d", "Cheap")], {"stages": 1}, [["switch"], ["s0"]], None, None),
        # six cores for B with 2,000 cycles and Cheap with 100: three each; lemur leaves one for Cheap
        ("no-profiling", [chain("c", "B", 1000), chain("d", "Cheap B")], {}, None, [(3,), (3,)], None),
        ("no-core-allocation", [C], {}, None, [(1, 1)], [500]),
        # with A on the server one subgroup has all six cores: 1,200 Mbps; apart they reach 1,500 Mbps
        ("optimal", [C], {}, None, None, [1500]),
        ("optimal", [chain("c", "B A B", d_max=23)], {}, None, None, [1200]),
    ],
)
def test_a_strategy_gives_places_and_cores(
    strategy: str, chains: list[Any], more: Any, places: Any, given: Any, mbps: Any
) -> None:
    found = plan(strategy, *chains, **more)
    assert places is None or sites(found) == places
    assert given is None or [one.cores for one in found.chains] == given
    assert mbps is None or [one.rate_mbps for one in found.chains] == mbps


def test_what_a_choice_ignores_is_refused_afterwards() -> None:
    """Latency, stages of the switch, least rates, cores."""
    assert "latency" in plan("hardware-preferred", chain("c", "B A B", d_max=23)).notes[0]
    assert plan("software-preferred", chain("c", "B A B", d_max=23)).chains
    assert "stages" in plan("hardware-preferred", chain("c", "B A B"), stages=0).notes[0]
    assert "stages" in plan("lemur", chain("c", "Fixed"), stages=0).notes[0]
    assert plan("hardware-preferred", chain("c", "B", 200), chain("d", "B", 1600)).notes == (
        "d reaches 1,500.0 Mbps of its t_min, 1,600.0 Mbps",
    )
    slow = chain("c", "B", 2000), chain("d", "Light", 0)
    assert plan("lemur", *slow).chains and "t_min" in plan("no-profiling", *slow).notes[0]
    assert "cores" in plan("hardware-preferred", chain("c", "B A B A B A B A B A B A B")).notes[0]


@pytest.mark.parametrize("strategy", [name for name in CHAIN_STRATEGIES if name != "optimal"])
def test_a_time_limit_ends_the_choice_of_layouts(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first part of a chain's layouts, with a message."""
    monkeypatch.setattr("placer.rack.layout_arrays.PART_LAYOUTS", 4)
    said: list[str] = []
    found = plan(strategy, chain("c", "A A A A"), time_limit=0.0, notify=said.append)
    assert said == ["the time is over: c gets the best of a part of its layouts"]
    assert found.notes or found.chains
