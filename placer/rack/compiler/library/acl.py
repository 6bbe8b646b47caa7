"""ACL: the first filter that matches permits or denies a packet; without a match it passes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placer.rack.compiler.library.nf_kind import (
    ALL_PLATFORMS,
    NF_KINDS,
    SEED_PARAMETER,
    NfKind,
    ParameterRange,
    SplitMix,
)
from placer.rack.compiler.library.prefixes import ANY_PREFIX, INSIDE_PREFIX, OUTSIDE_PREFIXES, Prefix

ANY_PROTOCOL = 0
ANY_PORT = (0, 65535)
ICMP, TCP, UDP = 1, 6, 17
PROTOCOL_NAMES = {ANY_PROTOCOL: "ip", ICMP: "icmp", TCP: "tcp", UDP: "udp"}
SERVICE_PORTS = (22, 25, 53, 80, 110, 123, 143, 161, 389, 443, 993, 1433, 3306, 5060, 8080)
HIGH_PORTS = (1024, 65535)


@dataclass(frozen=True)
class AclFilter:
    """Conditions on a packet, and whether it is permitted.

    Fragments other than the first, and protocols without ports, match as if both ports were 0. `protocol`: 0: any.
    `source_ports`, `destination_ports`: the lowest and the highest port; of UDP and TCP only, any for others.
    """

    permit: bool
    protocol: int
    source: Prefix
    source_ports: tuple[int, int]
    destination: Prefix
    destination_ports: tuple[int, int]

    def __str__(self) -> str:
        words = ["permit" if self.permit else "deny", PROTOCOL_NAMES.get(self.protocol, str(self.protocol))]
        words += [_prefix_word(self.source), *_port_words(self.source_ports)]
        words += [_prefix_word(self.destination), *_port_words(self.destination_ports)]
        return " ".join(words)


class AclNf(NfKind[tuple[AclFilter, ...]]):
    """An access list on addresses, protocol and ports."""

    name = "ACL"
    parameters = (ParameterRange("rules", "filters in the list", 0, 10000, 64), SEED_PARAMETER)
    platforms = ALL_PLATFORMS

    def data(self, parameters: Mapping[str, float]) -> tuple[AclFilter, ...]:
        random = SplitMix(int(parameters["seed"]))
        return tuple(next_filter(random) for _ in range(int(parameters["rules"])))

    def server_files(self, data: tuple[AclFilter, ...]) -> dict[str, str]:
        return {"filters": "".join(f"{rule}\n" for rule in data)}

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        ipv6 = "pass" if passes_ipv6(self.data(parameters)) else "drop"
        return {"file": files["filters"], "default_permit": "1", "ipv6": ipv6}


def passes_ipv6(filters: Sequence[AclFilter]) -> bool:
    """Whether IPv6 passes a list, all of it: cards and switches do not look behind its extension headers.

    Filters for any address are of both families. One that denies a protocol of IPv6 therefore denies all.
    """
    for acl_filter in filters:
        if acl_filter.source == acl_filter.destination == ANY_PREFIX and acl_filter.protocol != ICMP:
            if not acl_filter.permit:
                return False
            if acl_filter.protocol == ANY_PROTOCOL:
                return True
    return True


def next_filter(random: SplitMix) -> AclFilter:
    """A random filter: from any address or clients to servers or clients, one of four denies.

    Ranges of ports are few prefixes each, so that tables with masks hold a filter in few entries.
    """
    protocol = random.one_of((TCP,) * 9 + (UDP,) * 6 + (ICMP,) + (ANY_PROTOCOL,) * 4)
    permit = random.below(4) > 0
    source = ANY_PREFIX if random.below(2) else INSIDE_PREFIX.within(random, random.one_of((8, 9, 10, 12, 16)))
    destination = random.one_of((INSIDE_PREFIX, *OUTSIDE_PREFIXES, *OUTSIDE_PREFIXES)).within(
        random, random.one_of((8, 10, 16, 24, 25, 26, 28))
    )
    source_ports, destination_ports = ANY_PORT, ANY_PORT
    if protocol in (TCP, UDP):
        destination_ports = _service(random)
        source_ports = HIGH_PORTS if random.below(8) == 0 else ANY_PORT
    return AclFilter(permit, protocol, source, source_ports, destination, destination_ports)


def _service(random: SplitMix) -> tuple[int, int]:
    kind = random.below(10)
    if kind < 4:
        return ANY_PORT
    if kind < 6:
        return HIGH_PORTS
    if kind < 7:
        first = random.below(512) << 7
        return first, first | 127
    port = random.one_of(SERVICE_PORTS)
    return port, port


def _prefix_word(prefix: Prefix) -> str:
    return "any" if prefix == ANY_PREFIX else str(prefix)


def _port_words(ports: tuple[int, int]) -> list[str]:
    if ports == ANY_PORT:
        return []
    return [str(ports[0])] if ports[0] == ports[1] else [f"{ports[0]}-{ports[1]}"]


NF_KINDS.register(AclNf.name)(AclNf())
