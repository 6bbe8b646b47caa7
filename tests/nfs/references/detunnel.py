"""Detunnel: takes the outer VLAN tag off packets (IEEE 802.1Q and 802.1ad)."""

from __future__ import annotations

from tests.nfs.references.headers import ETHERNET, TAGS
from tests.nfs.references.reference import Reference
from tests.nfs.references.traffic import Mix, Sent

ANY = 4095


class DetunnelReference(Reference):
    """A tag is taken off, of any VLAN or of one; other tags are freed, frames without a tag pass or are freed."""

    nf = "Detunnel"
    variants = ({"vlan": "100"}, {}, {"untagged": "0"})

    def mix(self) -> Mix:
        return Mix(odd=0.6)

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        frame = sent.frame
        if len(frame) < ETHERNET:
            self.counted["malformed"] += 1
            return [], []
        if int.from_bytes(frame[12:14], "big") not in TAGS:
            self.counted["untagged"] += 1
            return [frame] if self.number("untagged", 1) else [], []
        if len(frame) < ETHERNET + 4:
            self.counted["malformed"] += 1
            return [], []
        vlan = self.number("vlan", ANY)
        if vlan not in (ANY, int.from_bytes(frame[14:16], "big") & 0xFFF):
            self.counted["foreign"] += 1
            return [], []
        self.counted["detagged"] += 1
        return [frame[:12] + frame[16:]], []
