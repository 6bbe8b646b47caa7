"""LB: balances flows over backends by consistent hashing (Eisenbud et al., "Maglev", NSDI 2016)."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Address

from tests.nfs.references.endpoints import DESTINATION, SOURCE, end_of, with_address, with_end
from tests.nfs.references.headers import (
    ETHERNET,
    ICMP,
    ICMP_ERRORS,
    INSIDE,
    MORE_FRAGMENTS,
    OUTSIDE,
    TCP,
    UDP,
    Headers,
    addresses,
    flow,
    ipv4_header,
    read,
)
from tests.nfs.references.icmp_errors import quoted, with_icmp_checksum
from tests.nfs.references.nat_traffic import error_about
from tests.nfs.references.nf_run import NfRun
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.traffic import Mix, Sent

FIRST = int(IPv4Address("198.18.0.1"))
Key = tuple[int, int, int, int, int]


def rewritten(frame: bytes, l3: int, l4: int, end: int, to: int, until: int | None = None) -> bytes:
    """A frame with another address, and the checksums of IPv4, UDP and TCP updated."""
    if l4 == 0 or frame[l3 + 9] not in (TCP, UDP):
        return with_address(frame, l3, end, to)
    return with_end(frame, l3, l4, end, (to, end_of(frame, l3, l4, end)[1]), until)


class LbReference(Reference):
    """The backend of a flow is the function's choice, but the same for all its packets, among those that are up.

    `judge` learns it from the first packet and demands it of the others; shares of flows must be even. An ICMP error
    goes to the backend of the flow that it quotes (RFC 5508, section 4), unless the table is a power of two: then it is
    a packet like others. All else is exact: what is rewritten, replies, what passes.
    """

    nf = "LB"
    variants = (
        {"backends": "7", "down": "2,5", "address": str(int(IPv4Address("20.0.0.1")))},
        {"backends": "7"},
        {"backends": "2", "down": "0,1"},
        {"backends": "7", "table": "4096", "address": str(int(IPv4Address("20.0.0.1")))},
    )

    def prepare(self) -> None:
        self.virtual = self.number("address", 0)
        self.backends = self.number("backends", 8)
        table = self.number("table", 65537)
        self.portable = table & (table - 1) == 0
        down = {int(one) for one in self.settings.get("down", "").split(",") if one}
        self.up = [FIRST + i for i in range(self.backends) if i not in down]
        self.chosen: dict[Key, int] = {}

    def traffic(self, seed: int, n: int, run: NfRun) -> Iterator[Sent]:
        """Most packets are to the virtual address, or come from backends; some are errors about such packets."""
        rng, clients = random.Random(seed), list[tuple[bytes, bytes]]()
        own = struct.pack("!I", self.virtual or FIRST)
        for sent in super().traffic(seed, n, run):
            headers, frame = read(sent.frame), sent.frame
            backend = FIRST + rng.randrange(self.backends + 1)
            if clients and rng.random() < 0.02:
                client, datagram = rng.choice(clients[-500:])
                frame = self.error(rng, sent.side, client, datagram, struct.pack("!I", backend), own)
            elif headers.kind == "ipv4" and headers.l3 == ETHERNET and sum(frame[26:34]) % 4:
                end, to = (SOURCE, backend) if sent.side == OUTSIDE else (DESTINATION, int.from_bytes(own, "big"))
                frame = rewritten(frame, headers.l3, headers.l4, end, to)
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

    def mix(self) -> Mix:
        return Mix(flows=20000)

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        """The frames that leave; for a balanced flow that is new, with the backend that `judge` has learned."""
        frame, headers = sent.frame, read(sent.frame)
        if headers.kind == "malformed":
            self.counted["malformed"] += 1
            return [], []
        if headers.kind != "ipv4":
            self.counted["other"] += 1
            return [frame], []
        if sent.side == OUTSIDE:
            return [self.given_back(frame, headers)], []
        if self.virtual and addresses(frame, headers)[1] != self.virtual:
            self.counted["passed"] += 1
            return [frame], []
        if not self.up:
            self.counted["unserved"] += 1
            return [], []
        self.counted["balanced"] += 1
        self.counted["fragments"] += headers.fragment
        self.counted["errors"] += self.inner(frame, headers) is not None
        return [self.balanced(frame, headers, self.chosen[self.key(frame, headers)])], []

    def inner(self, frame: bytes, headers: Headers) -> tuple[int, int] | None:
        """Where the packet is that an ICMP error to its sender quotes; None for any other packet."""
        if (
            self.portable
            or headers.protocol != ICMP
            or headers.l4 == 0
            or headers.fragment
            or frame[headers.l4] not in ICMP_ERRORS
        ):
            return None
        found = quoted(frame, headers)
        to = frame[headers.l3 + 16 : headers.l3 + 20]
        return found if found is not None and frame[found[0] + 12 : found[0] + 16] == to else None

    def balanced(self, frame: bytes, headers: Headers, to: int) -> bytes:
        """A packet to a backend, which is also the sender of a packet that it quotes."""
        found = self.inner(frame, headers)
        if found is None:
            return rewritten(frame, headers.l3, headers.l4, DESTINATION, to)
        made = rewritten(frame, *found, SOURCE, to, headers.end)
        return with_icmp_checksum(with_address(made, headers.l3, DESTINATION, to), headers)

    def given_back(self, frame: bytes, headers: Headers) -> bytes:
        """A packet of a backend, as of the virtual address; so is the receiver of a packet that it quotes."""
        source, found = addresses(frame, headers)[0], self.inner(frame, headers)
        if found is not None and not self.is_backend(int.from_bytes(frame[found[0] + 16 : found[0] + 20], "big")):
            found = None
        if not self.virtual or not (self.is_backend(source) or found):
            self.counted["passed"] += 1
            return frame
        self.counted["returned"] += 1
        self.counted["errors"] += found is not None
        made = frame if found is None else rewritten(frame, *found, DESTINATION, self.virtual, headers.end)
        if self.is_backend(source):
            made = rewritten(made, headers.l3, headers.l4, SOURCE, self.virtual)
        return made if found is None else with_icmp_checksum(made, headers)

    def is_backend(self, address: int) -> bool:
        """Whether an address is that of a backend, up or down."""
        return FIRST <= address < FIRST + self.backends

    def key(self, frame: bytes, headers: Headers) -> Key:
        """What the choice depends on: fragments and packets without ports have addresses and protocol only."""
        found = self.inner(frame, headers)
        if found is None:
            source, destination, protocol, *ports = flow(frame, headers)
            return (source, destination, protocol, *((0, 0) if headers.fragment else (ports[0], ports[1])))
        l3, l4 = found
        (to, to_port), (by, by_port) = end_of(frame, l3, l4, SOURCE), end_of(frame, l3, l4, DESTINATION)
        fragment = int.from_bytes(frame[l3 + 6 : l3 + 8], "big") & MORE_FRAGMENTS
        if fragment or frame[l3 + 9] not in (TCP, UDP):
            to_port = by_port = 0
        return by, to, frame[l3 + 9], by_port, to_port

    def judge(self, burst: list[Sent], out: list[bytes], back: list[bytes]) -> list[str]:
        """Learn the backends of new flows from what came out: in which other frames the choice is checked."""
        for sent in burst:
            headers = read(sent.frame)
            if sent.side == OUTSIDE or headers.kind != "ipv4" or not self.up:
                continue
            key = self.key(sent.frame, headers)
            if key not in self.chosen:
                learned = [to for to in self.up if self.balanced(sent.frame, headers, to) in out]
                self.chosen[key] = learned[0] if learned else self.up[0]
        return super().judge(burst, out, back)

    def counters(self) -> dict[str, int | Bounds]:
        return dict(self.counted)

    def finish(self) -> list[str]:
        """Whether flows are spread evenly, within six standard deviations."""
        balanced = [to for key, to in self.chosen.items() if not self.virtual or key[1] == self.virtual]
        if not self.up:
            return []
        mean, counts = len(balanced) / len(self.up), Counter(balanced)
        return [
            f"backend {to - FIRST} has {counts[to]} flows, not about {mean:.0f}"
            for to in self.up
            if abs(counts[to] - mean) > 6 * mean**0.5 + 1
        ]
