"""NAT: inside hosts share external addresses. Traffic goes outward only."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address

from placer.metacompiler.library.headers import ICMP, FrameType, destination_of, read_headers, source_of
from placer.metacompiler.library.nf_model import NF_KINDS, Contract, FrameModel, NoData, ParameterRange
from placer.metacompiler.library.rewriting import PacketEnd, port_of, with_address, with_port

FIRST_ADDRESS = int(IPv4Address("203.0.113.0"))
FIRST_PORT, LAST_PORT = 1024, 65535
QUERIES = (8, 13, 17)
"""ICMP types of requests with an identifier: echo, timestamp, address mask (RFC 792, RFC 950)."""

InsideEnd = tuple[int, int, int]
"""Protocol, address, and port or identifier."""


class NatModel:
    """What a NAT does to frames: each inside endpoint gets an external one that no other has.

    Which one is any; here a host keeps one address, and ports are given out in their order. UDP, TCP and ICMP queries
    are translated. All else is dropped: fragments too, which the function in C holds until their datagram is complete.
    """

    def __init__(self, first_address: int, addresses: int) -> None:
        self._first = first_address
        self._addresses = addresses
        self._hosts: dict[int, int] = {}
        self._next: dict[tuple[int, int], int] = {}
        self.mapped: dict[InsideEnd, tuple[int, int]] = {}

    def process(self, packet: bytes, time_us: int) -> list[bytes]:
        headers = read_headers(packet)
        if headers.type is not FrameType.IPV4 or headers.l4 == 0 or headers.fragment:
            return []
        if headers.protocol == ICMP and packet[headers.l4] not in QUERIES:
            return []
        if 0 <= destination_of(packet, headers) - self._first < self._addresses:
            return []
        inside = headers.protocol, source_of(packet, headers), port_of(packet, headers, PacketEnd.SOURCE)
        outside = self.mapped.get(inside) or self._new(inside)
        if outside is None:
            return []
        made = with_port(packet, headers, PacketEnd.SOURCE, outside[1])
        return [with_address(made, headers, PacketEnd.SOURCE, outside[0])]

    def _new(self, inside: InsideEnd) -> tuple[int, int] | None:
        """A mapping for a new endpoint; None if no port is left."""
        protocol, host, _ = inside
        address = self._hosts.setdefault(host, self._first + len(self._hosts) % self._addresses)
        port = self._next.get((protocol, address), FIRST_PORT)
        if port > LAST_PORT:
            return None
        self._next[protocol, address] = port + 1
        self.mapped[inside] = address, port
        return address, port


class NatNf(NoData):
    """Network address translation."""

    name = "NAT"
    parameters = (
        ParameterRange("first_address", "first external address, as a number", 0, 4294967040, FIRST_ADDRESS),
        ParameterRange("addresses", "number of external addresses", 1, 256, 16),
    )
    platforms = frozenset(("server", "switch"))

    def contract(self, parameters: Mapping[str, float]) -> Contract:
        return Contract.NAT

    def model(self, parameters: Mapping[str, float], data: None) -> FrameModel:
        return NatModel(int(parameters["first_address"]), int(parameters["addresses"]))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        """Those of a table that a rack's processes have memory for, and no limit to one host's ports."""
        given = {name: f"{int(parameters[name])}" for name in ("first_address", "addresses")}
        return {**given, "sessions": "65536", "host_ports": "64512"}


NF_KINDS.register(NatNf.name)(NatNf())
