"""ESP in transport mode (RFC 4303), also in UDP (RFC 3948): what Encrypt, Decrypt and FastEncrypt share.

A link has one security association, whose keys and SPI are those that the functions in C have unless set. The package
`cryptography` does the arithmetic.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from placer.metacompiler.library.headers import ESP, UDP, FrameType, Headers, checksum_changed, read_headers, word_at
from placer.metacompiler.library.nf_model import ParameterRange
from placer.metacompiler.library.random_numbers import SplitMix
from profiles.faults import InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.modes import CBC

SPI = 256
IV_SEED = 1
UDP_PORT = 4500
ICV = 16
"""Bytes of the integrity check value."""
ESP_HEADER = 8
NO_NEXT_HEADER = 59
LONGEST = 2048
"""Bytes of a frame that fit a buffer of the functions in C."""

AES_KEY = bytes(range(16))
HMAC_KEY = bytes(range(32, 64))
CHACHA_KEY = bytes(range(32))
CHACHA_SALT = bytes(range(32, 36))

IN_UDP = ParameterRange("in_udp", "1: ESP in UDP, port 4500, which a NAT behind it translates", 0, 1, 1)


class EspCipher(Protocol):
    """An algorithm with its keys."""

    iv_bytes: int
    block: int

    def next_iv(self, number: int) -> bytes:
        """The initialization vector of a packet, counted from 0."""
        ...

    def sealed(self, header: bytes, iv: bytes, text: bytes) -> bytes:
        """What follows the initialization vector: the encrypted text and its integrity check value."""
        ...

    def opened(self, header: bytes, iv: bytes, sealed: bytes) -> bytes | None:
        """The text; None if its integrity is wrong."""
        ...


def require_cryptography(nf: str) -> None:
    """Refuse to make a model without the package that does its arithmetic.

    Raises
    ------
    InputError
    """
    if find_spec("cryptography") is None:
        message = "its model needs the package cryptography, which is not installed"
        raise InputError.of(nf, message, hint="pip install cryptography")


class AesCbc:
    """AES-128-CBC (RFC 3602) with HMAC-SHA-256-128 (RFC 4868)."""

    iv_bytes, block = 16, 16

    def __init__(self) -> None:
        require_cryptography("Encrypt")

    def next_iv(self, number: int) -> bytes:
        """A counter, encrypted (NIST SP 800-38A, appendix C)."""
        return self._cipher(bytes(16)).encryptor().update(struct.pack("!IIQ", 0, IV_SEED, number))

    def sealed(self, header: bytes, iv: bytes, text: bytes) -> bytes:
        encryptor = self._cipher(iv).encryptor()
        made = encryptor.update(text) + encryptor.finalize()
        return made + _check(header + iv + made)

    def opened(self, header: bytes, iv: bytes, sealed: bytes) -> bytes | None:
        text, check = sealed[:-ICV], sealed[-ICV:]
        if not hmac.compare_digest(check, _check(header + iv + text)):
            return None
        decryptor = self._cipher(iv).decryptor()
        return decryptor.update(text) + decryptor.finalize()

    @staticmethod
    def _cipher(iv: bytes) -> Cipher[CBC]:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        return Cipher(algorithms.AES(AES_KEY), modes.CBC(iv))


def _check(data: bytes) -> bytes:
    return hmac.digest(HMAC_KEY, data, "sha256")[:ICV]


class ChaCha20:
    """ChaCha20-Poly1305 (RFC 7634)."""

    iv_bytes, block = 8, 4

    def __init__(self) -> None:
        require_cryptography("FastEncrypt")
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        self._cipher = ChaCha20Poly1305(CHACHA_KEY)
        self._first = SplitMix(IV_SEED).next()

    def next_iv(self, number: int) -> bytes:
        """A counter from a random number; its highest bit is that of the direction."""
        return (self._first + number & (1 << 63) - 1).to_bytes(8, "big")

    def sealed(self, header: bytes, iv: bytes, text: bytes) -> bytes:
        return self._cipher.encrypt(CHACHA_SALT + iv, text, header)

    def opened(self, header: bytes, iv: bytes, sealed: bytes) -> bytes | None:
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(CHACHA_SALT + iv, sealed, header)
        except InvalidTag:
            return None


class Sealing:
    """Encrypts frames; what is not IPv4, fragments, and what becomes too long is dropped."""

    def __init__(self, cipher: EspCipher, in_udp: bool) -> None:
        self._cipher = cipher
        self._in_udp = in_udp
        self._sent = 0

    def process(self, packet: bytes, time_us: int) -> list[bytes]:
        headers = read_headers(packet)
        if not has_ipv4(headers) or headers.fragment:
            return []
        behind = behind_ipv4(packet, headers)
        content = packet[behind : headers.end]
        text = padded(content, packet[headers.l3 + 9], self._cipher.block)
        overhead = 8 * self._in_udp + ESP_HEADER + self._cipher.iv_bytes + ICV
        if behind + overhead + len(text) > LONGEST:
            return []
        iv = self._cipher.next_iv(self._sent)
        self._sent += 1
        header = struct.pack("!II", SPI, self._sent & 0xFFFFFFFF)
        esp = header + iv + self._cipher.sealed(header, iv, text)
        if self._in_udp:
            udp = struct.pack("!HHHH", UDP_PORT, UDP_PORT, 8 + len(esp), 0)
            return [with_content(packet, headers, UDP, udp + esp)]
        return [with_content(packet, headers, ESP, esp)]


class Opening:
    """Decrypts frames of the link; all others are dropped."""

    def __init__(self, cipher: EspCipher, in_udp: bool) -> None:
        self._cipher = cipher
        self._in_udp = in_udp

    def process(self, packet: bytes, time_us: int) -> list[bytes]:
        opened = self.opened(packet)
        return [] if opened is None else [opened]

    def opened(self, packet: bytes) -> bytes | None:
        """The frame that was encrypted; None if it is none of the link."""
        headers = read_headers(packet)
        if not has_ipv4(headers) or headers.fragment or headers.end > LONGEST:
            return None
        esp = _esp_of(packet, headers, self._in_udp)
        at = ESP_HEADER + self._cipher.iv_bytes
        length = len(esp) - at - ICV
        if length < self._cipher.block or length % self._cipher.block or esp[:4] != SPI.to_bytes(4, "big"):
            return None
        text = self._cipher.opened(esp[:ESP_HEADER], esp[ESP_HEADER:at], esp[at:])
        content = None if text is None else unpadded(text)
        if content is None or content[1] == NO_NEXT_HEADER:
            return None
        return with_content(packet, headers, content[1], content[0])


def _esp_of(packet: bytes, headers: Headers, in_udp: bool) -> bytes:
    """The ESP packet in a frame; empty if there is none."""
    content = packet[behind_ipv4(packet, headers) : headers.end]
    if packet[headers.l3 + 9] != (UDP if in_udp else ESP):
        return b""
    if not in_udp:
        return content
    return content[8:] if len(content) >= 16 and word_at(content, 2) == UDP_PORT else b""


def has_ipv4(headers: Headers) -> bool:
    """Whether the IPv4 header is valid, whatever follows."""
    return headers.type is FrameType.IPV4 or (headers.type is FrameType.MALFORMED and headers.l3 != 0)


def behind_ipv4(packet: bytes, headers: Headers) -> int:
    """Where the IPv4 header ends."""
    return headers.l3 + 4 * (packet[headers.l3] & 0xF)


def padded(content: bytes, next_header: int, block: int) -> bytes:
    """Content with the least padding, whose bytes are 1, 2, 3 and so on (RFC 4303, section 2.4)."""
    length = -(len(content) + 2) % block
    return content + bytes(range(1, length + 1)) + bytes((length, next_header))


def unpadded(text: bytes) -> tuple[bytes, int] | None:
    """Content and next header; None if the padding is not what a sender writes."""
    length, next_header = text[-2], text[-1]
    end = len(text) - 2 - length
    if end < 0 or text[end:-2] != bytes(range(1, length + 1)):
        return None
    return text[:end], next_header


def with_content(packet: bytes, headers: Headers, protocol: int, content: bytes) -> bytes:
    """A frame with something else behind its IPv4 header: its length, protocol and checksum change."""
    l3, behind = headers.l3, behind_ipv4(packet, headers)
    made = bytearray(packet[:behind] + content)
    before = packet[l3 + 2 : l3 + 4] + packet[l3 + 8 : l3 + 10]
    made[l3 + 2 : l3 + 4] = (len(made) - l3).to_bytes(2, "big")
    made[l3 + 9] = protocol
    after = bytes(made[l3 + 2 : l3 + 4] + made[l3 + 8 : l3 + 10])
    made[l3 + 10 : l3 + 12] = checksum_changed(word_at(packet, l3 + 10), before, after).to_bytes(2, "big")
    return bytes(made)


def esp_settings(parameters: Mapping[str, float]) -> dict[str, str]:
    """The settings of the functions in C."""
    return {"in_udp": f"{int(parameters['in_udp'])}"}
