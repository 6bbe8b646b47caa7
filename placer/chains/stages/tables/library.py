"""The tables of the NFs that Lemur runs on its switch (Yen et al., table 3), for racks that give none.

Keys and entries are those of plain P4 programs; the NAT is that of the P4 consortium's `simple_nat`, whose key of 99
bits holds 2,000 entries. A rack file replaces them (`tables` beside `blocks`).
"""

from __future__ import annotations

from collections.abc import Mapping

from placer.chains.switch_table import MatchKind, SwitchTable

ADDRESSES = {"ip.src": 32, "ip.dst": 32}
FLOW = {**ADDRESSES, "l4.ports": 32, "ip.protocol": 8}
VLAN = ("vlan.valid", "vlan.id")

STEERING = SwitchTable("steering", {**FLOW, "nsh.path": 32}, MatchKind.TERNARY, 512, ("nsh.path",))
"""Finds the chain of a packet and its place there, also of packets that come back from servers (section 4.2)."""


def splitting(by_class: bool, branches: int) -> SwitchTable:
    """What decides on the branch behind an NF: by the class that the NF found, or else by rules of its own (A.2.2)."""
    if by_class:
        return SwitchTable("split", {"meta.class": 16}, MatchKind.EXACT, branches)
    return SwitchTable("split", FLOW, MatchKind.TERNARY, branches)


LIBRARY: Mapping[str, tuple[SwitchTable, ...]] = {
    "ACL": (SwitchTable("rules", FLOW, MatchKind.TERNARY, 1024, ("meta.drop",)),),
    "Detunnel": (SwitchTable("pop", {"vlan.valid": 1, "vlan.id": 12}, MatchKind.EXACT, 256, VLAN),),
    "IPv4Fwd": (
        SwitchTable("routes", {"ip.dst": 32}, MatchKind.LPM, 4096, ("meta.next_hop", "ip.ttl")),
        SwitchTable("next_hops", {"meta.next_hop": 32}, MatchKind.EXACT, 1024, ("eth.dst", "port.out")),
        SwitchTable("own_address", {"port.out": 9}, MatchKind.EXACT, 256, ("eth.src",)),
    ),
    "LB": (
        SwitchTable("services", {"ip.dst": 32, "l4.ports": 32}, MatchKind.EXACT, 256, ("meta.bucket",)),
        SwitchTable("servers", {"meta.bucket": 16}, MatchKind.EXACT, 4096, ("ip.dst", "l4.ports")),
    ),
    "Match": (SwitchTable("classes", FLOW, MatchKind.TERNARY, 512, ("meta.class",)),),
    "NAT": (
        SwitchTable("interface", {"port.in": 9}, MatchKind.EXACT, 64, ("meta.side",)),
        SwitchTable(
            "translations",
            {**ADDRESSES, "l4.ports": 32, "meta.side": 3},
            MatchKind.TERNARY,
            2000,
            ("meta.found",),
        ),
        SwitchTable("rewrite", {"meta.found": 1}, MatchKind.EXACT, 2, ("ip.src", "ip.dst", "l4.ports")),
    ),
    "Tunnel": (SwitchTable("push", {"ip.dst": 32}, MatchKind.EXACT, 256, VLAN),),
}
"""By kind of NF, in the order in which packets meet them."""
