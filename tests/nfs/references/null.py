"""Null: passes all packets."""

from __future__ import annotations

from tests.nfs.references.reference import Reference
from tests.nfs.references.traffic import Sent


class NullReference(Reference):
    """Every frame leaves as it came."""

    nf = "Null"

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        self.counted["passed"] += 1
        return [sent.frame], []
