"""What functions that scan payloads have in common."""

from __future__ import annotations

import random

from tests.nfs.references.headers import Headers
from tests.nfs.references.rules import Rule, matching, rules
from tests.nfs.references.traffic import Mix, random_payload

BUFFER = 2048
"""Bytes of a frame in its first buffer: of a longer frame only these are scanned."""


class Scan:
    """Scans UDP, TCP and ICMP payloads, and counts."""

    def __init__(self) -> None:
        self.counted = dict.fromkeys(("other", "malformed", "scanned", "partial", "fragments", "matches"), 0)

    def payload(self, frame: bytes, headers: Headers) -> tuple[list[Rule], bool]:
        """The rules that an IPv4 packet matches, and whether bytes of it were not scanned."""
        self.counted["fragments"] += headers.later
        if headers.payload == 0:
            return [], headers.later
        whole = frame[headers.payload : headers.end]
        scanned = frame[headers.payload : min(headers.end, BUFFER)]
        partial = len(scanned) < len(whole)
        self.counted["partial"] += partial
        self.counted["scanned"] += len(scanned) > 0
        matched = matching(scanned) if scanned else []
        self.counted["matches"] += len(matched)
        return matched, headers.later or partial


def scan_payload(rng: random.Random) -> bytes:
    """A payload that often matches a rule, or is close to one."""
    chance, payload = rng.random(), random_payload(rng)
    if chance < 0.6:
        return payload
    rule = rng.choice(rules()).witness
    if chance < 0.7:
        at = rng.randrange(len(rule))
        rule = rule[:at] + bytes([rule[at] ^ 1 << rng.randrange(8)]) + rule[at + 1 :]
    if chance > 0.95:
        rule += rng.choice(rules()).witness
    at = rng.randrange(len(payload) + 1)
    return payload[:at] + rule + payload[at:]


def scan_mix() -> Mix:
    """Traffic with payloads that match."""
    return Mix(flows=20000, payload=scan_payload)
