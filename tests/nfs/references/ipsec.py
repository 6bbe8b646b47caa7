"""IPSec: packets from inside leave as ESP by AES-128-CTR and HMAC-SHA1-96, in tunnel or transport mode (RFC 4303)."""

from __future__ import annotations

import hmac
import random

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tests.nfs.references.esp import EspReference
from tests.nfs.references.esp_packets import Parts, content_of
from tests.nfs.references.headers import DONT_FRAGMENT, Headers, ipv4_header, read
from tests.nfs.references.traffic import Sent

IPIP, OUTER, ICV = 4, 20, 12
KEYS = {"key": "8d5f0c6be1a0472f9b3ce75d2460a18e", "nonce": "00e0017b", "hmac_key": "5a" * 8 + "c3" * 12}
LOCAL, REMOTE = bytes([192, 0, 2, 1]), bytes([198, 51, 100, 1])


class AesCtr:
    """AES-128 in counter mode (RFC 3686) with HMAC-SHA1-96 (RFC 2404)."""

    iv_bytes, block, icv = 8, 4, ICV

    def __init__(self, key: bytes, nonce: bytes, hmac_key: bytes) -> None:
        self.cipher, self.nonce, self.hmac_key = algorithms.AES(key), nonce, hmac_key

    def crypt(self, iv: bytes, text: bytes) -> bytes:
        """Encrypted or decrypted bytes, which is the same."""
        encryptor = Cipher(self.cipher, modes.CTR(self.nonce + iv + b"\0\0\0\1")).encryptor()
        return encryptor.update(text) + encryptor.finalize()

    def check(self, header: bytes, iv: bytes, text: bytes) -> bytes:
        """The integrity check value."""
        return hmac.digest(self.hmac_key, header + iv + text, "sha1")[:ICV]

    def seal(self, header: bytes, iv: bytes, plain: bytes) -> bytes:
        """What follows the initialization vector."""
        text = self.crypt(iv, plain)
        return text + self.check(header, iv, text)

    def open(self, header: bytes, iv: bytes, sealed: bytes) -> bytes | None:
        """The text; None if its integrity is wrong."""
        text = sealed[:-ICV]
        return self.crypt(iv, text) if sealed[-ICV:] == self.check(header, iv, text) else None


class IpsecReference(EspReference):
    """A tunnel is transport mode around a packet that already has its outer header."""

    nf = "IPSec"
    variants = (KEYS, {**KEYS, "tunnel": "0", "spi": "70000", "seed": "9"}, {**KEYS, "reversed": "1"})

    def make_cipher(self) -> AesCtr:  # type: ignore[override]
        return AesCtr(*(bytes.fromhex(self.settings[name]) for name in ("key", "nonce", "hmac_key")))

    def prepare(self) -> None:
        super().prepare()
        self.arrived = 0
        self.tunnel = self.number("tunnel", 1) == 1
        self.encrypted_side = self.number("reversed", 0)

    def rejected(self, headers: Headers) -> str | None:
        """Every packet that arrives takes a number; fragments pass a tunnel, but are no ESP."""
        self.arrived += 1
        why = super().rejected(headers)
        return None if why == "fragments" and self.tunnel and self.encrypting else why

    def judge(self, burst: list[Sent], out: list[bytes], back: list[bytes]) -> list[str]:
        self.encrypting = burst[0].side == self.encrypted_side
        return super().judge(burst, out, back)

    def next_sequence(self) -> int:
        return self.arrived

    def outer(self, frame: bytes, headers: Headers, side: int, sequence: int) -> bytes:
        """A frame in a tunnel, before its encryption."""
        inner = frame[headers.l3 : headers.end]
        kept = int.from_bytes(inner[6:8], "big") & DONT_FRAGMENT
        ends = (LOCAL, REMOTE) if side == 0 else (REMOTE, LOCAL)
        number = 0 if kept else sequence & 0xFFFF
        return frame[: headers.l3] + ipv4_header(*ends, IPIP, len(inner), tos=inner[1], id=number, flags=kept) + inner

    def carried(self, sent: Sent, headers: Headers, sequence: int) -> tuple[bytes, Headers]:
        if not self.tunnel:
            return sent.frame, headers
        frame = self.outer(sent.frame, headers, sent.side, sequence)
        return frame, read(frame)

    def too_long(self, frame: bytes, headers: Headers) -> str | None:
        if self.tunnel:
            frame = self.outer(frame, headers, 0, 0)
        return super().too_long(frame, read(frame))

    def sealed(self, rng: random.Random, sent: Sent, headers: Headers, sequence: int) -> bytes:
        frame, headers = self.carried(sent, headers, sequence)
        return super().sealed(rng, Sent(sent.time_us, sent.side, frame), headers, sequence)

    def opened(self, sent: Sent, headers: Headers, parts: Parts) -> tuple[str, bytes | None]:
        """In a tunnel the content must be a packet, whose length is its own."""
        counter, frame = super().opened(sent, headers, parts)
        if frame is None or not self.tunnel:
            return counter, frame
        whole = read(frame)
        inner = frame[: whole.l3] + content_of(frame, whole)
        within = read(inner)
        if frame[whole.l3 + 9] != IPIP or not within.has_ipv4:
            return "garbled", None
        return counter, inner[: within.end]
