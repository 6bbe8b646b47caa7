"""NAT: inside hosts share a few external addresses (RFC 4787, RFC 5382, RFC 5508)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from tests.reference.nfs.fragments import Reassembly, cut_datagram, join_marks
from tests.reference.nfs.headers import (
    ACK,
    DESTINATION,
    FIN,
    ICMP,
    ICMP_ERRORS,
    INSIDE,
    OUTSIDE,
    RST,
    SCTP,
    SOURCE,
    SYN,
    TCP,
    UDP,
    End,
    Headers,
    addresses,
    end_of,
    find_quoted,
    header_is_right,
    read_headers,
    with_address,
    with_end,
    with_icmp_checksum,
)
from tests.reference.nfs.model import Bounds, Contract, FirstRun, FunctionModel, differences
from tests.reference.nfs.nat_traffic import NatTraffic
from tests.reference.nfs.traffic import Mix, Sent

REQUESTS, REPLIES = (8, 13, 17), (0, 14, 18)
FIRST_PORT, LAST_PORT = 1024, 65535
LEAST_MTU = 68
TIMEOUTS = {"udp": 300, "icmp": 60, "transitory": 240, "established": 7440}
GRE, ESP = 47, 50
PHASES = {UDP: "udp", ICMP: "icmp", TCP: "transitory"}


@dataclass(slots=True)
class Session:
    """What a mapping has with one remote end."""

    phase: str
    last_us: int = 0
    acked: set[int] = field(default_factory=set)  # sides that have acknowledged
    closed: set[int] = field(default_factory=set)
    reset: bool = False

    def see(self, side: int, flags: int, now_us: int) -> None:
        """Refresh it: UDP and queries by packets from inside only (REQ-6), TCP by both ends (RFC 5382, REQ-5)."""
        if self.phase in ("udp", "icmp"):
            self.last_us = now_us if side == INSIDE else self.last_us
            return
        opens = flags & (SYN | ACK) == SYN
        if opens and (self.phase == "transitory" or (side == INSIDE and INSIDE in self.closed)):
            self.acked, self.closed, self.reset = set(), set(), False
        if flags & ACK:
            self.acked.add(side)
        if flags & FIN:
            self.closed.add(side)
        self.reset |= bool(flags & RST)
        established = len(self.acked) == 2 and len(self.closed) < 2 and not self.reset
        self.phase = "established" if established else "transitory"
        self.last_us = now_us


@dataclass(slots=True)
class Pair:
    """The inside host of a protocol without ports that talks to an outside one."""

    inside: int
    last_us: int


@dataclass(slots=True)
class Mapping:
    """An inside end and the external one that stands for it, with sessions by their remote end."""

    inside: End
    outside: End
    sessions: dict[End, Session] = field(default_factory=dict)
    forwards: bool = False  # it stays without sessions


class NatModel(FunctionModel):
    """Which port a new mapping gets is the NAT's choice; `judge` learns it from what comes out, and checks it.

    In a chain, where nothing came out before, each host gets the next address, and each of its ends the next port.

    A port of a live mapping is given to no other one; a host keeps one external address, of those set (REQ-2); ports
    are from 1024 on, with the parity of the inside one (REQ-4); a mapping stays while one of its sessions does (REQ-1).
    When a mapping has timed out its end may get the same port or another one; so which packets a host's limit of ports
    stops is exact only while none has. All else is exact: addresses, ports,
    checksums, fragments, errors of ICMP, what is dropped and why.

    External ends of `forwards` are of their inside ends for good. Of GRE, ESP and SCTP only addresses change: what a
    host sends back to an external address goes to the inside host that sent to it last, of SCTP by ports.
    """

    nf = "NAT"
    contract = Contract.NAT
    variants = (
        {"udp_s": "20", "icmp_s": "8", "transitory_s": "15", "established_s": "60", "pending_s": "1"},
        {"udp_s": "0.5", "icmp_s": "0.3", "transitory_s": "0.4", "established_s": "2", "pending_s": "0.01"},
        {"addresses": "1", "host_ports": "3"},
        {"forwards": "{folder}/forwards", "udp_s": "1", "transitory_s": "1", "addresses": "2"},
        {"pairs": "0", "unknown": "pass", "arp": "pass"},
    )
    unknown = arp = "drop"

    @classmethod
    def made_files(cls) -> dict[str, str]:
        lines = (
            "tcp 203.0.113.0:443 10.0.0.5:8443",
            "udp 203.0.113.0:2000 10.0.0.5:53",
            "udp 203.0.113.1:9 10.0.0.8:9",
        )
        return {"forwards": "".join(f"{line}\n" for line in lines)}

    def prepare(self) -> None:
        self.first = self.number("first_address", int(IPv4Address("203.0.113.0")))
        self.addresses = self.number("addresses", 16)
        self.timeouts = {phase: self.seconds(f"{phase}_s", default) for phase, default in TIMEOUTS.items()}
        self.reassembly = Reassembly(self.seconds("pending_s", 30))
        self.mappings: dict[tuple[int, End], Mapping] = {}
        self.outside: dict[tuple[int, End], Mapping] = {}
        self.address_of: dict[int, int] = {}
        self.ports_of: Counter[tuple[int, int]] = Counter()
        self.next_port: dict[tuple[int, int, int], int] = {}
        self.now_us, self.wrong = 0, list[str]()
        self.left: list[bytes] | None = None
        self.pairs: dict[tuple[int, int, int, bytes], Pair] = {}
        for protocol, outside, inside in self.read_forwards():
            mapping = Mapping(inside, outside, forwards=True)
            self.mappings[protocol, inside] = self.outside[protocol, outside] = mapping
            self.address_of[inside[0]] = outside[0]

    def traffic(self, seed: int, n: int, run: FirstRun) -> Iterator[Sent]:
        protocols = (*(TCP, UDP) * 3, ICMP, GRE, ESP, SCTP)
        traffic = NatTraffic(seed, n, Mix(flows=6000, jumbo=0.0, protocols=protocols), run)
        traffic.forwards = self.read_forwards()
        return traffic.frames()

    def read_forwards(self) -> list[tuple[int, End, End]]:
        """Protocol, external and inside end of each forward."""
        made = []
        for protocol, *ends in map(str.split, self.lines_of("forwards") if "forwards" in self.settings else ()):
            (outside, port), (inside, own) = (end.split(":") for end in ends)
            ports = int(port), int(own)
            external, host = int(IPv4Address(outside)), int(IPv4Address(inside))
            made.append((TCP if protocol == "tcp" else UDP, (external, ports[0]), (host, ports[1])))
        return made

    def owns(self, address: int) -> bool:
        """Whether an address is one of the external ones."""
        return 0 <= address - self.first < self.addresses

    def is_live(self, mapping: Mapping | None) -> bool:
        """Whether one of a mapping's sessions has not timed out."""
        if mapping is None:
            return False
        return mapping.forwards or any(self.session_lives(session) for session in reversed(mapping.sessions.values()))

    def session_lives(self, session: Session) -> bool:
        """Whether a session has not timed out."""
        return self.now_us - session.last_us < self.timeouts[session.phase]

    def judge(self, burst: list[Sent], out: list[bytes], back: list[bytes]) -> list[str]:
        """Frames whose receiver is inside leave at the back, wherever they came from."""
        self.now_us, self.left, self.wrong = burst[0].time_us, out + back, []
        expected: tuple[list[bytes], list[bytes]] = ([], [])
        for sent in burst:
            side, frames = self.cross(sent)
            expected[0 if side == OUTSIDE else 1].extend(frames)
        wrong = differences("out", expected[0], out) + differences("back", expected[1], back)
        return self.wrong + wrong

    def process(self, frame: bytes, time_us: int) -> list[bytes]:
        """In a chain traffic goes outward only; fragments and errors, which a switch cannot translate, are dropped."""
        headers = read_headers(frame)
        if headers.kind != "ipv4" or headers.l4 == 0 or headers.fragment or self.owns(addresses(frame, headers)[1]):
            return []
        if headers.protocol == ICMP and frame[headers.l4] not in REQUESTS:
            return []
        self.now_us = time_us
        made = self.translate(frame, headers, INSIDE)[1]
        return [] if made is None else [made]

    def cross(self, sent: Sent) -> tuple[int, list[bytes]]:
        """The side where a packet leaves, and its frames."""
        frame, headers, largest = sent.frame, read_headers(sent.frame), 0
        portless = headers.protocol in (GRE, ESP) or (headers.protocol == SCTP and not headers.fragment)
        if headers.kind == "ipv4" and portless and self.number("pairs", 1):
            return self.cross_pair(frame, headers, sent.side)
        if headers.fragment:
            why = self.fragment_fault(frame, headers, sent.side)
            if why:
                return OUTSIDE, self.drop(why)[0]
            self.counted["fragments"] += 1
            whole = self.reassembly.add(frame, headers, sent.side, sent.time_us)
            if whole is None:
                return OUTSIDE, []
            joined = join_marks(whole, headers.l3)
            if joined is None:
                return OUTSIDE, self.drop("congested")[0]
            self.counted["reassembled"] += 1
            frame, largest = joined, whole.largest
            headers = read_headers(frame)
        if headers.kind != "ipv4":
            return 1 - sent.side, [frame] * self.passes(headers.kind)
        if headers.l4 == 0:
            return OUTSIDE, self.drop("unsupported")[0]
        side, made = self.translate(frame, headers, sent.side)
        if made is None or not largest:
            return side, [] if made is None else [made]
        parts = cut_datagram(made, read_headers(made), max(largest, LEAST_MTU)) or []
        self.counted["fragments_sent"] += len(parts)
        return side, parts

    def cross_pair(self, frame: bytes, headers: Headers, side: int) -> tuple[int, list[bytes]]:
        """A packet whose ports, if it has any, stay as they are."""
        l4 = headers.l3 + (frame[headers.l3] & 15) * 4
        source, destination = addresses(frame, headers)
        external, remote = (self.external_of(frame, headers), destination) if side == INSIDE else (destination, source)
        ports = b""
        if self.owns(destination) == (side == INSIDE):
            return OUTSIDE, self.drop("unmapped")[0]
        if headers.protocol == SCTP:
            if headers.end < l4 + 12:
                return OUTSIDE, self.drop("malformed")[0]
            ports = frame[l4 : l4 + 4] if side == INSIDE else frame[l4 + 2 : l4 + 4] + frame[l4 : l4 + 2]
        if external is None:  # nothing left, so whatever the address is, another host has the pair
            others = [key for key in self.pairs if key[0] == headers.protocol and key[2:] == (remote, ports)]
            if not any(self.pair_lives(self.pairs[key]) for key in others):
                self.wrong.append(f"a packet to {remote}: no other host has the pair")
            return OUTSIDE, self.drop("exhausted")[0]
        key = headers.protocol, external, remote, ports
        pair = self.pairs.get(key)
        pair = pair if pair and self.pair_lives(pair) else None
        if side == OUTSIDE:
            if pair is None:
                return OUTSIDE, self.drop("unmapped")[0]
            self.counted["inward"] += 1
            return INSIDE, [with_address(frame, headers.l3, DESTINATION, pair.inside)]
        if pair and pair.inside != source:
            return OUTSIDE, self.drop("exhausted")[0]
        if pair is None:
            of_host = sum(other.inside == source and self.pair_lives(other) for other in self.pairs.values())
            if of_host >= max(self.number("pairs", 4096) // 16, 1):
                return OUTSIDE, self.drop("exhausted")[0]
        self.pairs[key] = Pair(source, self.now_us)
        self.counted["outward"] += 1
        return OUTSIDE, [with_address(frame, headers.l3, SOURCE, external)]

    def pair_lives(self, pair: Pair) -> bool:
        """Whether a pair has not timed out."""
        return self.now_us - pair.last_us < self.timeouts["udp"]

    def external_of(self, frame: bytes, headers: Headers) -> int | None:
        """The external address of a packet's host, by a packet that left if it is not known yet; else None."""
        host, l3 = addresses(frame, headers)[0], headers.l3
        for other in self.left or ():
            found = read_headers(other)
            if found.kind != "ipv4" or found.protocol != headers.protocol or host in self.address_of:
                continue
            if other[found.l3 + 4 : found.l3 + 6] == frame[l3 + 4 : l3 + 6] and self.owns(addresses(other, found)[0]):
                self.address_of[host] = addresses(other, found)[0]
        return self.address_of.get(host)

    def fragment_fault(self, frame: bytes, headers: Headers, side: int) -> str | None:
        """The counter of a fragment that is freed before it is held."""
        if headers.protocol not in PHASES:
            return "unsupported"
        if not header_is_right(frame, headers.l3):
            return "malformed"
        return "unmapped" if side == OUTSIDE and not self.owns(addresses(frame, headers)[1]) else None

    def translate(self, frame: bytes, headers: Headers, side: int) -> tuple[int, bytes | None]:
        """The side where a whole packet leaves, and its frame."""
        if headers.protocol == ICMP:
            kind = frame[headers.l4]
            if kind in ICMP_ERRORS:
                return self.error(frame, headers, side)
            if kind not in (REQUESTS if side == INSIDE else REPLIES):
                self.counted["unsupported"] += 1
                return OUTSIDE, None
        flags = frame[headers.l4 + 13] if headers.protocol == TCP else 0
        if side == INSIDE:
            return self.outward(frame, headers, flags)
        mapping = self.outside.get((headers.protocol, end_of(frame, headers.l3, headers.l4, DESTINATION)))
        if mapping is None or not self.is_live(mapping):
            self.counted["unmapped"] += 1
            return OUTSIDE, None
        self.counted["inward"] += 1
        return INSIDE, self.inward(frame, headers, mapping, flags)

    def inward(self, frame: bytes, headers: Headers, mapping: Mapping, flags: int) -> bytes:
        """A packet to the inside end of a mapping; without a session it passes, too (REQ-8)."""
        session = mapping.sessions.get(self.remote(frame, headers, SOURCE))
        if session is not None and self.session_lives(session):
            session.see(OUTSIDE, flags, self.now_us)
        return with_end(frame, headers.l3, headers.l4, DESTINATION, mapping.inside)

    def remote(self, frame: bytes, headers: Headers, end: int) -> End:
        """The remote end of a session; queries have none but the address."""
        address, port = end_of(frame, headers.l3, headers.l4, end)
        return address, 0 if headers.protocol == ICMP else port

    def outward(self, frame: bytes, headers: Headers, flags: int) -> tuple[int, bytes | None]:
        """A packet from inside, perhaps to an external end of ours (REQ-9)."""
        protocol, l3, l4 = headers.protocol, headers.l3, headers.l4
        target = None
        if self.owns(addresses(frame, headers)[1]):
            target = self.outside.get((protocol, end_of(frame, l3, l4, DESTINATION)))
            if target is None or protocol == ICMP or not self.is_live(target):
                self.counted["unmapped"] += 1
                return OUTSIDE, None
        mapping = self.mapping_for(frame, headers)
        if mapping is None:
            self.counted["exhausted"] += 1
            return OUTSIDE, None
        remote = self.remote(frame, headers, DESTINATION)
        session = mapping.sessions.get(remote)
        if session is None or not self.session_lives(session):
            self.counted["started"] += 1
            mapping.sessions.pop(remote, None)
            session = mapping.sessions[remote] = Session(PHASES[protocol])
        session.see(INSIDE, flags, self.now_us)
        self.counted["outward"] += 1
        made = with_end(frame, l3, l4, SOURCE, mapping.outside)
        if target is None:
            return OUTSIDE, made
        self.counted["hairpinned"] += 1
        return INSIDE, self.inward(made, headers, target, flags)

    def mapping_for(self, frame: bytes, headers: Headers) -> Mapping | None:
        """The mapping of a packet's source; a new one has the end with which the packet left. None beyond the limit."""
        inside = end_of(frame, headers.l3, headers.l4, SOURCE)
        key = headers.protocol, inside
        mapping = self.mappings.get(key)
        if mapping is not None and self.is_live(mapping):
            return mapping
        if mapping is None:
            if self.ports_of[headers.protocol, inside[0]] == self.number("host_ports", 4096):
                return None
            self.ports_of[headers.protocol, inside[0]] += 1
        outside = self.choose(headers.protocol, inside) if self.left is None else self.learn(frame, headers, self.left)
        if outside is None:
            return None
        if mapping is None or mapping.outside != outside:
            if mapping is not None and self.outside.get((headers.protocol, mapping.outside)) is mapping:
                del self.outside[headers.protocol, mapping.outside]
            mapping = self.mappings[key] = Mapping(inside, outside)
        self.check(headers.protocol, mapping)
        self.outside[headers.protocol, outside] = mapping
        return mapping

    def choose(self, protocol: int, inside: End) -> End | None:
        """A free external end with the parity of the inside one; None if no port is left."""
        address = self.address_of.setdefault(inside[0], self.first + len(self.address_of) % self.addresses)
        key = protocol, address, inside[1] & 1
        port = self.next_port.get(key, FIRST_PORT + key[2])
        self.next_port[key] = port + 2
        return (address, port) if port <= LAST_PORT else None

    def learn(self, frame: bytes, headers: Headers, left: list[bytes]) -> End:
        """The external end with which a packet left, known by its identification."""
        number = frame[headers.l3 + 4 : headers.l3 + 6]
        ends = {
            end_of(other, found.l3, found.l4, SOURCE)
            for other in left
            if (found := read_headers(other)).l4 and found.protocol == headers.protocol
            if other[found.l3 + 4 : found.l3 + 6] == number and self.owns(addresses(other, found)[0])
        }
        taken = {end for end in ends if self.is_live(self.outside.get((headers.protocol, end)))}
        return min(ends - taken or ends, default=(0, 0))

    def check(self, protocol: int, mapping: Mapping) -> None:
        """Note what is wrong with the external end of a mapping that begins."""
        address, port = mapping.outside
        other = self.outside.get((protocol, mapping.outside))
        if self.address_of.setdefault(mapping.inside[0], address) != address:
            self.wrong.append(f"{mapping}: the host has another external address")
        if port < FIRST_PORT or (port ^ mapping.inside[1]) & 1:
            self.wrong.append(f"{mapping}: another parity, or below {FIRST_PORT}")
        if other is not None and other is not mapping and self.is_live(other):
            self.wrong.append(f"{mapping}: the port is that of {other}")

    def error(self, frame: bytes, headers: Headers, side: int) -> tuple[int, bytes | None]:
        """An ICMP error about a translated packet: both it and the packet that it quotes are translated (RFC 5508)."""
        made = self.translate_error(frame, headers, side)
        self.counted["unmapped" if made is None else "errors"] += 1
        inward = side == OUTSIDE or self.owns(addresses(frame, headers)[1])
        return INSIDE if inward else OUTSIDE, made

    def translate_error(self, frame: bytes, headers: Headers, side: int) -> bytes | None:
        """The frame of an error; None if it is invalid, or quotes no packet of a mapping."""
        found = find_quoted(frame, headers)
        if found is None or frame[found[0] + 9] not in PHASES:
            return None
        (inner, l4), l3, end, protocol = found, headers.l3, headers.end, frame[found[0] + 9]
        to = addresses(frame, headers)[1]
        source, destination = end_of(frame, inner, l4, SOURCE), end_of(frame, inner, l4, DESTINATION)
        made = frame
        if side == INSIDE:
            receiver = self.mappings.get((protocol, destination))
            if receiver is None or not self.is_live(receiver):
                return None
            made = with_end(made, inner, l4, DESTINATION, receiver.outside, end)
            made = with_address(made, l3, SOURCE, receiver.outside[0])
        if side == OUTSIDE or self.owns(to):
            sender = self.outside.get((protocol, source))
            if sender is None or source[0] != to or not self.is_live(sender):
                return None
            made = with_end(made, inner, l4, SOURCE, sender.inside, end)
            made = with_address(made, l3, DESTINATION, sender.inside[0])
        return with_icmp_checksum(made, headers)

    def counters(self) -> dict[str, int | Bounds]:
        own: dict[str, int | Bounds] = {"exhausted": 0, **self.counted, **self.reassembly.counters()}
        return {**own, "aged": (0, self.counted["started"]), "full": 0, "no_room": 0}
