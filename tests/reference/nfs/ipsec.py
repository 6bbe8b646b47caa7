"""IPSec: packets from inside leave as ESP by AES-128-CTR and HMAC-SHA1-96, in tunnel or transport mode (RFC 4303)."""

from __future__ import annotations

import hmac

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tests.reference.nfs.esp import EspModel, EspParts, content_of
from tests.reference.nfs.headers import DONT_FRAGMENT, INSIDE, Headers, ipv4_header, read_headers, word_at
from tests.reference.nfs.traffic import Sent

IPIP = 4
KEYS = {"key": "8d5f0c6be1a0472f9b3ce75d2460a18e", "nonce": "00e0017b", "hmac_key": "5a" * 8 + "c3" * 12}
LOCAL, REMOTE = bytes([192, 0, 2, 1]), bytes([198, 51, 100, 1])


class AesCtr:
    """AES-128 in counter mode (RFC 3686) with HMAC-SHA1-96 (RFC 2404)."""

    iv_bytes, block, icv = 8, 4, 12

    def __init__(self, key: bytes, nonce: bytes, hmac_key: bytes) -> None:
        self.cipher, self.nonce, self.hmac_key = algorithms.AES(key), nonce, hmac_key

    def crypt(self, iv: bytes, text: bytes) -> bytes:
        """Encrypted or decrypted bytes, which is the same."""
        encryptor = Cipher(self.cipher, modes.CTR(self.nonce + iv + b"\0\0\0\1")).encryptor()
        return encryptor.update(text) + encryptor.finalize()

    def check(self, header: bytes, iv: bytes, text: bytes) -> bytes:
        """The integrity check value."""
        return hmac.digest(self.hmac_key, header + iv + text, "sha1")[: self.icv]

    def seal(self, header: bytes, iv: bytes, plain: bytes) -> bytes:
        text = self.crypt(iv, plain)
        return text + self.check(header, iv, text)

    def open(self, header: bytes, iv: bytes, sealed: bytes) -> bytes | None:
        text, icv = sealed[: -self.icv], sealed[-self.icv :]
        return self.crypt(iv, text) if icv == self.check(header, iv, text) else None


class IpsecModel(EspModel):
    """A tunnel is transport mode around a packet that already has its outer header."""

    nf = "IPSec"
    variants = (KEYS, {**KEYS, "tunnel": "0", "spi": "70000", "seed": "9"}, {**KEYS, "reversed": "1"})

    def prepare(self) -> None:
        super().prepare()
        self.arrived = 0
        self.tunnel = self.number("tunnel", 1) == 1
        self.encrypted_side = self.number("reversed", 0)

    def make_cipher(self) -> AesCtr:
        return AesCtr(*(bytes.fromhex(self.settings[name]) for name in ("key", "nonce", "hmac_key")))

    def make_iv(self, side: int, sequence: int) -> bytes:
        """Side, seed and sequence number."""
        return (side << 63 | self.seed << 32 | sequence).to_bytes(8, "big")

    def rejected(self, headers: Headers, encrypts: bool) -> str | None:
        """Every packet that arrives takes a number; fragments pass a tunnel, but are no ESP."""
        self.arrived += 1
        why = super().rejected(headers, encrypts)
        return None if why == "fragments" and self.tunnel and encrypts else why

    def next_sequence(self) -> int:
        return self.arrived

    def carry(self, sent: Sent, headers: Headers, sequence: int) -> tuple[bytes, Headers]:
        """In a tunnel the frame has an outer header, before its encryption."""
        if not self.tunnel:
            return sent.frame, headers
        inner = sent.frame[headers.l3 : headers.end]
        kept = word_at(inner, 6) & DONT_FRAGMENT
        source, destination = (LOCAL, REMOTE) if sent.side == INSIDE else (REMOTE, LOCAL)
        fields = {"tos": inner[1], "id": 0 if kept else sequence & 0xFFFF, "flags": kept}
        frame = sent.frame[: headers.l3] + ipv4_header(source, destination, IPIP, len(inner), **fields) + inner
        return frame, read_headers(frame)

    def open(self, frame: bytes, headers: Headers, parts: EspParts) -> tuple[str, bytes | None]:
        """In a tunnel the content must be a packet, whose length is its own."""
        counter, made = super().open(frame, headers, parts)
        if made is None or not self.tunnel:
            return counter, made
        whole = read_headers(made)
        inner = made[: whole.l3] + content_of(made, whole)
        within = read_headers(inner)
        if made[whole.l3 + 9] != IPIP or not within.has_ipv4:
            return "garbled", None
        return counter, inner[: within.end]
