"""LB: balances flows over backends by consistent hashing (Eisenbud et al., "Maglev", NSDI 2016)."""

import random
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from itertools import count, islice

import numpy as np
from numba import njit, uint64

from tests.reference.nfs.headers import (
    DESTINATION,
    ETHERNET,
    ICMP,
    ICMP_ERRORS,
    INSIDE,
    MORE_FRAGMENTS,
    OUTSIDE,
    SOURCE,
    TCP,
    UDP,
    Flow,
    Headers,
    addresses,
    end_of,
    error_about,
    find_quoted,
    flow_of,
    ipv4_header,
    read_headers,
    readdress,
    split_value,
    with_address,
    with_icmp_checksum,
    word_at,
)
from tests.reference.nfs.ipv6 import read_ip_headers
from tests.reference.nfs.model import FirstRun, FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent, mixed_frames
from tests.reference.nfs.tunnel import with_tag

MASK = (1 << 64) - 1


def split_mix(seed: int, n: int) -> list[int]:
    """The first numbers of SplitMix64 (Steele, Lea and Flood, 2014)."""
    made = []
    for _ in range(n):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        mixed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK
        made.append(mixed ^ mixed >> 31)
    return made


@njit  # compiled when it is called, as most runs of the tests do not
def _rotated(x, bits):  # type: ignore[no-untyped-def]
    return x << bits | x >> (uint64(64) - bits)


@njit
def _hash(words, key0, key1):  # type: ignore[no-untyped-def]
    a = key0 ^ uint64(0x736F6D6570736575)
    b = key1 ^ uint64(0x646F72616E646F6D)
    c = key0 ^ uint64(0x6C7967656E657261)
    d = key1 ^ uint64(0x7465646279746573)
    for at in range(len(words) + 1):
        rounds = 2
        if at == len(words):
            c ^= uint64(0xFF)
            rounds = 4
        else:
            d ^= words[at]
        for _ in range(rounds):
            a += b
            b = _rotated(b, uint64(13)) ^ a
            a = _rotated(a, uint64(32))
            c += d
            d = _rotated(d, uint64(16)) ^ c
            a += d
            d = _rotated(d, uint64(21)) ^ a
            c += b
            b = _rotated(b, uint64(17)) ^ c
            c = _rotated(c, uint64(32))
        if at < len(words):
            a ^= words[at]
    return a ^ b ^ c ^ d


class SipHash:
    """A keyed hash."""

    def __init__(self, seed: int) -> None:
        self.key = [np.uint64(number) for number in split_mix(seed, 2)]

    def __call__(self, data: bytes) -> int:
        """The hash of bytes: their last word has their length, modulo 256, in its highest byte."""
        padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 255])
        return int(_hash(np.frombuffer(bytearray(padded), dtype=np.uint64), *self.key))


FIRST = int(IPv4Address("198.18.0.1"))
FREE = -1


def fill_table(size: int, members: Mapping[int, tuple[int, int]]) -> list[int]:
    """Per entry of a table the backend that claimed it: they take turns, each in an order of its own (section 3.4).

    `members`: by backend its weight and the seed of its order: every skip-th entry from an offset on, both random.
    Where the size is even, skips are odd, so that each order reaches every entry. In round N, a backend has had N times
    its weight over the largest weight turns, rounded down.
    """
    table, orders = [FREE] * size, dict[int, tuple[int, int]]()
    for backend, (_, seed) in members.items():
        offset, skip = (number >> 32 for number in split_mix(seed, 2))
        skip = 1 + (skip * (size - 1) >> 32)
        orders[backend] = offset * size >> 32, skip | 1 if size % 2 == 0 else skip
    for backend in islice(_turns({backend: weight for backend, (weight, _) in members.items()}), size):
        at, skip = orders[backend]
        while table[at] != FREE:
            at = (at + skip) % size
        table[at] = backend
        orders[backend] = at, skip
    return table


def _turns(weights: Mapping[int, int]) -> Iterator[int]:
    largest = max(weights.values(), default=0)
    for number in count(1) if weights else ():
        for backend, weight in weights.items():
            if number * weight // largest > (number - 1) * weight // largest:
                yield backend


class LbModel(FunctionModel):
    """The backend of a flow is one of those that are up, the same for all its packets.

    Where the table is a power of two the split hash chooses it, as on a switch and a SmartNIC, and an ICMP error is a
    packet like others. Else which one is the function's choice: `judge` learns it from the first packet and demands it
    of the others; and an error goes to the backend of the flow that it quotes (RFC 5508, section 4). Shares of flows
    must be even. All else is exact: what is rewritten, replies, what passes. With gates, which IPv6 has too, a Tunnel
    behind each one writes its number as a VLAN.
    """

    nf = "LB"
    looks_at_source = True
    variants = (
        {"backends": "7", "down": "2,5", "address": str(int(IPv4Address("20.0.0.1")))},
        {"backends": "7"},
        {"backends": "2", "down": "0,1"},
        {"backends": "7", "table": "4096", "address": str(int(IPv4Address("20.0.0.1")))},
        {"backends": "7", "down": "2,5", "gates": "1"},
        {"file": "{folder}/backends", "table": "4096", "address": str(int(IPv4Address("20.0.0.1")))},
    )

    @classmethod
    def made_files(cls) -> dict[str, str]:
        return {"backends": "# backends\n192.0.2.9 3\n198.18.0.1\n192.0.2.8 2\n203.0.113.77 3\n"}

    def prepare(self) -> None:
        self.virtual = self.number("address", 0)
        size, self.seed = self.number("table", 65537), self.number("seed", 1)
        members = {at: (1, self.seed << 16 | at) for at in range(self.number("backends", 8))}
        self.addresses = [FIRST + number for number in members]
        if "file" in self.settings:
            listed = [line.split() for line in self.lines_of("file")]
            self.addresses = [int(IPv4Address(words[0])) for words in listed]
            weights = [int(words[1]) if len(words) > 1 else 1 for words in listed]
            members = {
                at: (weight, self.seed << 32 | address)
                for at, (address, weight) in enumerate(zip(self.addresses, weights, strict=True))
            }
        self.gates = self.number("gates", 0)
        self.read = read_ip_headers if self.gates else read_headers
        self.kinds: tuple[str, ...] = ("ipv4", "ipv6") if self.gates else ("ipv4",)
        if self.gates:
            gates = (f"g{at}: Tunnel vlan={at + 1}\nlb[{at}] -> g{at}\n" for at in members)
            self.chain = "lb: LB {settings}\n" + "".join(gates)
        for number in filter(None, self.settings.get("down", "").split(",")):
            del members[int(number)]
        self.weights = {self.addresses[number]: weight for number, (weight, _) in members.items()}
        self.up = [*self.weights]
        self.table = fill_table(size, members) if size & (size - 1) == 0 else []
        self.chosen: dict[Flow, int] = {}

    def mix(self) -> Mix:
        return Mix(flows=20000, ipv6=0.5, outside=0.0, tags=False) if self.gates else Mix(flows=20000)

    def traffic(self, seed: int, n: int, run: FirstRun) -> Iterator[Sent]:
        """Most packets are to the virtual address, or come from backends; some are errors about such packets."""
        rng, clients = random.Random(seed), list[tuple[bytes, bytes]]()
        own = struct.pack("!I", self.virtual or FIRST)
        for sent in mixed_frames(seed, n, self.mix()):
            headers, frame = read_headers(sent.frame), sent.frame
            backend = rng.choice((*self.addresses, self.addresses[-1] + 1))
            if clients and rng.random() < 0.02:
                client, datagram = rng.choice(clients[-500:])
                frame = self.error(rng, sent.side, client, datagram, struct.pack("!I", backend), own)
            elif headers.kind == "ipv4" and headers.l3 == ETHERNET and sum(frame[26:34]) % 4:
                end, to = (SOURCE, backend) if sent.side == OUTSIDE else (DESTINATION, int.from_bytes(own, "big"))
                frame = readdress(frame, headers.l3, headers.l4, end, to)
                if sent.side == INSIDE and headers.l4 and not headers.fragment:
                    clients.append((frame[26:30], frame[23:24] + frame[headers.l4 : headers.l4 + 28]))
            yield Sent(sent.time_us, sent.side, frame)

    @staticmethod
    def error(rng: random.Random, side: int, client: bytes, datagram: bytes, backend: bytes, own: bytes) -> bytes:
        """An error of a client about a reply, or of a backend or router about a client's packet."""
        protocol, segment = datagram[0], datagram[1:]
        if side == OUTSIDE:
            quote = ipv4_header(client, backend, protocol, len(segment)) + segment
            return error_about(rng, quote, rng.choice((backend, b"\x1e\0\0\1")), client, False)
        ports = segment[:4] if protocol == ICMP else segment[2:4] + segment[:2]
        quote = ipv4_header(own, client, protocol, len(segment)) + ports + segment[4:]
        return error_about(rng, quote, client, own, True)

    def take(self, sent: Sent) -> Left:
        """The frames that leave; where the choice is free, with the backend that `judge` has learned."""
        frame, headers = sent.frame, self.read(sent.frame)
        if headers.kind not in self.kinds:
            passed = self.balance(frame, headers, self.up[0]) if self.gates else frame
            return [passed] * self.passes(headers.kind), []
        if sent.side == OUTSIDE:
            return [self.give_back(frame, headers)], []
        if self.virtual and addresses(frame, headers)[1] != self.virtual:
            self.counted["passed"] += 1
            return [frame], []
        if not self.up:
            return self.drop("unserved")
        self.counted["balanced"] += 1
        self.counted["fragments"] += headers.fragment
        self.counted["errors"] += self.inner(frame, headers) is not None
        return [self.balance(frame, headers, self.backend(frame, headers))], []

    def backend(self, frame: bytes, headers: Headers) -> int:
        """The address of the backend of a packet."""
        key = self.key(frame, headers)
        if self.table:
            self.chosen[key] = self.addresses[self.table[split_value(frame, headers, self.seed) & len(self.table) - 1]]
        return self.chosen[key]

    def inner(self, frame: bytes, headers: Headers) -> tuple[int, int] | None:
        """Where the packet is that an ICMP error to its sender quotes; None for any other packet."""
        if (
            self.table
            or headers.kind != "ipv4"
            or headers.protocol != ICMP
            or headers.l4 == 0
            or headers.fragment
            or frame[headers.l4] not in ICMP_ERRORS
        ):
            return None
        found = find_quoted(frame, headers)
        to = frame[headers.l3 + 16 : headers.l3 + 20]
        return found if found is not None and frame[found[0] + 12 : found[0] + 16] == to else None

    def balance(self, frame: bytes, headers: Headers, to: int) -> bytes:
        """A packet to a backend, which is also the sender of a packet that it quotes; or with the VLAN of its gate."""
        if self.gates:
            return with_tag(frame, self.addresses.index(to) + 1)
        found = self.inner(frame, headers)
        if found is None:
            return readdress(frame, headers.l3, headers.l4, DESTINATION, to)
        made = readdress(frame, *found, SOURCE, to, headers.end)
        return with_icmp_checksum(with_address(made, headers.l3, DESTINATION, to), headers)

    def give_back(self, frame: bytes, headers: Headers) -> bytes:
        """A packet of a backend, as of the virtual address; so is the receiver of a packet that it quotes."""
        source, found = addresses(frame, headers)[0], self.inner(frame, headers)
        if found is not None and not self.is_backend(int.from_bytes(frame[found[0] + 16 : found[0] + 20], "big")):
            found = None
        if not self.virtual or not (self.is_backend(source) or found):
            self.counted["passed"] += 1
            return frame
        self.counted["returned"] += 1
        self.counted["errors"] += found is not None
        made = frame if found is None else readdress(frame, *found, DESTINATION, self.virtual, headers.end)
        if self.is_backend(source):
            made = readdress(made, headers.l3, headers.l4, SOURCE, self.virtual)
        return made if found is None else with_icmp_checksum(made, headers)

    def is_backend(self, address: int) -> bool:
        """Whether an address is that of a backend, up or down."""
        return address in self.addresses

    def key(self, frame: bytes, headers: Headers) -> Flow:
        """What the choice depends on: fragments and packets without ports have addresses and protocol only."""
        found = self.inner(frame, headers)
        if found is None:
            source, destination, protocol, *ports = flow_of(frame, headers)
            if headers.fragment and headers.kind == "ipv6":
                protocol = 0  # which not all fragments have
            return (source, destination, protocol, *((0, 0) if headers.fragment else (ports[0], ports[1])))
        l3, l4 = found
        (to, to_port), (by, by_port) = end_of(frame, l3, l4, SOURCE), end_of(frame, l3, l4, DESTINATION)
        fragment = word_at(frame, l3 + 6) & MORE_FRAGMENTS
        if fragment or frame[l3 + 9] not in (TCP, UDP):
            to_port = by_port = 0
        return by, to, frame[l3 + 9], by_port, to_port

    def judge(self, burst: list[Sent], out: list[bytes], back: list[bytes]) -> list[str]:
        """Learn the backends of new flows from what came out: in which other frames the choice is checked."""
        for sent in burst:
            headers = self.read(sent.frame)
            if sent.side == OUTSIDE or headers.kind not in self.kinds or not self.up or self.table:
                continue
            key = self.key(sent.frame, headers)
            if key not in self.chosen:
                learned = [to for to in self.up if self.balance(sent.frame, headers, to) in out]
                self.chosen[key] = learned[0] if learned else self.up[0]
        return super().judge(burst, out, back)

    def finish(self) -> list[str]:
        """Whether flows are spread by weight, within six standard deviations."""
        balanced = [to for key, to in self.chosen.items() if not self.virtual or key[1] == self.virtual]
        counts = Counter(balanced)
        means = {to: weight * len(balanced) / sum(self.weights.values()) for to, weight in self.weights.items()}
        return [
            f"backend {self.addresses.index(to)} has {counts[to]} flows, not about {mean:.0f}"
            for to, mean in means.items()
            if abs(counts[to] - mean) > 6 * mean**0.5 + 1
        ]
