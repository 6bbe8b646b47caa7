"""What limits a chain, and what a plan uses."""

from __future__ import annotations

from typing import Any

import pytest

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.place import best_plan
from placer.rack.plan import RackPlan
from placer.rack.reasons.layout_verdicts import bottlenecks, rack_use


def plan(t_max: float = 10_000, nic: float = 10_000, cycles: float = 100) -> RackPlan:
    """A, B on the switch and on a server with two cores, of 1 GHz; packets of 1,000 bits."""
    chain: dict[str, Any] = {
        "name": "c", "packet_size": 125, "t_min_mbps": 0, "t_max_mbps": t_max,
        "nfs": [{"id": "x", "nf": "A"}, {"id": "y", "nf": "B"}], "edges": [["x", "y"]],
    }  # fmt: skip
    server = {"name": "s0", "cores": 2, "clock_mhz": 1000, "nic_mbps": nic}
    nfs = {"A": {"switch": {"blocks": 1}}, "B": {"server": {"cycles": cycles}}}
    return best_plan(chains_of({"chains": [chain]}, "c"), rack_of({"servers": [server], "nfs": nfs}, "r"))


@pytest.mark.parametrize(
    ("found", "limits"),
    [
        (plan(t_max=500), ["t_max"]),
        (plan(nic=700), ["NIC of s0, in", "NIC of s0, out"]),
        (plan(cycles=1000), ["y on s0"]),
        (plan(cycles=200, t_max=10_000, nic=10_000), ["t_max", "y on s0", "NIC of s0, in", "NIC of s0, out"]),
    ],
)
def test_everything_that_is_used_up_limits_a_chain(found: RackPlan, limits: list[str]) -> None:
    assert bottlenecks(found.chains[0], rack_use(found)) == limits


def test_use_is_that_of_all_chains() -> None:
    use = rack_use(plan(cycles=1000))
    assert (use.cores, use.nic_in, use.nic_out) == ((2,), (2000.0,), (2000.0,))
