"""Fragments of IPv4: cut and reassembled as RFC 791, section 3.2, has it."""

from collections import Counter
from dataclasses import dataclass, field

from tests.reference.nfs.headers import (
    DONT_FRAGMENT,
    MORE_FRAGMENTS,
    OFFSET,
    Headers,
    with_header_checksum,
    with_tos,
    word_at,
)

COPIED, END_OF_OPTIONS, NO_OPERATION = 0x80, 0, 1
LARGEST = 65535
CONGESTED, NOT_CAPABLE = 3, 0  # marks of ECN


def copy_options(options: bytes) -> bytes:
    """Those that every fragment has, padded to words."""
    kept, at = b"", 0
    while at < len(options) and options[at] != END_OF_OPTIONS:
        size = 1
        if options[at] != NO_OPERATION:
            if at + 1 >= len(options) or options[at + 1] < 2 or at + options[at + 1] > len(options):
                break
            size = options[at + 1]
        kept += options[at : at + size] if options[at] & COPIED else b""
        at += size
    return kept + bytes(-len(kept) % 4)


def cut_datagram(frame: bytes, headers: Headers, mtu: int) -> list[bytes] | None:
    """A frame's datagram, a fragment itself perhaps, in frames of up to `mtu` bytes; None if it is too large."""
    l3 = headers.l3
    length = (frame[l3] & 15) * 4
    header, content = frame[l3 : l3 + length], frame[l3 + length : headers.end]
    if headers.end - l3 <= mtu:
        return [frame]
    flags = word_at(header, 6)
    if (flags & OFFSET) * 8 + headers.end - l3 > LARGEST:
        return None
    options = copy_options(header[20:])
    later = bytes([0x40 | (20 + len(options)) // 4]) + header[1:20] + options
    made, at = [], 0
    while at < len(content):
        own = later if at else header
        part = content[at : at + ((mtu - len(own)) & ~7)]
        more = flags & MORE_FRAGMENTS if at + len(part) == len(content) else MORE_FRAGMENTS
        word = flags & ~(OFFSET | MORE_FRAGMENTS) | more | (flags & OFFSET) + at // 8
        own = own[:2] + (len(own) + len(part)).to_bytes(2, "big") + own[4:6] + word.to_bytes(2, "big") + own[8:]
        made.append(frame[:l3] + with_header_checksum(own) + part)
        at += len(part)
    return made


@dataclass(slots=True)
class Whole:
    """A datagram that was reassembled."""

    frame: bytes
    largest: int  # length of its largest fragment, with the header
    marks: set[int]  # ECN marks of its fragments


@dataclass(slots=True)
class _Datagram:
    begun_us: int
    end: int = 0
    more_behind: int = 0  # how far fragments reach that are not the last
    known: bytearray = field(default_factory=bytearray)
    has: bytearray = field(default_factory=bytearray)  # 1 for each byte that has arrived
    pieces: list[tuple[int, int]] = field(default_factory=list)
    first: bytes = b""
    largest: int = 0
    largest_has_df: bool = False
    marks: set[int] = field(default_factory=set)


class Reassembly:
    """Datagrams of which fragments are missing.

    Fragments of a datagram that contradict each other free it (RFC 1858); those whose bytes have arrived are freed.
    """

    def __init__(self, timeout_us: int) -> None:
        self.timeout_us = timeout_us
        self.pending: dict[tuple[bytes, bytes, int, int], _Datagram] = {}
        self.counted = Counter({"duplicates": 0, "overlapping": 0, "unassembled": 0, "evicted": 0})

    def add(self, frame: bytes, headers: Headers, side: int, now_us: int) -> Whole | None:
        """Take a fragment; the datagram that it completes."""
        l3 = headers.l3
        length, total = (frame[l3] & 15) * 4, headers.end - l3
        flags = word_at(frame, l3 + 6)
        begin, last = (flags & OFFSET) * 8, not flags & MORE_FRAGMENTS
        content = frame[l3 + length : headers.end]
        if not content or begin + total > LARGEST or (not last and len(content) % 8):
            self.counted["unassembled"] += 1
            return None
        key = (frame[l3 + 12 : l3 + 20], frame[l3 + 4 : l3 + 6], headers.protocol, side)
        datagram = self.pending.get(key)
        if datagram is not None and now_us - datagram.begun_us > self.timeout_us:
            self.counted["unassembled"] += len(datagram.pieces)
            datagram = None
        if datagram is None:
            datagram = self.pending[key] = _Datagram(now_us)
        end = begin + len(content)
        if not self.fits(datagram, begin, content, last):
            self.counted["overlapping"] += 1 + len(self.pending.pop(key).pieces)
            return None
        if len(datagram.has) >= end and all(datagram.has[begin:end]):
            self.counted["duplicates"] += 1
            return None
        self.store(datagram, begin, content, last)
        datagram.marks.add(frame[l3 + 1] & 3)
        df = bool(flags & DONT_FRAGMENT)
        datagram.largest_has_df = df if total > datagram.largest else datagram.largest_has_df
        if total == datagram.largest:
            datagram.largest_has_df |= df
        datagram.largest = max(datagram.largest, total)
        if begin == 0 and not datagram.first:
            datagram.first = frame[: l3 + length]
        if not datagram.end or sum(stop - start for start, stop in datagram.pieces) < datagram.end:
            return None
        return self.whole(self.pending.pop(key), l3)

    @staticmethod
    def fits(datagram: _Datagram, begin: int, content: bytes, last: bool) -> bool:
        """Whether a fragment does not contradict the others."""
        end = begin + len(content)
        whole = end if last else datagram.end
        behind = datagram.more_behind if last else max(datagram.more_behind, end)
        if (datagram.end and whole != datagram.end) or (whole and behind >= whole):
            return False
        has, known = datagram.has[begin:end], datagram.known[begin:end]
        return all(known[at] == content[at] for at in range(len(has)) if has[at])

    def store(self, datagram: _Datagram, begin: int, content: bytes, last: bool) -> None:
        """Add bytes; earlier fragments that lie within the new one are freed."""
        end = begin + len(content)
        datagram.end = end if last else datagram.end
        datagram.more_behind = datagram.more_behind if last else max(datagram.more_behind, end)
        missing = max(0, end - len(datagram.has))
        datagram.has += bytes(missing)
        datagram.known += bytes(missing)
        before = max((other for other in datagram.pieces if other[0] <= begin), default=(0, 0))
        start, stop = max(begin, before[1]), end
        kept = [other for other in datagram.pieces if not (start <= other[0] and other[1] <= stop)]
        self.counted["duplicates"] += len(datagram.pieces) - len(kept)
        for other in kept:
            stop = other[0] if start < other[0] < stop else stop
        datagram.pieces = sorted([*kept, (start, stop)])
        datagram.known[begin:end] = content
        datagram.has[begin:end] = b"\1" * len(content)

    def whole(self, datagram: _Datagram, l3: int) -> Whole | None:
        """A datagram of which all bytes are known, with the header of its first fragment."""
        first = datagram.first
        header, content = first[l3:], bytes(datagram.known[: datagram.end])
        if len(header) + len(content) > LARGEST:
            self.counted["unassembled"] += len(datagram.pieces)
            return None
        flags = DONT_FRAGMENT if datagram.largest_has_df else 0
        total = (len(header) + len(content)).to_bytes(2, "big")
        header = header[:2] + total + header[4:6] + flags.to_bytes(2, "big") + header[8:]
        frame = first[:l3] + with_header_checksum(header) + content
        return Whole(frame, datagram.largest, datagram.marks)

    def counters(self) -> dict[str, int]:
        """Counters at the end, when all that is held is freed."""
        held = sum(len(datagram.pieces) for datagram in self.pending.values())
        return {**self.counted, "unassembled": self.counted["unassembled"] + held}


def join_marks(whole: Whole, l3: int) -> bytes | None:
    """The frame with the ECN mark of all fragments; None if it must be dropped (RFC 3168, section 5.3)."""
    if CONGESTED not in whole.marks:
        return whole.frame
    if NOT_CAPABLE in whole.marks:
        return None
    return with_tos(whole.frame, l3, whole.frame[l3 + 1] | CONGESTED)
