"""Chains on a rack whose server is the simulated one: Lemur's sets, and random mixes of its functions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from experiments.lemur.methodology.paper_rack import CHAIN_SETS, NF_CYCLES, RATE_DELTAS, server
from placer.rack.chain import Chain
from placer.rack.files.chains_file import chains_of_text
from placer.rack.files.json_twins import rack_of
from placer.rack.rack import Rack

RECORDED_PROFILE = "server-simulated"
ON_SWITCH = tuple(name for name, (_, _, where) in NF_CYCLES.items() if "P" in where)
"""What the programmable switch runs, too (Lemur, table 3); IPv4Fwd runs there only."""
WORST_FLOWS, WORST_MTBR = 100_000, 600
"""The traffic at which functions take most cycles: that for which a rack has its numbers."""
CHAIN_TEXTS = {
    1: "Match -> [1/2 ACL -> Limiter -> Match -> [1/2 UrlFilter | 1/2 -] | 1/2 -] -> Detunnel -> Encrypt -> IPv4Fwd",
    2: "Encrypt -> LB -> 3 x 1/3 NAT -> IPv4Fwd",
    3: "Dedup -> ACL -> Limiter -> LB -> IPv4Fwd",
    4: "Dedup -> first=ACL -> Monitor -> Tunnel -> Match -> 3 x 1/3 (LB -> Limiter -> ACL) -> IPv4Fwd",
}
"""As `.chains` writes them; t_min is a delta times what one core gives the slowest function of the chain."""
MIXED_NFS = ("ACL", "Decrypt", "Dedup", "Encrypt", "FastEncrypt", "LB", "Match", "Monitor", "NAT", "UrlFilter")
SOFTWARE_NFS = ("Decrypt", "Dedup", "Encrypt", "FastEncrypt", "UrlFilter")
"""Those that servers alone run; a chain of a random mix has one at least."""
MIXED_DELTAS = (1.0, 1.5, 2.0)
CHAINS_PER_MIX, FURTHER_NFS = 4, (0, 1, 2)
"""Of a random mix: how many chains, and of how many further functions each."""


@dataclass(frozen=True)
class ContentionInstance:
    """Chains to place."""

    group: str
    """What it is counted with."""
    name: str
    """Of the instance in its group."""
    chains: tuple[Chain, ...]


@cache
def build_simulated_rack() -> Rack:
    """A server as the simulated one, with the cycles that were measured on it, and a switch without a bound."""
    measured = json.loads((files("traces") / RECORDED_PROFILE / "cycles.json").read_text(encoding="utf-8"))
    nfs: dict[str, Any] = {"IPv4Fwd": {"switch": {"blocks": 1}}}
    for name, costs in measured["nfs"].items():
        if name not in nfs:
            own = costs["server"]
            nfs[name] = {"server": {"cycles": own["cycles"], "replicable": own["replicable"]}}
            nfs[name] |= {"switch": {"blocks": 1}} if name in ON_SWITCH else {}
    return rack_of(
        {
            "switch": {"stages": None},
            "crossing_us": 6,
            "servers": [server() | {"clock_mhz": measured["clock_mhz"]}],
            "nfs": nfs,
            "overheads": {"subgroup_cycles": measured["source_cycles"]},
            "testbed": {"spec": "simulated:server", "flows": WORST_FLOWS, "mtbr": WORST_MTBR},
        },
        "rack",
    )


def lemur_sets() -> Iterator[ContentionInstance]:
    """The sets of chains 1 to 4 at each delta."""
    for chosen in CHAIN_SETS:
        name = "".join(map(str, chosen))
        for delta in RATE_DELTAS:
            graphs = {f"chain{number}": (CHAIN_TEXTS[number], delta) for number in chosen}
            yield ContentionInstance("Lemur's sets", f"{name} at delta {delta:g}", _chains(graphs))


def random_mixes(count: int, random: np.random.Generator) -> Iterator[ContentionInstance]:
    """Chains of random functions, each with a random delta."""
    for number in range(count):
        graphs = {}
        for at in range(CHAINS_PER_MIX):
            first = str(random.choice(SOFTWARE_NFS))
            others = random.choice(
                [nf for nf in MIXED_NFS if nf != first], size=random.choice(FURTHER_NFS), replace=False
            )
            nfs = random.permutation([first, *others])
            graphs[f"c{at}"] = (" -> ".join([*nfs, "IPv4Fwd"]), float(random.choice(MIXED_DELTAS)))
        yield ContentionInstance("random mixes", f"mix {number}", _chains(graphs))


def _chains(graphs: dict[str, tuple[str, float]]) -> tuple[Chain, ...]:
    lines = ["packets: 1500 B"]
    for name, (graph, delta) in graphs.items():
        # What one core gives the slowest function of a chain that runs on servers only.
        rack = build_simulated_rack()
        names = graph.replace("first=", "").split()
        software = [cost for nf in names if nf in rack.costs and (cost := rack.costs[nf].server)]
        cycles = max(cost.cycles for cost in software) + rack.overheads.subgroup_cycles
        least = float((rack.servers[0].clock_mhz * 8 * 1500 / cycles) * Fraction(delta))
        lines += [f"slo {name}: {least:.6f} Mbps to 100 Gbps", f"chain {name}: {graph}"]
    return chains_of_text("\n".join(lines) + "\n", "chains").chains
