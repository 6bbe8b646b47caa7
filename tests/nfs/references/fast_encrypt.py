"""FastEncrypt: ESP by ChaCha20-Poly1305 (RFC 7634), or a key stream over the first blocks of a payload."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from tests.nfs.references.endpoints import CHECKSUM_AT
from tests.nfs.references.esp import EspReference
from tests.nfs.references.esp_packets import ChaCha20
from tests.nfs.references.headers import INSIDE, OUTSIDE, TCP, UDP, Headers, read, updated
from tests.nfs.references.nf_run import NfRun
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.traffic import Sent, frames

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f0" * 2 + "a1b2c3d4"


class FastEncryptReference(EspReference):
    """Either end of the link; the light mode is exact."""

    nf = "FastEncrypt"
    variants = (
        {"key": KEY, "replay_window": "64"},
        {"key": KEY, "decrypt": "1", "in_udp": "1"},
        {"key": KEY, "blocks": "2"},
    )

    def prepare(self) -> None:
        super().prepare()
        self.encrypted_side = OUTSIDE if self.number("decrypt", 0) else INSIDE
        self.blocks = self.number("blocks", 0)

    def make_cipher(self) -> ChaCha20:
        return ChaCha20(bytes.fromhex(self.settings["key"]))

    def traffic(self, seed: int, n: int, run: NfRun) -> Iterator[Sent]:
        """Nothing comes encrypted in the light mode, which is its own inverse."""
        return frames(seed, n, self.mix()) if self.blocks else super().traffic(seed, n, run)

    def judge(self, burst: list[Sent], out: list[bytes], back: list[bytes]) -> list[str]:
        return (Reference if self.blocks else EspReference).judge(self, burst, out, back)

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        """The light mode only."""
        headers = read(sent.frame)
        if headers.kind == "malformed":
            self.counted["malformed"] += 1
            return [], []
        empty = headers.payload == headers.end or headers.fragment or headers.protocol not in (TCP, UDP)
        if headers.kind != "ipv4" or headers.l4 == 0 or empty:
            self.counted["passed"] += 1
            return [sent.frame], []
        self.counted["encrypted"] += 1
        return [self.combined(sent.frame, headers)], []

    def combined(self, frame: bytes, headers: Headers) -> bytes:
        """A frame whose first blocks of payload are combined with the key stream, its checksum updated."""
        l3, begin = headers.l3, headers.payload
        end = min(headers.end, begin + 64 * self.blocks)
        nonce = frame[l3 + 12 : l3 + 20] + frame[l3 + 4 : l3 + 6] + bytes([headers.protocol, 0])
        key = bytes.fromhex(self.settings["key"])[:32]
        cipher = Cipher(algorithms.ChaCha20(key, struct.pack("<I", 1) + nonce), None).encryptor()
        text = cipher.update(frame[begin:end])
        place = headers.l4 + CHECKSUM_AT[headers.protocol]
        before = int.from_bytes(frame[place : place + 2], "big")
        checksum = updated(before, even(frame[begin:end]), even(text))
        if headers.protocol == UDP:
            checksum = (checksum or 0xFFFF) if before else 0
        made = frame[:begin] + text + frame[end:]
        return made[:place] + checksum.to_bytes(2, "big") + made[place + 2 :]

    def counters(self) -> dict[str, int | Bounds]:
        return (Reference if self.blocks else EspReference).counters(self)


def even(data: bytes) -> bytes:
    """Whole words: an odd byte is followed by zero (RFC 1071)."""
    return data + bytes(len(data) % 2)
