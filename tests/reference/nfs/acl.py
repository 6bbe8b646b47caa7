"""ACL: an ordered list of filters by addresses, protocol and ports; the first that matches decides."""

import random
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from tests.reference.nfs.headers import Flow, flow_of, read_headers
from tests.reference.nfs.ipv6 import read_ip_headers
from tests.reference.nfs.model import FunctionModel, Left
from tests.reference.nfs.traffic import PORTS, Mix, Sent

NUMBERS = {"ip": 0, "ipv4": 0, "ipv6": 0, "icmp": 1, "tcp": 6, "udp": 17, "icmp6": 58}
FAMILIES = {"ipv4": {4}, "icmp": {4}, "ipv6": {6}, "icmp6": {6}}
IPV6_BIT = 1 << 128  # set in addresses of flows of IPv6
Network = IPv4Network | IPv6Network | None  # None: any
ALL_PORTS = (0, 65535)


@dataclass(frozen=True, slots=True)
class Filter:
    """A line of the list."""

    permit: bool
    families: set[int]
    protocol: int
    source: Network
    sources: tuple[int, int]
    destination: Network
    destinations: tuple[int, int]

    def matches(self, flow: Flow) -> bool:
        """Whether it is about a flow."""
        source, destination, protocol, source_port, destination_port = flow
        return (
            (6 if source & IPV6_BIT else 4) in self.families
            and self.protocol in (0, protocol)
            and is_in(source, self.source)
            and is_in(destination, self.destination)
            and self.sources[0] <= source_port <= self.sources[1]
            and self.destinations[0] <= destination_port <= self.destinations[1]
        )


def is_in(address: int, network: Network) -> bool:
    """Whether an address of a flow is in a network."""
    if network is None:
        return True
    if (network.version == 6) != bool(address & IPV6_BIT):
        return False
    return (address & ~IPV6_BIT & int(network.netmask)) == int(network.network_address)


def make_line(rng: random.Random) -> str:
    """A filter that some of the traffic matches, in the syntax of the file."""
    ipv6 = rng.random() < 0.5
    protocol = rng.choice(("ip", "tcp", "tcp", "udp", "udp", "icmp6" if ipv6 else "icmp", "47", "60"))
    if protocol == "ip" and rng.random() < 0.3:
        protocol = "ipv6" if ipv6 else "ipv4"
    words = [rng.choice(("permit", "deny")), protocol]
    for first in (10, rng.randrange(11, 120)) if rng.random() < 0.8 else (rng.randrange(11, 120), 10):
        depth = rng.choice((0, 8, 8, 13, 16, 24, 32))
        address = IPv4Network((first << 24 | rng.getrandbits(10) << 8 | rng.getrandbits(8), depth), strict=False)
        words.append("any" if depth == 0 else str(address) if depth < 32 else str(address.network_address))
        if ipv6 and depth:
            prefix = IPv6Network((0x20010DB8 << 96 | int(address.network_address), 96 + depth), strict=False)
            words[-1] = str(prefix) if rng.random() < 0.8 else "2001:db8::/32"
        if protocol in ("tcp", "udp") and rng.random() < 0.5:
            low = rng.choice((*PORTS, 1024, 30000))
            words.append(str(low) if rng.random() < 0.5 else f"{low}-{rng.randrange(low, 65536)}")
    return " ".join(words)


def parse_filter(line: str) -> Filter:
    """Read a line: permit|deny PROTOCOL SOURCE [PORTS] DESTINATION [PORTS]."""
    action, protocol, *words = line.split()
    ends: list[tuple[Network, tuple[int, int]]] = []
    while words:
        word = words.pop(0)
        network = None if word == "any" else ip_network(word)
        ports = ALL_PORTS
        if words and words[0].replace("-", "").isdigit():
            low, _, high = words.pop(0).partition("-")
            ports = int(low), int(high or low)
        ends.append((network, ports))
    (source, sources), (destination, destinations) = ends
    number = NUMBERS[protocol] if protocol in NUMBERS else int(protocol)
    families = FAMILIES.get(protocol, {4, 6})
    return Filter(action == "permit", families, number, source, sources, destination, destinations)


class AclModel(FunctionModel):
    """Later fragments match as if both ports were 0; packets without a match get the default."""

    nf = "ACL"
    unknown = "drop"
    variants = (
        {"file": "{folder}/filters", "default_permit": "0"},
        {"file": "{folder}/filters", "unknown": "pass", "arp": "drop"},
        {"file": "{folder}/filters", "ipv6": "drop"},
    )
    looks_at_source = True

    @classmethod
    def made_files(cls) -> dict[str, str]:
        rng = random.Random(1)
        return {"filters": "\n".join(["# filters", *(make_line(rng) for _ in range(400)), ""])}

    def prepare(self) -> None:
        self.filters = [parse_filter(line) for line in self.lines_of("file")]
        self.known: dict[Flow, bool | None] = {}

    def mix(self) -> Mix:
        return Mix(flows=20000, ipv6=0.5)

    def verdict(self, flow: Flow) -> bool | None:
        """Whether the first filter that matches permits the flow; None without one."""
        if flow not in self.known:
            self.known[flow] = next((rule.permit for rule in self.filters if rule.matches(flow)), None)
        return self.known[flow]

    def take(self, sent: Sent) -> Left:
        headers = read_headers(sent.frame)
        if headers.kind == "ipv6" and (whole := self.settings.get("ipv6", "read")) != "read":
            self.counted["permitted" if whole == "pass" else "denied"] += 1
            return [sent.frame] * (whole == "pass"), []
        headers = read_ip_headers(sent.frame)
        if headers.kind not in ("ipv4", "ipv6"):
            return [sent.frame] * self.passes(headers.kind), []
        verdict = self.verdict(flow_of(sent.frame, headers))
        self.counted["unmatched"] += verdict is None
        permits = self.number("default_permit", 1) == 1 if verdict is None else verdict
        self.counted["permitted" if permits else "denied"] += 1
        return [sent.frame] * permits, []
