"""LB: balances flows over backends by consistent hashing (Eisenbud et al., "Maglev", NSDI 2016)."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Address

from tests.nfs.references.headers import (
    ETHERNET,
    OUTSIDE,
    TCP,
    UDP,
    Headers,
    addresses,
    flow,
    read,
    updated,
)
from tests.nfs.references.nf_run import NfRun
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.traffic import Mix, Sent

FIRST = int(IPv4Address("198.18.0.1"))
Key = tuple[int, int, int, int, int]


def rewritten(frame: bytes, headers: Headers, at: int, to: int) -> bytes:
    """A frame with another address at `at`, and the checksums of IPv4, UDP and TCP updated."""
    l3, new = headers.l3, struct.pack("!I", to)
    old = frame[at : at + 4]
    made = bytearray(frame)
    made[at : at + 4] = new
    places = [l3 + 10]
    if headers.l4 and headers.protocol in (TCP, UDP):
        places.append(headers.l4 + (16 if headers.protocol == TCP else 6))
    for place in places:
        was = int.from_bytes(frame[place : place + 2], "big")
        if place != l3 + 10 and headers.protocol == UDP and was == 0:
            continue
        now = updated(was, old, new)
        if place != l3 + 10 and headers.protocol == UDP:
            now = now or 0xFFFF
        made[place : place + 2] = now.to_bytes(2, "big")
    return bytes(made)


class LbReference(Reference):
    """The backend of a flow is the function's choice, but the same for all its packets, among those that are up.

    `judge` learns it from the first packet and demands it of the others; shares of flows must be even. All else is
    exact: rewriting, replies, what passes. The generated errors of ICMP are none that quote a balanced flow.
    """

    nf = "LB"
    variants = (
        {"backends": "7", "down": "2,5", "address": str(int(IPv4Address("20.0.0.1")))},
        {"backends": "7"},
        {"backends": "2", "down": "0,1"},
    )

    def prepare(self) -> None:
        self.virtual = self.number("address", 0)
        self.backends = self.number("backends", 8)
        down = {int(one) for one in self.settings.get("down", "").split(",") if one}
        self.up = [FIRST + i for i in range(self.backends) if i not in down]
        self.chosen: dict[Key, int] = {}

    def traffic(self, seed: int, n: int, run: NfRun) -> Iterator[Sent]:
        """Most packets are to the virtual address, or come from backends."""
        own = struct.pack("!I", self.virtual)
        for i, sent in enumerate(super().traffic(seed, n, run)):
            headers = read(sent.frame)
            if self.virtual and headers.has_ipv4 and headers.l3 == ETHERNET and i % 4:
                backend = struct.pack("!I", FIRST + i % (self.backends + 1))
                at, to = (26, backend) if sent.side == OUTSIDE else (30, own)
                old = Headers(**{name: getattr(headers, name) for name in Headers.__slots__})
                sent = Sent(sent.time_us, sent.side, rewritten(sent.frame, old, at, int.from_bytes(to, "big")))
            yield sent

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
        source, destination = addresses(frame, headers)
        if sent.side == OUTSIDE:
            if not self.virtual or not FIRST <= source < FIRST + self.backends:
                self.counted["passed"] += 1
                return [frame], []
            self.counted["returned"] += 1
            return [rewritten(frame, headers, headers.l3 + 12, self.virtual)], []
        if self.virtual and destination != self.virtual:
            self.counted["passed"] += 1
            return [frame], []
        if not self.up:
            self.counted["unserved"] += 1
            return [], []
        self.counted["balanced"] += 1
        self.counted["fragments"] += headers.fragment
        return [rewritten(frame, headers, headers.l3 + 16, self.chosen[self.key(frame, headers)])], []

    def key(self, frame: bytes, headers: Headers) -> Key:
        """What the choice depends on: fragments and packets without ports have addresses and protocol only."""
        source, destination, protocol, *ports = flow(frame, headers)
        return (source, destination, protocol, *((0, 0) if headers.fragment else (ports[0], ports[1])))

    def judge(self, burst: list[Sent], out: list[bytes], back: list[bytes]) -> list[str]:
        """Learn the backends of new flows from what came out: in which other frames the choice is checked."""
        for sent in burst:
            headers = read(sent.frame)
            if sent.side == OUTSIDE or headers.kind != "ipv4" or not self.up:
                continue
            key = self.key(sent.frame, headers)
            if key in self.chosen:
                continue
            at = headers.l3 + 16
            learned = [to for to in self.up if rewritten(sent.frame, headers, at, to) in out]
            self.chosen[key] = learned[0] if learned else self.up[0]
        return super().judge(burst, out, back)

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, "errors": 0}

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
