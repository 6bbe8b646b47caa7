"""IPRouter (RFC 1812) and IPv4Fwd: forward by longest prefix match."""

import random
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network
from typing import Generic, TypeVar

from tests.reference.nfs.headers import (
    DESTINATION,
    SOURCE,
    Headers,
    Reporter,
    addresses,
    header_is_right,
    is_host,
    read_headers,
    with_address,
    with_hop_taken,
)
from tests.reference.nfs.model import FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent, make_flows, plain

OWN_MAC = bytes.fromhex("020000000001")
HOP_MAC = bytes.fromhex("0200000100")
OWN = IPv4Address("192.0.2.254")
NET_UNREACHABLE, TTL_EXCEEDED = (3, 0), (11, 0)
SPECIAL = {
    IPv4Network("0.0.0.0/8"): "martian",
    IPv4Network("127.0.0.0/8"): "martian",
    IPv4Network("169.254.0.0/16"): "martian",
    IPv4Network("224.0.0.0/4"): "multicast",
    IPv4Network("240.0.0.0/4"): "martian",
    IPv4Network("255.255.255.255/32"): "multicast",
    IPv4Network(f"{OWN}/32"): "local",
}
"""Destinations to which nothing is forwarded (RFC 1812, section 5.3.7), and the router itself."""

Target = TypeVar("Target")


class RoutingTable(Generic[Target]):
    """Targets by prefix: a dictionary for each length, the longest first."""

    def __init__(self, routes: Iterable[tuple[IPv4Network, Target]]) -> None:
        self.tables: dict[int, dict[int, Target]] = {length: {} for length in range(32, -1, -1)}
        for network, target in routes:
            self.tables[network.prefixlen][int(network.network_address)] = target
        self.known: dict[int, Target | None] = {}

    def find(self, address: int) -> Target | None:
        """The target of the longest prefix that has an address."""
        if address not in self.known:
            found = (table.get(address >> 32 - length << 32 - length) for length, table in self.tables.items())
            self.known[address] = next((target for target in found if target is not None), None)
        return self.known[address]


def parse_route(line: str) -> tuple[IPv4Network, int]:
    """Read a line: PREFIX HOP."""
    network, hop = line.split()
    return IPv4Network(network), int(hop)


def write_routes(routes: dict[IPv4Network, int]) -> str:
    """The lines of a file."""
    return "".join(f"{network} {hop}\n" for network, hop in routes.items())


def forward(frame: bytes, l3: int, hop: int) -> bytes:
    """A frame with one hop less to live, and the addresses of router and next hop."""
    return HOP_MAC + bytes([hop]) + OWN_MAC + with_hop_taken(frame, l3)[12:]


class Ipv4FwdModel(FunctionModel):
    """Forwards, and nothing else: what has no route, or is at the end of its time to live, is dropped."""

    nf = "IPv4Fwd"
    variants = ({"file": "{folder}/routes"}, {"file": "{folder}/routes", "hops": "200", "unknown": "pass"})
    unknown = arp = "drop"

    @classmethod
    def made_files(cls) -> dict[str, str]:
        rng, routes = random.Random(2), dict[IPv4Network, int]()
        for _ in range(5000):
            address = rng.randrange(1, 126) << 24 | rng.getrandbits(24)
            depth = rng.choice((7, 8, 12, 16, 24, 24, 26, 30, 32))
            network = IPv4Network((address, depth), strict=False)
            if network.network_address.packed[0]:
                routes[network] = rng.randrange(200)
        return {"routes": write_routes(routes)}

    def prepare(self) -> None:
        self.table = RoutingTable(map(parse_route, self.lines_of("file")))

    def mix(self) -> Mix:
        return Mix(flows=20000)

    def take(self, sent: Sent) -> Left:
        frame, headers = sent.frame, read_headers(sent.frame)
        if not headers.has_ipv4:
            return [frame] * self.passes(headers.kind), []
        hop = self.table.find(addresses(frame, headers)[1])
        if hop is None or frame[headers.l3 + 8] <= 1:
            return self.drop("unroutable" if hop is None else "expired")
        self.counted["forwarded"] += 1
        return [forward(frame, headers.l3, hop)], []


class IpRouterModel(FunctionModel):
    """Forwards what has a right header and may be forwarded, and reports errors about the rest."""

    nf = "IPRouter"
    variants = (
        {"file": "{folder}/routes", "hops": "200"},
        {"file": "{folder}/routes", "hops": "200", "errors_per_s": "20", "errors_at_once": "3"},
        {"file": "{folder}/routes", "hops": "200", "unknown": "pass"},
    )
    unknown = arp = "drop"

    @classmethod
    def made_files(cls) -> dict[str, str]:
        rng, routes = random.Random(2), dict[IPv4Network, int]()
        for _ in range(30000):
            depth = rng.choice((12, 13, 16, 16, 20, 22, 24, 24, 24, 24, 26, 30, 32))
            address = rng.randrange(1, 126) << 24 | rng.getrandbits(24)
            routes[IPv4Network((address, depth), strict=False)] = rng.randrange(200)
        routes[IPv4Network("60.0.0.0/6")] = 7
        return {"routes": write_routes({network: hop for network, hop in routes.items() if network[0] != OWN})}

    def prepare(self) -> None:
        routes: dict[IPv4Network, int | str] = dict(map(parse_route, self.lines_of("file")))
        self.table = RoutingTable((routes | SPECIAL).items())
        self.reporter = Reporter(OWN.packed, self.settings)

    def mix(self) -> Mix:
        rng, mix = random.Random(3), Mix(flows=20000)
        flows = make_flows(rng, mix)
        for address in ("0.1.2.3", "127.0.0.1", "169.254.3.4", "224.0.0.5", "240.0.0.1", "255.255.255.255", str(OWN)):
            frame, number = plain(rng, flows[0], True, b"special", mix, 1), int(IPv4Address(address))
            mix.own += [(0, with_address(frame, 14, end, number)) for end in (SOURCE, DESTINATION)]
        mix.own.append((0, b"\x01\0\x5e\0\0\x05" + plain(rng, flows[1], True, b"group", mix, 1)[6:]))
        return mix

    def rejected(self, frame: bytes, headers: Headers) -> str | None:
        """The counter of a packet that is not looked up."""
        if not header_is_right(frame, headers.l3):
            return "bad_checksum"
        if frame[0] & 1:
            return "multicast"
        source = addresses(frame, headers)[0]
        return None if is_host(source) and source >> 16 != 0xA9FE else "martian"

    def take(self, sent: Sent) -> Left:
        frame, headers = sent.frame, read_headers(sent.frame)
        if not headers.has_ipv4:
            return [frame] * self.passes(headers.kind), []
        why = self.rejected(frame, headers)
        if why:
            return self.drop(why)
        l3, hop = headers.l3, self.table.find(addresses(frame, headers)[1])
        if isinstance(hop, str):
            return self.drop(hop)
        if hop is None or frame[l3 + 8] <= 1:
            self.counted["unroutable" if hop is None else "expired"] += 1
            kind = NET_UNREACHABLE if hop is None else TTL_EXCEEDED
            counter, errors = self.reporter.report(frame, headers, kind, sent.time_us)
            self.counted[counter] += 1
            return [], errors
        self.counted["forwarded"] += 1
        return [forward(frame, l3, hop)], []
