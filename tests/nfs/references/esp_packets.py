"""ESP packets in transport mode (RFC 4303), also in UDP (RFC 3948), by the library `cryptography`."""

from __future__ import annotations

import hmac
import struct
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tests.nfs.references.headers import UDP, Headers, updated

ESP, NO_NEXT_HEADER = 50, 59
UDP_PORT = 4500
ICV = 16


class AesCbc:
    """AES-128-CBC (RFC 3602) with HMAC-SHA-256-128 (RFC 4868), or without integrity if its key is empty."""

    iv_bytes, block = 16, 16

    def __init__(self, key: bytes, hmac_key: bytes) -> None:
        self.cipher, self.hmac_key = algorithms.AES(key), hmac_key
        self.icv = ICV if hmac_key else 0

    def check(self, header: bytes, iv: bytes, text: bytes) -> bytes:
        """The integrity check value."""
        return hmac.digest(self.hmac_key, header + iv + text, "sha256")[:ICV] if self.icv else b""

    def seal(self, header: bytes, iv: bytes, plain: bytes) -> bytes:
        """What follows the initialization vector."""
        encryptor = Cipher(self.cipher, modes.CBC(iv)).encryptor()
        text = encryptor.update(plain) + encryptor.finalize()
        return text + self.check(header, iv, text)

    def open(self, header: bytes, iv: bytes, sealed: bytes) -> bytes | None:
        """The text; None if its integrity is wrong."""
        text, icv = (sealed[: -self.icv], sealed[-self.icv :]) if self.icv else (sealed, b"")
        if icv != self.check(header, iv, text):
            return None
        decryptor = Cipher(self.cipher, modes.CBC(iv)).decryptor()
        return decryptor.update(text) + decryptor.finalize()


class ChaCha20:
    """ChaCha20-Poly1305 (RFC 7634); the key ends with the salt."""

    iv_bytes, block, icv = 8, 4, ICV

    def __init__(self, key: bytes) -> None:
        self.cipher, self.salt = ChaCha20Poly1305(key[:32]), key[32:]

    def seal(self, header: bytes, iv: bytes, plain: bytes) -> bytes:
        """What follows the initialization vector."""
        return self.cipher.encrypt(self.salt + iv, plain, header)

    def open(self, header: bytes, iv: bytes, sealed: bytes) -> bytes | None:
        """The text; None if its integrity is wrong."""
        try:
            return self.cipher.decrypt(self.salt + iv, sealed, header)
        except InvalidTag:
            return None


@dataclass(slots=True)
class Parts:
    """The parts of an ESP packet, and where its text ends."""

    spi: int
    sequence: int
    header: bytes
    iv: bytes
    sealed: bytes


def padded(content: bytes, next_header: int, block: int) -> bytes:
    """Content with the least padding, whose bytes are 1, 2, 3 and so on (RFC 4303, section 2.4)."""
    length = -(len(content) + 2) % block
    return content + bytes(range(1, length + 1)) + bytes([length, next_header])


def unpadded(text: bytes) -> tuple[bytes, int] | None:
    """Content and next header; None if the padding is not what a sender writes."""
    length, next_header = text[-2], text[-1]
    if length + 2 > len(text) or text[len(text) - 2 - length : -2] != bytes(range(1, length + 1)):
        return None
    return text[: len(text) - 2 - length], next_header


def with_content(frame: bytes, headers: Headers, protocol: int, content: bytes) -> bytes:
    """A frame with something else behind its IPv4 header, whose length, protocol and checksum change."""
    l3, behind = headers.l3, headers.l3 + (frame[headers.l3] & 15) * 4
    total = (behind - l3 + len(content)).to_bytes(2, "big")
    word = frame[l3 + 8 : l3 + 9] + bytes([protocol])
    before = frame[l3 + 2 : l3 + 4] + frame[l3 + 8 : l3 + 10]
    checksum = updated(int.from_bytes(frame[l3 + 10 : l3 + 12], "big"), before, total + word)
    header = frame[: l3 + 2] + total + frame[l3 + 4 : l3 + 8] + word + checksum.to_bytes(2, "big")
    return header + frame[l3 + 12 : behind] + content


def content_of(frame: bytes, headers: Headers) -> bytes:
    """What is behind the IPv4 header, without the frame's padding."""
    return frame[headers.l3 + (frame[headers.l3] & 15) * 4 : headers.end]


def wrapped(frame: bytes, headers: Headers, esp: bytes, in_udp: bool) -> bytes:
    """A frame with ESP as its content."""
    if not in_udp:
        return with_content(frame, headers, ESP, esp)
    return with_content(frame, headers, UDP, struct.pack("!HHHH", UDP_PORT, UDP_PORT, 8 + len(esp), 0) + esp)
