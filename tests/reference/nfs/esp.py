"""Encrypt and Decrypt, and what ends of an ESP link have in common (RFC 4303), also in UDP (RFC 3948)."""

import hmac
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tests.reference.nfs.fragments import CONGESTED, NOT_CAPABLE
from tests.reference.nfs.headers import (
    DONT_FRAGMENT,
    ICMP,
    INSIDE,
    OUTSIDE,
    UDP,
    Headers,
    Reporter,
    behind_ipv4,
    error_about,
    find_quoted,
    ipv4_header,
    read_headers,
    with_content,
    with_tos,
    word_at,
)
from tests.reference.nfs.model import Bounds, Contract, FirstRun, FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent, mixed_frames

ESP, NO_NEXT_HEADER = 50, 59
UDP_PORT = 4500
ICV = 16
BUFFER = 2048  # bytes of a frame that fit a buffer; functions make frames of one buffer


class EspCipher(Protocol):
    """An algorithm with its keys: bytes of its initialization vectors, blocks and integrity check values."""

    iv_bytes: int
    block: int
    icv: int

    def seal(self, header: bytes, iv: bytes, plain: bytes) -> bytes:
        """What follows the initialization vector."""
        ...

    def open(self, header: bytes, iv: bytes, sealed: bytes) -> bytes | None:
        """The text; None if its integrity is wrong."""
        ...


@dataclass(slots=True)
class EspParts:
    """The parts of an ESP packet."""

    sequence: int
    header: bytes
    iv: bytes
    sealed: bytes


class ReplayWindow:
    """Sequence numbers that have arrived (RFC 4303, section 3.4.3)."""

    def __init__(self, window: int) -> None:
        self.window, self.highest, self.seen = window, 0, {0}

    def is_new(self, sequence: int) -> bool:
        """Whether a number is neither left of the window nor seen; without a window all are new."""
        if self.window == 0 or sequence > self.highest:
            return True
        return self.highest - sequence < self.window and sequence not in self.seen

    def note(self, sequence: int) -> None:
        """Note a number whose packet is authentic."""
        self.highest = max(self.highest, sequence)
        self.seen.add(sequence)


def pad(content: bytes, next_header: int, block: int) -> bytes:
    """Content with the least padding, whose bytes are 1, 2, 3 and so on (RFC 4303, section 2.4)."""
    length = -(len(content) + 2) % block
    return content + bytes(range(1, length + 1)) + bytes([length, next_header])


def unpad(text: bytes) -> tuple[bytes, int] | None:
    """Content and next header; None if the padding is not what a sender writes."""
    length, next_header = text[-2], text[-1]
    if length + 2 > len(text) or text[len(text) - 2 - length : -2] != bytes(range(1, length + 1)):
        return None
    return text[: len(text) - 2 - length], next_header


def content_of(frame: bytes, headers: Headers) -> bytes:
    """What is behind the IPv4 header, without the frame's padding."""
    return frame[behind_ipv4(frame, headers) : headers.end]


def flip_bit(rng: random.Random, frame: bytes) -> bytes:
    """A frame with a wrong bit behind its Ethernet header."""
    at = rng.randrange(14, len(frame))
    return frame[:at] + bytes([frame[at] ^ 1 << rng.randrange(8)]) + frame[at + 1 :]


class EspModel(FunctionModel):
    """One side is encrypted, the other decrypted.

    Initialization vectors are those that the functions in C choose: any that are never used twice with a key would do.
    """

    encrypted_side = INSIDE
    keeps_order = True
    unknown = arp = "drop"

    def make_cipher(self) -> EspCipher:
        """The algorithm with its keys."""
        raise NotImplementedError

    def make_iv(self, side: int, sequence: int) -> bytes:
        """The initialization vector of the next packet."""
        raise NotImplementedError

    def prepare(self) -> None:
        self.cipher = self.make_cipher()
        self.in_udp = self.number("in_udp", 0) == 1
        self.spi, self.seed = self.number("spi", 256), self.number("seed", 1)
        self.sent = 0
        self.received = ReplayWindow(self.number("replay_window", 0))

    def mix(self) -> Mix:
        return Mix(flows=20000, outside=0.5)

    def traffic(self, seed: int, n: int, run: FirstRun) -> Iterator[Sent]:
        """Frames from the side to decrypt are encrypted; some are damaged, replayed, late, or of another link."""
        rng, last, sequence = random.Random(seed), b"", 0
        for sent in mixed_frames(seed, n, self.mix()):
            headers = read_headers(sent.frame)
            if sent.side == self.encrypted_side or not headers.has_ipv4 or headers.fragment or rng.random() < 0.02:
                yield sent
                continue
            sequence += rng.choice((1, 1, 1, 1, 1, 1, 2, 3, 40)) if rng.random() < 0.5 else 1
            number = sequence - rng.choice((0, 0, 0, 0, 0, 0, 0, 2, 30, 70)) if rng.random() < 0.2 else sequence
            if not last or rng.random() >= 0.02:
                last = self.seal_carelessly(rng, sent, headers, max(number, 0))
                last = flip_bit(rng, last) if rng.random() <= 0.04 else last
            yield Sent(sent.time_us, sent.side, last)

    def seal_carelessly(self, rng: random.Random, sent: Sent, headers: Headers, sequence: int) -> bytes:
        """A frame as the other end of the link sends it, sometimes a dummy, garbled, or of another link."""
        frame, headers = self.carry(sent, headers, sequence)
        protocol = NO_NEXT_HEADER if rng.random() < 0.01 else frame[headers.l3 + 9]
        text = pad(content_of(frame, headers), protocol, self.cipher.block)
        if rng.random() < 0.02:
            text = text[:-2] + bytes([rng.choice((text[-2] + 1 & 255, 255, 3))]) + text[-1:]
        elif rng.random() < 0.02:
            extra = self.cipher.block * rng.randrange(1, 5)
            length = text[-2] + extra
            text = text[: len(text) - 2 - text[-2]] + bytes(range(1, length + 1)) + bytes([length, text[-1]])
        spi = self.spi_of(sent.side) + (rng.random() < 0.02)
        return self.seal(frame, headers, spi, sequence, rng.randbytes(self.cipher.iv_bytes), text)

    def spi_of(self, side: int) -> int:
        """The SPI of packets from a side."""
        return self.spi + (side == OUTSIDE)

    def seal(self, frame: bytes, headers: Headers, spi: int, sequence: int, iv: bytes, text: bytes) -> bytes:
        """A frame with ESP as its content."""
        header = struct.pack("!II", spi, sequence)
        esp = header + iv + self.cipher.seal(header, iv, text)
        if not self.in_udp:
            return with_content(frame, headers, ESP, esp)
        return with_content(frame, headers, UDP, struct.pack("!HHHH", UDP_PORT, UDP_PORT, 8 + len(esp), 0) + esp)

    def take(self, sent: Sent) -> Left:
        ends = self.take_burst([sent])
        return ends[sent.side], ends[1 - sent.side]

    def take_burst(self, burst: list[Sent]) -> Left:
        left, waiting = self.put_aside(burst)
        if burst[0].side == self.encrypted_side:
            left += [frame for sent in waiting if (frame := self.encrypt(sent))]
        else:
            left += self.decrypt(waiting)
        return (left, []) if burst[0].side == INSIDE else ([], left)

    def put_aside(self, burst: list[Sent]) -> tuple[list[bytes], list[Sent]]:
        """Frames that are not understood and leave before the others of a burst, and the others."""
        others = [sent.frame for sent in burst if not read_headers(sent.frame).has_ipv4]
        left = [frame for frame in others if self.passes(read_headers(frame).kind)]
        return left, [sent for sent in burst if read_headers(sent.frame).has_ipv4]

    def rejected(self, headers: Headers, encrypts: bool) -> str | None:
        """The counter of a packet that is not looked at further."""
        return "fragments" if headers.fragment else None

    def next_sequence(self) -> int:
        """The sequence number of the next packet that is encrypted."""
        return self.sent + 1

    def carry(self, sent: Sent, headers: Headers, sequence: int) -> tuple[bytes, Headers]:
        """The frame around whose content ESP goes, and its headers."""
        return sent.frame, headers

    def encrypt(self, sent: Sent) -> bytes | None:
        """The encrypted frame; None if it is dropped."""
        headers = read_headers(sent.frame)
        why = self.rejected(headers, True)
        if why:
            self.counted[why] += 1
            return None
        sequence = self.next_sequence()
        frame, headers = self.carry(sent, headers, sequence)
        text = pad(content_of(frame, headers), frame[headers.l3 + 9], self.cipher.block)
        overhead = 8 * self.in_udp + 8 + self.cipher.iv_bytes + self.cipher.icv
        if behind_ipv4(frame, headers) + overhead + len(text) > BUFFER:
            self.counted["too_long"] += 1
            return None
        iv = self.make_iv(sent.side, sequence)
        self.sent += 1
        self.counted["encrypted"] += 1
        return self.seal(frame, headers, self.spi_of(sent.side), sequence, iv, text)

    def parts(self, frame: bytes, headers: Headers, spi: int) -> EspParts | str:
        """The parts of an ESP packet, or the counter of why it is none of the link."""
        if frame[headers.l3 + 9] != (UDP if self.in_udp else ESP):
            return "foreign"
        content = content_of(frame, headers)
        if len(content) < 8 + 8 * self.in_udp:
            return "malformed"
        if self.in_udp:
            if word_at(content, 2) != UDP_PORT:
                return "foreign"
            content = content[8:]
        iv_end = 8 + self.cipher.iv_bytes
        found_spi, sequence = struct.unpack_from("!II", content)
        if found_spi != spi:
            return "foreign"
        text = len(content) - iv_end - self.cipher.icv
        if text < self.cipher.block or text % self.cipher.block:
            return "malformed"
        return EspParts(sequence, content[:8], content[8:iv_end], content[iv_end:])

    def decrypt(self, burst: list[Sent]) -> list[bytes]:
        """The decrypted frames. Replays are dropped before and after verification: a copy may be in the same burst."""
        waiting, left = [], []
        for sent in burst:
            headers = read_headers(sent.frame)
            found = self.rejected(headers, False) or self.parts(sent.frame, headers, self.spi_of(sent.side))
            if not isinstance(found, str) and not self.received.is_new(found.sequence):
                found = "replayed"
            if not isinstance(found, str) and headers.end > BUFFER:
                found = "too_long"
            if isinstance(found, str):
                self.counted[found] += 1
            else:
                waiting.append((sent.frame, headers, found))
        for frame, headers, parts in waiting:
            counter, made = self.open(frame, headers, parts)
            self.counted[counter] += 1
            left += [] if made is None else [made]
        return left

    def open(self, frame: bytes, headers: Headers, parts: EspParts) -> tuple[str, bytes | None]:
        """The counter of a packet of the link, and what it has."""
        text = self.cipher.open(parts.header, parts.iv, parts.sealed)
        if text is None:
            return "unauthentic", None
        if not self.received.is_new(parts.sequence):
            return "replayed", None
        self.received.note(parts.sequence)
        content = unpad(text)
        if content is None:
            return "garbled", None
        if content[1] == NO_NEXT_HEADER:
            return "dummies", None
        return "decrypted", with_content(frame, headers, content[1], content[0])

    def open_sent(self, frame: bytes) -> bytes | None:
        """The frame that was encrypted on its way outside; None if it is none of the link."""
        headers = read_headers(frame)
        if not headers.has_ipv4:
            return None
        parts = self.rejected(headers, False) or self.parts(frame, headers, self.spi)
        return None if isinstance(parts, str) else self.open(frame, headers, parts)[1]

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, "exhausted": 0, "no_buffer": 0}


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
        encryptor = Cipher(self.cipher, modes.CBC(iv)).encryptor()
        text = encryptor.update(plain) + encryptor.finalize()
        return text + self.check(header, iv, text)

    def open(self, header: bytes, iv: bytes, sealed: bytes) -> bytes | None:
        text, icv = (sealed[: -self.icv], sealed[-self.icv :]) if self.icv else (sealed, b"")
        if icv != self.check(header, iv, text):
            return None
        decryptor = Cipher(self.cipher, modes.CBC(iv)).decryptor()
        return decryptor.update(text) + decryptor.finalize()


KEY, HMAC_KEY = "8d5f0c6be1a0472f9b3ce75d2460a18e", "5a" * 16 + "c3" * 16


class EncryptModel(EspModel):
    """The end inside of a link by AES-128-CBC and HMAC-SHA-256-128: packets from inside leave as ESP."""

    nf = "Encrypt"
    variants = (
        {"key": KEY, "hmac_key": HMAC_KEY, "replay_window": "64"},
        {"key": KEY, "hmac_key": HMAC_KEY, "in_udp": "1", "spi": "70000", "unknown": "pass"},
        {"key": KEY, "hmac_key": "", "replay_window": "32"},
    )
    contract = Contract.ESP

    def make_cipher(self) -> AesCbc:
        keys = (
            self.settings.get("key", bytes(range(16)).hex()),
            self.settings.get("hmac_key", bytes(range(32, 64)).hex()),
        )
        return AesCbc(*map(bytes.fromhex, keys))

    def make_iv(self, side: int, sequence: int) -> bytes:
        """A counter, encrypted (NIST SP 800-38A, appendix C)."""
        assert isinstance(self.cipher, AesCbc)
        counter = struct.pack("!IIQ", side == OUTSIDE, self.seed, self.sent)
        return Cipher(self.cipher.cipher, modes.CBC(bytes(16))).encryptor().update(counter)


class DecryptModel(EncryptModel):
    """The end outside of the link: its packets from inside are those that Encrypt sends."""

    nf = "Decrypt"
    encrypted_side = OUTSIDE
    contract = Contract.BYTES
    opens_payload = True


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
    """A tunnel is transport mode around a packet that already has its outer header.

    It learns the path's MTU from ICMP errors about one of its last 65,536 packets, or of the last seconds, and keeps it
    for ten minutes. Seconds begin with a burst; errors are believed about packets since the eighth last began.
    """

    LEAST_MTU = 576
    HELD_US = 600_000_000

    nf = "IPSec"
    variants = (
        KEYS,
        {**KEYS, "tunnel": "0", "spi": "70000", "seed": "9"},
        {**KEYS, "reversed": "1", "unknown": "pass", "arp": "pass"},
    )

    def prepare(self) -> None:
        super().prepare()
        self.arrived = 0
        self.tunnel = self.number("tunnel", 1) == 1
        self.encrypted_side = self.number("reversed", 0)
        self.near, self.far = (LOCAL, REMOTE) if self.encrypted_side == INSIDE else (REMOTE, LOCAL)
        self.reporter = Reporter(self.near, self.settings)
        self.mtu, self.until_us, self.splits_until_us = 0, 0, 0
        self.begun: list[tuple[int, int]] = []
        """When seconds began, and how many packets had arrived."""
        self.errors: list[bytes] = []

    def traffic(self, seed: int, n: int, run: FirstRun) -> Iterator[Sent]:
        """Now and then with an error about an earlier packet."""
        rng = random.Random(seed)
        for number, sent in enumerate(super().traffic(seed, n, run)):
            if sent.side == self.encrypted_side or rng.random() > 0.02:
                yield sent
                continue
            sequence = max(number - rng.choice((-3, 0, 7, 65_000, 70_000)), 0)
            spi = self.spi_of(self.encrypted_side) + (rng.random() < 0.1)
            ends = (self.near, self.far) if rng.random() < 0.9 else (self.far, self.near)
            quote = ipv4_header(*ends, ESP, 1300) + struct.pack("!II", spi, sequence)
            router = bytes([9, 9, 9, 9])
            yield Sent(sent.time_us, sent.side, error_about(rng, quote, router, self.near, sent.side == INSIDE))

    def learns(self, sent: Sent) -> bool:
        """Whether a frame is an error that a packet of the tunnel is too big, from which it learns."""
        frame, headers = sent.frame, read_headers(sent.frame)
        if not self.tunnel or headers.protocol != ICMP or not headers.l4 or headers.fragment:
            return False
        found = find_quoted(frame, headers)
        if frame[headers.l4 : headers.l4 + 2] != b"\3\4" or frame[headers.l3 + 16 : headers.l3 + 20] != self.near:
            return False
        if found is None or frame[found[0] + 9] != ESP or frame[found[0] + 12 : found[0] + 20] != self.near + self.far:
            return False
        spi, sequence = struct.unpack_from("!II", frame, found[1])
        since = self.begun[-8][1] if len(self.begun) >= 8 else 0
        oldest = min(since + 1, self.arrived + 2 - (1 << 16))
        if spi != self.spi_of(self.encrypted_side) or not oldest <= sequence <= self.arrived + 1:
            return False
        says = word_at(frame, headers.l4 + 6)
        mtu = max(says, self.LEAST_MTU)
        held = sent.time_us < self.until_us
        self.mtu = min(self.mtu, mtu) if held else mtu
        self.until_us = sent.time_us + self.HELD_US
        if 0 < says < self.LEAST_MTU or (held and self.splits_until_us > sent.time_us):
            self.splits_until_us = self.until_us
        self.arrived += 1
        self.counted["learnt"] += 1
        return True

    def take_burst(self, burst: list[Sent]) -> Left:
        self.errors, now_us = [], burst[0].time_us
        if not self.begun or now_us >= self.begun[-1][0] + 1_000_000:
            self.begun.append((now_us, self.arrived))
        out, back = super().take_burst(burst)
        if burst[0].side != self.encrypted_side:
            return out, back
        return (out, self.errors) if burst[0].side == INSIDE else (self.errors, back)

    def decrypt(self, burst: list[Sent]) -> list[bytes]:
        left: list[bytes] = []
        for sent in burst:
            if not read_headers(sent.frame).has_ipv4:
                left += self.other(sent.frame)
            elif not self.learns(sent):
                left += super().decrypt([sent])
        return left

    def put_aside(self, burst: list[Sent]) -> tuple[list[bytes], list[Sent]]:
        """All leave in their order."""
        return [], burst

    def other(self, frame: bytes) -> list[bytes]:
        """What leaves of a frame that is not understood, which takes a number, too."""
        self.arrived += 1
        return [frame] * self.passes(read_headers(frame).kind)

    def encrypt(self, sent: Sent) -> bytes | None:
        """A packet that the path would have to fragment, and must not, is reported to its sender."""
        headers = read_headers(sent.frame)
        if not headers.has_ipv4:
            return next(iter(self.other(sent.frame)), None)
        known = self.tunnel and sent.time_us < self.until_us
        if known and word_at(sent.frame, headers.l3 + 6) & DONT_FRAGMENT:
            room = (self.mtu - 20 - 8 - 8 - 12) // 4 * 4 - 2
            if headers.end - headers.l3 > room:
                self.arrived += 1
                self.counted["too_big"] += 1
                counter, errors = self.reporter.report(sent.frame, headers, (3, 4), sent.time_us, room)
                self.counted[counter] += 1
                self.errors += errors
                return None
        return super().encrypt(sent)

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
        kept = word_at(inner, 6) & DONT_FRAGMENT if sent.time_us >= self.splits_until_us else 0
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
        mark, outer = inner[within.l3 + 1] & 3, frame[whole.l3 + 1] & 3
        if outer == CONGESTED and mark == NOT_CAPABLE:
            return "congested", None
        if mark in (1, 2) and outer in (1, CONGESTED):  # RFC 6040, section 4.2
            inner = with_tos(inner, within.l3, inner[within.l3 + 1] & ~3 | outer)
        return counter, inner[: within.end]
