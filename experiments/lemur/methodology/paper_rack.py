"""Chains, NFs and rack of Lemur's evaluation (section 5.1), as the JSON twins write them."""

from typing import Any

from placer.rack.chain import Chain
from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.rack import Rack

NF_CYCLES: dict[str, tuple[int, bool, str]] = {
    "Encrypt": (9123, True, ""),
    "Decrypt": (2843, True, ""),
    "FastEncrypt": (6820, True, "N"),
    "Dedup": (33186, True, ""),
    "Tunnel": (289, True, "PNO"),
    "Detunnel": (230, True, "PNO"),
    "Limiter": (20, False, ""),
    "UrlFilter": (6994, True, ""),
    "Monitor": (310, True, "O"),
    "NAT": (519, False, "P"),
    "LB": (564, True, "PN"),
    "Match": (976, True, "PN"),
    "ACL": (985, True, "PNO"),
}
"""Cycles on a server, whether it may be replicated, and where else it runs: P switch, N SmartNIC, O OpenFlow."""
CLOCK_MHZ = 1700
PACKET_SIZE = 1500
BASE_MBPS = {1: 2236.1, 2: 2236.1, 3: 614.7, 4: 614.7, 5: 2916.8}
"""Of a chain: one core for the slowest NF that runs in software."""
CHAIN_SETS = ((1, 2, 3, 4), (1, 2, 3), (1, 2, 4), (1, 3, 4), (2, 3, 4))
RATE_DELTAS = (0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4)
CYCLE_OVERHEADS = {"subgroup_cycles": 220, "replica_cycles": 180}
"""Cycles of service headers and of spreading packets over cores (section 5.3)."""


def rack(**changes: Any) -> Rack:
    """One server of 16 cores at 1.7 GHz with a NIC of 40 Gbps, and a switch without a bound on stages."""
    return rack_of(rack_json(**changes), "rack")


def rack_json(**changes: Any) -> dict[str, Any]:
    """The same as JSON."""
    nfs: dict[str, Any] = {"IPv4Fwd": {"switch": {"blocks": 1}}}
    for name, (cycles, replicable, where) in NF_CYCLES.items():
        nfs[name] = {"server": {"cycles": cycles, "replicable": replicable}}
        if "P" in where:
            nfs[name]["switch"] = {"blocks": 1}
    return {"switch": {"stages": None}, "crossing_us": 6, "servers": [server()], "nfs": nfs} | changes


def server(name: str = "s0", cores: int = 16) -> dict[str, Any]:
    """A server, of whose cores two are taken by packet steering."""
    return {"name": name, "cores": cores, "reserved_cores": 2, "clock_mhz": CLOCK_MHZ, "nic_mbps": 40000}


def chains(numbers: tuple[int, ...], delta: float, **changes: Any) -> tuple[Chain, ...]:
    """Some of the chains 1 to 5, with t_min of `delta` times their base rate."""
    return chains_of({"chains": [chain_json(number, delta) | changes for number in numbers]}, "chains")


def chain_json(number: int, delta: float, name: str | None = None) -> dict[str, Any]:
    """One of the chains 1 to 5."""
    nfs, edges = CHAIN_GRAPHS[number]
    return {
        "name": name or f"chain{number}",
        "packet_size": PACKET_SIZE,
        "t_min_mbps": delta * BASE_MBPS[number],
        "t_max_mbps": 100000,
        "nfs": [{"id": nf, "nf": nf.rstrip("0123456789_") if nf != "IPv4Fwd" else nf} for nf in nfs.split()],
        "edges": [edge.split() for edge in edges.split(", ")],
    }


CHAIN_GRAPHS = {
    1: (
        "Match_1 ACL Limiter Match_2 UrlFilter Detunnel Encrypt IPv4Fwd",
        "Match_1 ACL 1/2, Match_1 Detunnel 1/2, ACL Limiter, Limiter Match_2, Match_2 UrlFilter 1/2, "
        "Match_2 Detunnel 1/2, UrlFilter Detunnel, Detunnel Encrypt, Encrypt IPv4Fwd",
    ),
    2: (
        "Encrypt LB NAT_1 NAT_2 NAT_3 IPv4Fwd",
        "Encrypt LB, LB NAT_1 1/3, LB NAT_2 1/3, LB NAT_3 1/3, NAT_1 IPv4Fwd, NAT_2 IPv4Fwd, NAT_3 IPv4Fwd",
    ),
    3: ("Dedup ACL Limiter LB IPv4Fwd", "Dedup ACL, ACL Limiter, Limiter LB, LB IPv4Fwd"),
    4: (
        "Dedup ACL_0 Monitor Tunnel Match LB_1 Limiter_1 ACL_1 LB_2 Limiter_2 ACL_2 LB_3 Limiter_3 ACL_3 IPv4Fwd",
        "Dedup ACL_0, ACL_0 Monitor, Monitor Tunnel, Tunnel Match, Match LB_1 1/3, Match LB_2 1/3, Match LB_3 1/3, "
        "LB_1 Limiter_1, LB_2 Limiter_2, LB_3 Limiter_3, Limiter_1 ACL_1, Limiter_2 ACL_2, Limiter_3 ACL_3, "
        "ACL_1 IPv4Fwd, ACL_2 IPv4Fwd, ACL_3 IPv4Fwd",
    ),
    5: ("ACL UrlFilter FastEncrypt IPv4Fwd", "ACL UrlFilter, UrlFilter FastEncrypt, FastEncrypt IPv4Fwd"),
}
"""NFs, and edges with their shares; merges are shared nodes."""
