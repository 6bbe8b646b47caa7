"""Tunnel: puts a VLAN tag on packets (IEEE 802.1Q)."""

from __future__ import annotations

import struct

from tests.nfs.references.headers import ETHERNET, TAGS
from tests.nfs.references.reference import Reference
from tests.nfs.references.traffic import Mix, Sent


def tag_at(frame: bytes, at: int) -> bool:
    """Whether a tag protocol identifier is at `at`."""
    return len(frame) >= at + 2 and int.from_bytes(frame[at : at + 2], "big") in TAGS


def tag(frame: bytes, vlan: int, priority: int = 0) -> bytes:
    """A frame with one more tag, the outer one."""
    return frame[:12] + struct.pack("!HH", 0x8100, priority << 13 | vlan) + frame[12:]


def is_full(frame: bytes) -> bool:
    """Whether a frame has two whole tags."""
    return len(frame) >= ETHERNET + 4 and tag_at(frame, 12) and tag_at(frame, 16)


class TunnelReference(Reference):
    """A frame with less than two tags gets one more; others are freed."""

    nf = "Tunnel"
    variants = ({}, {"vlan": "7", "priority": "5"})

    def mix(self) -> Mix:
        return Mix(odd=0.3)

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        if len(sent.frame) < ETHERNET:
            self.counted["malformed"] += 1
            return [], []
        if is_full(sent.frame):
            self.counted["full"] += 1
            return [], []
        self.counted["tagged"] += 1
        return [tag(sent.frame, self.number("vlan", 100), self.number("priority", 0))], []
