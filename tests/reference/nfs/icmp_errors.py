"""ICMP errors that a function sends back about a packet (RFC 792, RFC 1812, section 4.3)."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping

from tests.reference.nfs.headers import (
    ICMP,
    ICMP_ERRORS,
    IPV4,
    OFFSET,
    Headers,
    addresses,
    header_is_right,
    internet_checksum,
    ipv4_header,
    ones_sum,
    word_at,
)
from tests.reference.nfs.traffic import INSIDE_MAC, OUTSIDE_MAC

MOST = 576
"""Bytes of an error at most (RFC 1812, section 4.3.2.3)."""
CONTROL = 0xC0
"""Internetwork control (RFC 1812, section 4.3.2.5)."""


def is_host(address: int) -> bool:
    """Whether an address can belong to one host (RFC 1812, section 5.3.7)."""
    first = address >> 24
    return first not in (0, 127) and first < 224


def find_quoted(frame: bytes, headers: Headers) -> tuple[int, int] | None:
    """Where the IPv4 header of the packet that an error quotes is, and what follows that header.

    None if a checksum is wrong, there are less than 8 bytes behind it, or it is a later fragment (RFC 5508, REQ-3).
    """
    l3, end = headers.payload, headers.end
    length = (frame[l3] & 15) * 4 if end - l3 >= 20 else 0
    if length < 20 or frame[l3] >> 4 != 4 or end - l3 < length + 8:
        return None
    later = word_at(frame, l3 + 6) & OFFSET
    right = header_is_right(frame, l3) and ones_sum(frame[headers.l4 : end]) == 0xFFFF
    return None if later or not right else (l3, l3 + length)


def with_icmp_checksum(frame: bytes, headers: Headers) -> bytes:
    """A frame with the checksum of its ICMP message computed anew."""
    l4 = headers.l4
    message = frame[l4 : l4 + 2] + b"\0\0" + frame[l4 + 4 : headers.end]
    return frame[: l4 + 2] + internet_checksum(message).to_bytes(2, "big") + frame[l4 + 4 :]


class Reporter:
    """Answers at a rate; its errors are numbered in their identifications, from 0 on: the function's free choice."""

    def __init__(self, address: bytes, settings: Mapping[str, str]) -> None:
        self.address = address
        self.per_us = float(settings.get("errors_per_s", 1000)) / 1e6
        self.tokens = self.most = float(settings.get("errors_at_once", 100))
        self.last_us = self.made = 0

    def may_answer(self, frame: bytes, headers: Headers) -> bool:
        """Whether an error about a frame is allowed (RFC 1812, section 4.3.2.7)."""
        source, destination = addresses(frame, headers)
        if headers.later or frame[0] & 1 or not is_host(source) or not is_host(destination):
            return False
        return headers.protocol != ICMP or (headers.l4 != 0 and frame[headers.l4] not in ICMP_ERRORS)

    def within_rate(self, now_us: int) -> bool:
        """Take a token, if there is one."""
        self.tokens = min(self.tokens + (now_us - self.last_us) * self.per_us, self.most)
        self.last_us = now_us
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def answer(self, frame: bytes, headers: Headers, kind: tuple[int, int], mtu: int = 0) -> bytes:
        """The error to the sender of a frame, with as much of it as fits."""
        l3 = headers.l3
        quote = frame[l3 : min(headers.end, l3 + MOST - 28)]
        message = struct.pack("!BBHHH", *kind, 0, 0, mtu) + quote
        message = message[:2] + internet_checksum(message).to_bytes(2, "big") + message[4:]
        fields = {"tos": CONTROL, "id": self.made & 0xFFFF}
        header = ipv4_header(self.address, frame[l3 + 12 : l3 + 16], ICMP, len(message), **fields)
        self.made += 1
        return frame[6:12] + frame[:6] + frame[12:l3] + header + message

    def report(
        self, frame: bytes, headers: Headers, kind: tuple[int, int], now_us: int, mtu: int = 0
    ) -> tuple[str, list[bytes]]:
        """The counter of an error about a frame, and the error if there is one."""
        if not self.may_answer(frame, headers):
            return "errors_suppressed", []
        if not self.within_rate(now_us):
            return "errors_limited", []
        return "errors_sent", [self.answer(frame, headers, kind, mtu)]


def error_about(rng: random.Random, quoted: bytes, source: bytes, destination: bytes, outward: bool) -> bytes:
    """A frame with an ICMP error that quotes a datagram, sometimes damaged."""
    kind = rng.choice(((3, 1), (3, 3), (3, 4), (11, 0), (12, 0), (4, 0)))
    quote = quoted[: rng.choice((28, 36, 60, 200, 24))]
    message = struct.pack("!BBHHH", *kind, 0, 0, rng.choice((0, 1400))) + quote
    checksum = internet_checksum(message) ^ (rng.random() < 0.03)
    message = message[:2] + checksum.to_bytes(2, "big") + message[4:]
    addresses = OUTSIDE_MAC + INSIDE_MAC if outward else INSIDE_MAC + OUTSIDE_MAC
    return addresses + IPV4.to_bytes(2, "big") + ipv4_header(source, destination, ICMP, len(message)) + message
