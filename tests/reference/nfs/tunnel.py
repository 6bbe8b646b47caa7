"""Tunnel and Detunnel: put a VLAN tag on packets, and take the outer one off (IEEE 802.1Q and 802.1ad)."""

import struct

from tests.reference.nfs.headers import ETHERNET, TAGS, word_at
from tests.reference.nfs.model import FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent

ANY_VLAN = 4095


def with_tag(frame: bytes, vlan: int, priority: int = 0) -> bytes:
    """A frame with one more tag, the outer one."""
    return frame[:12] + struct.pack("!HH", 0x8100, priority << 13 | vlan) + frame[12:]


def is_full(frame: bytes) -> bool:
    """Whether a frame has two whole tags."""
    return len(frame) >= ETHERNET + 4 and word_at(frame, 12) in TAGS and word_at(frame, 16) in TAGS


class TunnelModel(FunctionModel):
    """A frame with less than two tags gets one more; others are dropped."""

    nf = "Tunnel"
    variants = ({}, {"vlan": "7", "priority": "5"})

    def mix(self) -> Mix:
        return Mix(odd=0.3)

    def take(self, sent: Sent) -> Left:
        if len(sent.frame) < ETHERNET or is_full(sent.frame):
            return self.drop("malformed" if len(sent.frame) < ETHERNET else "full")
        self.counted["tagged"] += 1
        return [with_tag(sent.frame, self.number("vlan", 100), self.number("priority", 0))], []


class DetunnelModel(FunctionModel):
    """A tag is taken off, of any VLAN or of one; other tags are dropped, frames without a tag pass or are dropped."""

    nf = "Detunnel"
    variants = ({"vlan": "100"}, {}, {"untagged": "0"})

    def mix(self) -> Mix:
        return Mix(odd=0.6)

    def take(self, sent: Sent) -> Left:
        frame = sent.frame
        if len(frame) < ETHERNET:
            return self.drop("malformed")
        if word_at(frame, 12) not in TAGS:
            self.counted["untagged"] += 1
            return [frame] * self.number("untagged", 1), []
        if len(frame) < ETHERNET + 4:
            return self.drop("malformed")
        if self.number("vlan", ANY_VLAN) not in (ANY_VLAN, word_at(frame, 14) & 0xFFF):
            return self.drop("foreign")
        self.counted["detagged"] += 1
        return [frame[:12] + frame[16:]], []
