"""Match: sorts packets by expressions of pcap-filter(7), whose meaning is written here by hand."""

from collections.abc import Callable

from tests.reference.nfs.headers import ICMP, IPV4, IPV6, OFFSET, SYN, TCP, UDP
from tests.reference.nfs.model import FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent
from tests.reference.nfs.tunnel import is_full, with_tag


def word(frame: bytes, at: int) -> int | None:
    """Two bytes; None, with which an expression is false, if the frame ends before."""
    return int.from_bytes(frame[at : at + 2], "big") if 0 <= at <= len(frame) - 2 else None


def byte(frame: bytes, at: int) -> int | None:
    return frame[at] if 0 <= at < len(frame) else None


def is_type(frame: bytes, kind: int, shift: int = 0) -> bool:
    """Whether the type behind the addresses, and perhaps a tag, is `kind`."""
    return word(frame, 12 + shift) == kind


def protocol4(frame: bytes, protocol: int) -> bool:
    """`ip proto`: the field of IPv4."""
    return is_type(frame, IPV4) and byte(frame, 23) == protocol


def protocol6(frame: bytes, protocol: int) -> bool:
    """The next header of IPv6, or that behind a fragment header."""
    if not is_type(frame, IPV6):
        return False
    return byte(frame, 20) == protocol or (byte(frame, 20) == 44 and byte(frame, 54) == protocol)


def l4_at(frame: bytes) -> int | None:
    """Where IPv4's payload begins; None for later fragments, and where the frame ends before."""
    flags, first = word(frame, 20), byte(frame, 14)
    if flags is None or first is None or flags & OFFSET:
        return None
    return 14 + (first & 15) * 4


def has_port(frame: bytes, protocol: int, port: int) -> bool:
    """`tcp port` or `udp port`: either end, also in IPv6 without extension headers."""
    if is_type(frame, IPV6):
        return byte(frame, 20) == protocol and port_of(frame, 54, port)
    at = l4_at(frame) if protocol4(frame, protocol) else None
    return at is not None and port_of(frame, at, port)


def port_of(frame: bytes, at: int, port: int) -> bool:
    """Whether one of the two ports at `at` is `port`; a missing one ends the expression as false."""
    source = word(frame, at)
    if source is None:
        return False
    return source == port or word(frame, at + 2) == port


def in_net(frame: bytes) -> bool:
    """`src net 10.0.0.0/13`: in IPv4, ARP and RARP."""
    for kind, at in ((0x0800, 26), (0x0806, 28), (0x8035, 28)):
        if is_type(frame, kind):
            return len(frame) >= at + 4 and int.from_bytes(frame[at : at + 4], "big") >> 19 == 10 << 5
    return False


def tcp_flags(frame: bytes) -> bool:
    """`tcp[tcpflags] & tcp-syn != 0`: of IPv4 that is no later fragment."""
    at = l4_at(frame) if protocol4(frame, TCP) else None
    flags = None if at is None else byte(frame, at + 13)
    return flags is not None and flags & SYN != 0


def echo(frame: bytes) -> bool:
    """`icmp[icmptype] = icmp-echo`."""
    at = l4_at(frame) if protocol4(frame, ICMP) else None
    return at is not None and byte(frame, at) == 8


def old(frame: bytes) -> bool:
    """`ip[8] < 3`: the time to live."""
    ttl = byte(frame, 22)
    return is_type(frame, IPV4) and ttl is not None and ttl < 3


def in_vlan(frame: bytes) -> bool:
    """`vlan 100 and tcp`: a tag of 802.1Q, 802.1ad or the older 0x9100, and behind it IPv4 or IPv6 with TCP."""
    control = word(frame, 14)
    if word(frame, 12) not in (0x8100, 0x88A8, 0x9100) or control is None or control & 0xFFF != 100:
        return False
    inner = frame[:12] + frame[16:]
    return protocol4(inner, TCP) or protocol6(inner, TCP)


def web(frame: bytes) -> bool:
    """`tcp port 80 or tcp port 443`."""
    return has_port(frame, TCP, 80) or has_port(frame, TCP, 443)


EXPRESSIONS: dict[str, Callable[[bytes], bool]] = {
    "tcp port 80 or tcp port 443": web,
    "udp port 53": lambda frame: has_port(frame, UDP, 53),
    "icmp[icmptype] = icmp-echo": echo,
    "tcp[tcpflags] & tcp-syn != 0": tcp_flags,
    "ip[8] < 3": old,
    "src net 10.0.0.0/13 and greater 150": lambda frame: in_net(frame) and len(frame) >= 150,
    "vlan 100 and tcp": in_vlan,
    "arp": lambda frame: is_type(frame, 0x0806),
    "tcp": lambda frame: protocol4(frame, TCP) or protocol6(frame, TCP),
    "ip6": lambda frame: is_type(frame, IPV6),
    "less 60": lambda frame: len(frame) <= 60,
}


class MatchModel(FunctionModel):
    """The first expression that matches chooses the gate; behind it a Tunnel writes its number as a VLAN."""

    nf = "Match"
    variants = ({"filters": "; ".join(EXPRESSIONS)},)
    chain = "\n".join(
        [
            "match: Match {settings}",
            *(f"gate{i}: Tunnel vlan={i + 1}" for i in range(len(EXPRESSIONS) + 1)),
            *(f"match[{i}] -> gate{i}" for i in range(len(EXPRESSIONS) + 1)),
            "",
        ]
    )

    def mix(self) -> Mix:
        return Mix(flows=20000, ipv6=0.5, outside=0.0, odd=0.3)

    def take(self, sent: Sent) -> Left:
        frame, tests = sent.frame, list(EXPRESSIONS.values())
        gate = next((i for i, test in enumerate(tests) if test(frame)), len(tests))
        self.counted["unmatched" if gate == len(tests) else "matched"] += 1
        return [with_tag(frame, gate + 1)] if len(frame) >= 14 and not is_full(frame) else [], []

    def process(self, frame: bytes, time_us: int) -> list[bytes]:
        """In a chain all frames pass: the edges behind it have the expressions, which are judged there."""
        return [frame]
