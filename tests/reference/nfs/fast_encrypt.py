"""FastEncrypt: ESP by ChaCha20-Poly1305 (RFC 7634), or a key stream over the first blocks of a payload."""

import struct
from collections.abc import Iterator

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tests.reference.nfs.esp import ICV, EspModel
from tests.reference.nfs.headers import INSIDE, OUTSIDE, Headers, read_headers, refresh_l4_checksum
from tests.reference.nfs.lb import split_mix
from tests.reference.nfs.model import Contract, FirstRun, FunctionModel, Left
from tests.reference.nfs.traffic import Sent, mixed_frames

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f0" * 2 + "a1b2c3d4"
BLOCK = 64  # bytes of a block of key stream


class ChaCha20:
    """ChaCha20-Poly1305 (RFC 7634); the key ends with the salt."""

    iv_bytes, block, icv = 8, 4, ICV

    def __init__(self, key: bytes) -> None:
        self.cipher, self.salt = ChaCha20Poly1305(key[:32]), key[32:]

    def seal(self, header: bytes, iv: bytes, plain: bytes) -> bytes:
        return self.cipher.encrypt(self.salt + iv, plain, header)

    def open(self, header: bytes, iv: bytes, sealed: bytes) -> bytes | None:
        try:
            return self.cipher.decrypt(self.salt + iv, sealed, header)
        except InvalidTag:
            return None


class FastEncryptModel(EspModel):
    """Either end of the link; or, with `blocks`, the light mode.

    That encrypts the first bytes of UDP and TCP payloads in place, and is no protection: the same packet has the same
    key stream, and nothing is authenticated. Done twice it undoes itself. All other frames pass by default.
    """

    nf = "FastEncrypt"
    variants = (
        {"key": KEY, "replay_window": "64"},
        {"key": KEY, "decrypt": "1", "in_udp": "1"},
        {"key": KEY, "blocks": "2"},
        {"key": KEY, "blocks": "2", "unknown": "drop"},
    )

    def prepare(self) -> None:
        self.key = bytes.fromhex(self.settings.get("key", bytes(range(36)).hex()))
        super().prepare()
        self.encrypted_side = OUTSIDE if self.number("decrypt", 0) else INSIDE
        self.blocks = self.number("blocks", 0)
        self.contract = Contract.BYTES if self.blocks else Contract.ESP
        self.unknown = self.arp = "pass" if self.blocks else "drop"
        self.looks_at_source = self.changes_payload = self.blocks > 0

    def make_cipher(self) -> ChaCha20:
        return ChaCha20(self.key)

    def make_iv(self, side: int, sequence: int) -> bytes:
        """A counter from a random number; its highest bit is that of the direction."""
        count = split_mix(self.seed, 1)[0] + self.sent & (1 << 63) - 1
        return (count | (side == OUTSIDE) << 63).to_bytes(8, "big")

    def traffic(self, seed: int, n: int, run: FirstRun) -> Iterator[Sent]:
        """Nothing comes encrypted in the light mode, which is its own inverse."""
        return mixed_frames(seed, n, self.mix()) if self.blocks else super().traffic(seed, n, run)

    def take_burst(self, burst: list[Sent]) -> Left:
        return FunctionModel.take_burst(self, burst) if self.blocks else super().take_burst(burst)

    def take(self, sent: Sent) -> Left:
        if not self.blocks:
            return super().take(sent)
        headers = read_headers(sent.frame)
        if headers.kind != "ipv4":
            return [sent.frame] * self.passes(headers.kind), []
        if not headers.has_ports or headers.fragment or headers.payload == headers.end:
            self.counted["passed"] += 1
            return [sent.frame], []
        self.counted["encrypted"] += 1
        return [self.combine(sent.frame, headers)], []

    def combine(self, frame: bytes, headers: Headers) -> bytes:
        """A frame whose first blocks of payload are combined with the key stream, its checksum updated."""
        l3, begin = headers.l3, headers.payload
        end = min(headers.end, begin + BLOCK * self.blocks)
        nonce = frame[l3 + 12 : l3 + 20] + frame[l3 + 4 : l3 + 6] + bytes([headers.protocol, 0])
        cipher = Cipher(algorithms.ChaCha20(self.key[:32], struct.pack("<I", 1) + nonce), None).encryptor()
        made = bytearray(frame)
        made[begin:end] = cipher.update(frame[begin:end])
        refresh_l4_checksum(made, headers.l4, headers.protocol, frame[begin:end], bytes(made[begin:end]))
        return bytes(made)
