"""The switch's end of a link between processes of a rack: the file that `nfs/rack/link_file.h` describes.

Each of its two rings has one sender and one receiver. Their counters are words in shared memory, written behind what
they count: so it is on processors that keep the order of stores, as x86 does.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from collections import deque
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from types import TracebackType

from profiles import InputError

LINK_SLOTS, SLOT_BYTES, PAGE_BYTES = 1024, 4096, 4096
SLOT_HEAD = struct.Struct("=IHHQ")
MOST_BYTES = SLOT_BYTES - SLOT_HEAD.size
RING_BYTES = PAGE_BYTES + LINK_SLOTS * SLOT_BYTES
FILE_BYTES = PAGE_BYTES + 2 * RING_BYTES
LINK_MAGIC = 0x316B6E696C73666E
TAIL_OFFSET, HEAD_OFFSET, FIRST_SLOT_OFFSET = 0, 64, PAGE_BYTES
USES_OFFSET = 8
NEVER_OPENED, IS_OPEN, HAS_LEFT = range(3)
OUR_SIDE, THEIR_SIDE, MAKING_LOCK = range(3)  # sides of the file, and the bytes that are locked: the switch is side A
LOCK_STRUCT = struct.Struct("=hh4xqqi4x")
"""struct flock of Linux on 64-bit machines: kind, whence, start, length, process."""


class LinkError(Exception):
    """A link that cannot be used: its file, and why."""


class MessageKind(IntEnum):
    """What a message is."""

    PACKET = 0
    FLUSH = 1
    END = 2


class LinkEnd:
    """The end of a link; messages to send wait here until there is room.

    `rejoins`: it goes on where a process that died stopped. Raises LinkError when the file is no link, or that side is
    open in another process.
    """

    def __init__(self, path: Path, *, rejoins: bool = False) -> None:
        self.path, self._rejoins = path, rejoins
        self.waiting: deque[tuple[MessageKind, int, bytes]] = deque()
        self.sent = self.received = 0
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._lock(fcntl.F_WRLCK, MAKING_LOCK, fcntl.F_OFD_SETLKW)
        size = os.fstat(self._descriptor).st_size
        if size == 0:
            os.ftruncate(self._descriptor, FILE_BYTES)
        elif size != FILE_BYTES:
            raise LinkError(f"{path}: is not a link")
        self._map = mmap.mmap(self._descriptor, FILE_BYTES)
        self._words = memoryview(self._map).cast("Q")
        self._uses = memoryview(self._map).cast("I")
        self._take_side()
        self._lock(fcntl.F_UNLCK, MAKING_LOCK, fcntl.F_OFD_SETLK)

    def _lock(self, kind: int, byte: int, command: int) -> None:
        fcntl.fcntl(self._descriptor, command, LOCK_STRUCT.pack(kind, os.SEEK_SET, byte, 1, 0))

    def _take_side(self) -> None:
        if self._words[0] not in (0, LINK_MAGIC):
            raise LinkError(f"{self.path}: is not a link")
        try:
            self._lock(fcntl.F_WRLCK, OUR_SIDE, fcntl.F_OFD_SETLK)
        except OSError:
            raise LinkError(f"{self.path}: this side is open in another process") from None
        if self._words[0] == 0 or (self._use(OUR_SIDE) != NEVER_OPENED and not self._rejoins):
            if self._words[0] and self._is_locked(THEIR_SIDE):
                raise LinkError(f"{self.path}: the other end is still open from an earlier run")
            self._make()
        self._uses[USES_OFFSET // 4 + OUR_SIDE] = IS_OPEN

    def _make(self) -> None:
        for ring in (OUR_SIDE, THEIR_SIDE):
            self._words[_word(ring, TAIL_OFFSET)] = self._words[_word(ring, HEAD_OFFSET)] = 0
            self._uses[USES_OFFSET // 4 + ring] = NEVER_OPENED
        self._words[0] = LINK_MAGIC

    def _use(self, side: int) -> int:
        return self._uses[USES_OFFSET // 4 + side]

    def _is_locked(self, side: int) -> bool:
        wanted = LOCK_STRUCT.pack(fcntl.F_WRLCK, os.SEEK_SET, side, 1, 0)
        found = fcntl.fcntl(self._descriptor, fcntl.F_OFD_GETLK, wanted)
        return bool(LOCK_STRUCT.unpack(found)[0] != fcntl.F_UNLCK)

    @property
    def is_met(self) -> bool:
        """Whether the process at the other end has come."""
        return self._use(THEIR_SIDE) != NEVER_OPENED

    @property
    def is_alive(self) -> bool:
        """Whether it is still there."""
        return self._use(THEIR_SIDE) == IS_OPEN and self._is_locked(THEIR_SIDE)

    def send(self, kind: MessageKind, time_us: int = 0, data: bytes = b"") -> None:
        """Let a message wait for room; `pump` sends it. Raises LinkError when it is longer than a slot."""
        if len(data) > MOST_BYTES:
            raise LinkError(f"{self.path}: a packet is longer than {MOST_BYTES:,} bytes")
        self.waiting.append((kind, time_us, data))
        self.sent += kind is MessageKind.PACKET

    def pump(self) -> bool:
        """Send what there is room for; whether that is anything."""
        tail, moved = self._words[_word(OUR_SIDE, TAIL_OFFSET)], False
        while self.waiting and tail - self._words[_word(OUR_SIDE, HEAD_OFFSET)] < LINK_SLOTS:
            kind, time_us, data = self.waiting.popleft()
            at = _slot(OUR_SIDE, tail)
            self._map[at + SLOT_HEAD.size : at + SLOT_HEAD.size + len(data)] = data
            SLOT_HEAD.pack_into(self._map, at, len(data), kind, 0, time_us)
            tail, moved = tail + 1, True
            self._words[_word(OUR_SIDE, TAIL_OFFSET)] = tail
        return moved

    def messages(self) -> Iterator[tuple[MessageKind, int, bytes]]:
        """The messages that are there: kind, time and bytes.

        Raises LinkError when the other process sent what is no message.
        """
        head = self._words[_word(THEIR_SIDE, HEAD_OFFSET)]
        while head != self._words[_word(THEIR_SIDE, TAIL_OFFSET)]:
            at = _slot(THEIR_SIDE, head)
            length, kind, _, time_us = SLOT_HEAD.unpack_from(self._map, at)
            if length > MOST_BYTES or kind not in list(MessageKind):
                raise LinkError(f"{self.path}: the process at the other end sent what is no message")
            data = self._map[at + SLOT_HEAD.size : at + SLOT_HEAD.size + length]
            head += 1
            self._words[_word(THEIR_SIDE, HEAD_OFFSET)] = head
            self.received += kind == MessageKind.PACKET
            yield MessageKind(kind), time_us, data

    def close(self) -> None:
        """Leave the link."""
        self._uses[USES_OFFSET // 4 + OUR_SIDE] = HAS_LEFT
        self._words.release()
        self._uses.release()
        self._map.close()
        os.close(self._descriptor)


def _word(ring: int, offset: int) -> int:
    """The index of a ring's counter among the words of the file."""
    return (PAGE_BYTES + ring * RING_BYTES + offset) // 8


def _slot(ring: int, number: int) -> int:
    return PAGE_BYTES + ring * RING_BYTES + FIRST_SLOT_OFFSET + number % LINK_SLOTS * SLOT_BYTES


# Captures (pcap) of Ethernet frames, read and written.


MICROSECOND_MAGIC, NANOSECOND_MAGIC = 0xA1B2C3D4, 0xA1B23C4D
ETHERNET_LINK = 1
GLOBAL_BYTES, RECORD_BYTES = 24, 16
LONGEST_PACKET = 65535


def read_capture(path: Path) -> Iterator[tuple[int, bytes]]:
    """The times of a capture's frames, us, and the frames.

    Raises InputError when it is no capture of whole frames from Ethernet.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError.of(str(path), error.strerror or str(error)) from None
    order, per_us = _format(path, data)
    at, number = GLOBAL_BYTES, 0
    while at < len(data):
        number += 1
        if len(data) < at + RECORD_BYTES:
            raise InputError.of(str(path), f"packet {number}: the file ends in it")
        seconds, part, length, whole = struct.unpack_from(f"{order}IIII", data, at)
        at += RECORD_BYTES
        if length != whole or length > LONGEST_PACKET or len(data) < at + length:
            message = f"packet {number}: {min(length, len(data) - at)} of {whole} bytes are there"
            raise InputError.of(str(path), message, hint="capture whole packets (tcpdump -s 0)")
        yield seconds * 1_000_000 + part // per_us, data[at : at + length]
        at += length


def _format(path: Path, data: bytes) -> tuple[str, int]:
    """The byte order, and how many parts of a second a microsecond has."""
    for order in "<>":
        if len(data) < GLOBAL_BYTES:
            break
        magic, *_, link = struct.unpack_from(f"{order}IHHiIII", data)
        if magic in (MICROSECOND_MAGIC, NANOSECOND_MAGIC):
            if link != ETHERNET_LINK:
                raise InputError.of(str(path), "not captured from Ethernet")
            return order, 1 if magic == MICROSECOND_MAGIC else 1000
    raise InputError.of(str(path), "is no capture in the format of pcap")


class CaptureWriter:
    """Writes a capture aside; it is there once all is written."""

    def __init__(self, path: Path) -> None:
        self._path, self._aside = path, path.with_name(path.name + ".part")
        self._file = self._aside.open("wb")
        self._file.write(struct.pack("<IHHiIII", MICROSECOND_MAGIC, 2, 4, 0, 0, LONGEST_PACKET, ETHERNET_LINK))

    def write(self, time_us: int, frame: bytes) -> bool:
        """Write a frame; true."""
        seconds, us = divmod(time_us, 1_000_000)
        self._file.write(struct.pack("<IIII", seconds, us, len(frame), len(frame)) + frame)
        return True

    def __enter__(self) -> CaptureWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if kind is None:
            self._aside.replace(self._path)
        else:
            self._aside.unlink(missing_ok=True)
