"""PacketFilter: drops packets whose payload matches a rule, and those that could not be scanned completely."""

from __future__ import annotations

from tests.nfs.references.headers import read
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.scans import Scan, scan_mix
from tests.nfs.references.traffic import Mix, Sent


class PacketFilterReference(Reference):
    """All that is not UDP, TCP or ICMP in IPv4 passes."""

    nf = "PacketFilter"

    def prepare(self) -> None:
        self.scan = Scan()

    def mix(self) -> Mix:
        return scan_mix()

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        headers = read(sent.frame)
        if headers.kind != "ipv4":
            malformed = headers.kind == "malformed"
            self.scan.counted["malformed" if malformed else "other"] += 1
            return [] if malformed else [sent.frame], []
        matched, missed = self.scan.payload(sent.frame, headers)
        drops = bool(matched) or missed
        self.counted["dropped"] += drops
        return [] if drops else [sent.frame], []

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, **self.scan.counted, "failed": 0}
