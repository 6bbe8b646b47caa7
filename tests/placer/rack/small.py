"""Small chains and racks by hand, as JSON."""

from itertools import pairwise
from typing import Any

Json = dict[str, Any]

ON_SERVER: Json = {"server": {"cycles": 1700}}  # with 1,500 bytes and 1.7 GHz, a core carries 12,000 Mbps
ON_SWITCH: Json = {"switch": {"blocks": 1}}


def chain(name: str, kinds: str, **changes: Any) -> Json:
    """A chain whose NFs follow one another: `f0`, `f1`, and so on; a letter is a kind."""
    ids = [f"f{at}" for at in range(len(kinds))]
    return {
        "name": name,
        "packet_size": 1500,
        "t_min_mbps": 0,
        "t_max_mbps": 100_000,
        "d_max_us": None,
        "nfs": [{"id": one, "nf": kind} for one, kind in zip(ids, kinds, strict=True)],
        "edges": [[tail, head, 1] for tail, head in pairwise(ids)],
    } | changes


def server(name: str, **changes: Any) -> Json:
    """A server of four cores at 1.7 GHz with a NIC of 40 Gbps."""
    return {"name": name, "cores": 4, "clock_mhz": 1700, "nic_mbps": 40_000} | changes


def rack(nfs: Json, *servers: Json, **changes: Any) -> Json:
    """A rack of these servers, or of one, at a switch without a bound on stages; 1 us a crossing."""
    each = list(servers) or [server("s0")]
    return {"switch": {"stages": None}, "crossing_us": 1, "servers": each, "nfs": nfs} | changes
