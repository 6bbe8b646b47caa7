"""What the references of Encrypt, Decrypt and FastEncrypt have in common: one end of an ESP link (RFC 4303)."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

from tests.nfs.references.esp_packets import (
    ESP,
    NO_NEXT_HEADER,
    UDP_PORT,
    AesCbc,
    ChaCha20,
    Parts,
    content_of,
    padded,
    unpadded,
    with_content,
    wrapped,
)
from tests.nfs.references.headers import INSIDE, OUTSIDE, UDP, Headers, read
from tests.nfs.references.nf_run import NfRun
from tests.nfs.references.reference import Bounds, Reference
from tests.nfs.references.traffic import Mix, Sent

BUFFER = 2048
"""Bytes of a frame that fit a buffer; functions make frames of one buffer."""


class _Received:
    """Sequence numbers that have arrived (RFC 4303, section 3.4.3)."""

    def __init__(self, window: int) -> None:
        self.window, self.highest, self.seen = window, 0, {0}

    def is_new(self, sequence: int) -> bool:
        """Whether a number is neither left of the window nor seen."""
        if self.window == 0 or sequence > self.highest:
            return True
        return self.highest - sequence < self.window and sequence not in self.seen

    def note(self, sequence: int) -> None:
        """Note a number whose packet is authentic."""
        self.highest = max(self.highest, sequence)
        self.seen.add(sequence)


class EspReference(Reference):
    """One side is encrypted, the other decrypted, which is exact.

    What is encrypted is opened here: its content, header, padding and sequence number are exact. Its initialization
    vector is the function's choice, but is never used twice with a key.
    """

    encrypted_side = INSIDE

    def make_cipher(self) -> AesCbc | ChaCha20:
        """The algorithm with its keys."""
        raise NotImplementedError

    def prepare(self) -> None:
        self.cipher = self.make_cipher()
        self.in_udp = self.number("in_udp", 0) == 1
        self.spi = self.number("spi", 256)
        self.sent, self.ivs = 0, set[bytes]()
        self.received = _Received(self.number("replay_window", 0))

    def mix(self) -> Mix:
        return Mix(flows=20000, outside=0.5)

    def spi_of(self, side: int) -> int:
        """The SPI of packets from a side."""
        return self.spi + (side == OUTSIDE)

    def traffic(self, seed: int, n: int, run: NfRun) -> Iterator[Sent]:
        """Frames from the side to decrypt are encrypted; some are damaged, replayed, late, or of another link."""
        rng, last, sequence = random.Random(seed), b"", 0
        for sent in super().traffic(seed, n, run):
            headers = read(sent.frame)
            if sent.side == self.encrypted_side or not headers.has_ipv4 or headers.fragment or rng.random() < 0.02:
                yield sent
                continue
            sequence += rng.choice((1, 1, 1, 1, 1, 1, 2, 3, 40)) if rng.random() < 0.5 else 1
            number = sequence - rng.choice((0, 0, 0, 0, 0, 0, 0, 2, 30, 70)) if rng.random() < 0.2 else sequence
            if last and rng.random() < 0.02:
                yield Sent(sent.time_us, sent.side, last)
                continue
            last = self.damaged(rng, self.sealed(rng, sent, headers, max(number, 0)))
            yield Sent(sent.time_us, sent.side, last)

    def sealed(self, rng: random.Random, sent: Sent, headers: Headers, sequence: int) -> bytes:
        """A frame as the other end of the link sends it, sometimes a dummy, garbled, or of another link."""
        protocol = NO_NEXT_HEADER if rng.random() < 0.01 else sent.frame[headers.l3 + 9]
        text = padded(content_of(sent.frame, headers), protocol, self.cipher.block)
        if rng.random() < 0.02:
            text = text[:-2] + bytes([rng.choice((text[-2] + 1 & 255, 255, 3))]) + text[-1:]
        elif rng.random() < 0.02:
            extra = self.cipher.block * rng.randrange(1, 5)
            length = text[-2] + extra
            text = text[: len(text) - 2 - text[-2]] + bytes(range(1, length + 1)) + bytes([length, text[-1]])
        spi = self.spi_of(sent.side) + (rng.random() < 0.02)
        header, iv = struct.pack("!II", spi, sequence), rng.randbytes(self.cipher.iv_bytes)
        esp = header + iv + self.cipher.seal(header, iv, text)
        return wrapped(sent.frame, headers, esp, self.in_udp)

    @staticmethod
    def damaged(rng: random.Random, frame: bytes) -> bytes:
        """A frame, now and then with a wrong bit behind its Ethernet header."""
        if rng.random() > 0.04:
            return frame
        at = rng.randrange(14, len(frame))
        return frame[:at] + bytes([frame[at] ^ 1 << rng.randrange(8)]) + frame[at + 1 :]

    def judge(self, burst: list[Sent], out: list[bytes], back: list[bytes]) -> list[str]:
        """Packets leave in their order."""
        ends = (out, back)
        encrypts = burst[0].side == self.encrypted_side
        wrong = self.encryption_faults(burst, ends[burst[0].side]) if encrypts else []
        wrong += [] if encrypts else self.decryption_faults(burst, ends[burst[0].side])
        return wrong + [f"not expected {frame.hex()}" for frame in ends[1 - burst[0].side]]

    def rejected(self, headers: Headers) -> str | None:
        """The counter of a frame that is not looked at further."""
        if not headers.has_ipv4:
            return "malformed" if headers.kind == "malformed" else "other"
        return "fragments" if headers.fragment else None

    def encryption_faults(self, burst: list[Sent], got: list[bytes]) -> list[str]:
        """What is wrong with frames that were encrypted."""
        wrong, rest = [], iter(got)
        for sent in burst:
            headers = read(sent.frame)
            why = self.rejected(headers) or self.too_long(sent.frame, headers)
            if why:
                self.counted[why] += 1
                continue
            self.counted["encrypted"] += 1
            frame = next(rest, b"")
            fault = self.sealing_fault(sent, headers, frame)
            if fault:
                wrong.append(f"{fault}: {sent.frame.hex()} left as {frame.hex()}")
        return wrong + [f"not expected {frame.hex()}" for frame in rest]

    def too_long(self, frame: bytes, headers: Headers) -> str | None:
        """Whether an encrypted frame would exceed a buffer."""
        content = content_of(frame, headers)
        text = len(padded(content, 0, self.cipher.block))
        overhead = 8 * self.in_udp + 8 + self.cipher.iv_bytes + self.cipher.icv
        return "too_long" if headers.end - len(content) + overhead + text > BUFFER else None

    def next_sequence(self) -> int:
        """The sequence number of the next packet that is encrypted."""
        self.sent += 1
        return self.sent

    def carried(self, sent: Sent, headers: Headers, sequence: int) -> tuple[bytes, Headers]:
        """The frame around whose content ESP goes, and its headers."""
        return sent.frame, headers

    def sealing_fault(self, sent: Sent, headers: Headers, frame: bytes) -> str | None:
        """What is wrong with an encrypted frame."""
        number = self.next_sequence()
        carried, headers = self.carried(sent, headers, number)
        found = self.parts(frame, read(frame), self.spi_of(sent.side))
        if isinstance(found, str):
            return found
        text = self.cipher.open(found.header, found.iv, found.sealed)
        expected = padded(content_of(carried, headers), carried[headers.l3 + 9], self.cipher.block)
        if text != expected or found.sequence != number:
            return "another content" if text != expected else f"sequence number {found.sequence}, not {number}"
        if found.iv in self.ivs:
            return "an initialization vector that was used before"
        self.ivs.add(found.iv)
        whole = wrapped(carried, headers, found.header + found.iv + found.sealed, self.in_udp)
        return None if frame == whole else "another header"

    def parts(self, frame: bytes, headers: Headers, spi: int) -> Parts | str:
        """The parts of an ESP packet, or the counter of why it is none of the link."""
        if not headers.has_ipv4 or frame[headers.l3 + 9] != (UDP if self.in_udp else ESP):
            return "foreign"
        content = content_of(frame, headers)
        if len(content) < 8 + 8 * self.in_udp:
            return "malformed"
        if self.in_udp:
            if int.from_bytes(content[2:4], "big") != UDP_PORT:
                return "foreign"
            content = content[8:]
        iv_end = 8 + self.cipher.iv_bytes
        found_spi, sequence = struct.unpack_from("!II", content)
        if found_spi != spi:
            return "foreign"
        text = len(content) - iv_end - self.cipher.icv
        if text < self.cipher.block or text % self.cipher.block:
            return "malformed"
        return Parts(found_spi, sequence, content[:8], content[8:iv_end], content[iv_end:])

    def decryption_faults(self, burst: list[Sent], got: list[bytes]) -> list[str]:
        """What is wrong with frames that were decrypted. Replays are dropped before and after verification."""
        expected, opened = [], []
        for sent in burst:
            headers = read(sent.frame)
            found = self.rejected(headers) or self.parts(sent.frame, headers, self.spi_of(sent.side))
            if not isinstance(found, str) and not self.received.is_new(found.sequence):
                found = "replayed"
            if not isinstance(found, str) and headers.end > BUFFER:
                found = "too_long"
            if isinstance(found, str):
                self.counted[found] += 1
            else:
                opened.append((sent, headers, found))
        for sent, headers, parts in opened:
            counter, frame = self.opened(sent, headers, parts)
            self.counted[counter] += 1
            expected += [] if frame is None else [frame]
        if expected == got:
            return []
        return [f"left as {[frame.hex() for frame in got]}, expected {[frame.hex() for frame in expected]}"]

    def opened(self, sent: Sent, headers: Headers, parts: Parts) -> tuple[str, bytes | None]:
        """The counter of a packet of the link, and what it has."""
        text = self.cipher.open(parts.header, parts.iv, parts.sealed)
        if text is None:
            return "unauthentic", None
        if not self.received.is_new(parts.sequence):
            return "replayed", None
        self.received.note(parts.sequence)
        content = unpadded(text)
        if content is None:
            return "garbled", None
        if content[1] == NO_NEXT_HEADER:
            return "dummies", None
        return "decrypted", with_content(sent.frame, headers, content[1], content[0])

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, "exhausted": 0, "no_buffer": 0}
