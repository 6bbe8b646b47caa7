"""The end of the link between `nf-switch` and the process that runs its rules: the file that `nfs/rack/link_file.h`
describes.

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

LINK_SLOTS, SLOT_BYTES, PAGE_BYTES = 1024, 4096, 4096
SLOT_HEAD = struct.Struct("=IHHQ")
MOST_BYTES = SLOT_BYTES - SLOT_HEAD.size
RING_BYTES = PAGE_BYTES + LINK_SLOTS * SLOT_BYTES
FILE_BYTES = PAGE_BYTES + 2 * RING_BYTES
LINK_MAGIC = 0x316B6E696C73666E
TAIL_OFFSET, HEAD_OFFSET, FIRST_SLOT_OFFSET = 0, 64, PAGE_BYTES
USES_OFFSET = 8
NEVER_OPENED, IS_OPEN, HAS_LEFT = range(3)
THEIR_SIDE, OUR_SIDE, MAKING_LOCK = range(3)  # sides of the file, and the bytes that are locked: the switch is side A
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
        self.waiting: deque[tuple[MessageKind, int, int, bytes]] = deque()
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

    def send(self, kind: MessageKind, time_us: int = 0, data: bytes = b"", port: int = 0) -> None:
        """Let a message wait for room; `pump` sends it. Raises LinkError when it is longer than a slot."""
        if len(data) > MOST_BYTES:
            raise LinkError(f"{self.path}: a packet is longer than {MOST_BYTES:,} bytes")
        self.waiting.append((kind, port, time_us, data))

    def pump(self) -> bool:
        """Send what there is room for; whether that is anything."""
        tail, moved = self._words[_word(OUR_SIDE, TAIL_OFFSET)], False
        while self.waiting and tail - self._words[_word(OUR_SIDE, HEAD_OFFSET)] < LINK_SLOTS:
            kind, port, time_us, data = self.waiting.popleft()
            at = _slot(OUR_SIDE, tail)
            self._map[at + SLOT_HEAD.size : at + SLOT_HEAD.size + len(data)] = data
            SLOT_HEAD.pack_into(self._map, at, len(data), kind, port, time_us)
            tail, moved = tail + 1, True
            self._words[_word(OUR_SIDE, TAIL_OFFSET)] = tail
        return moved

    def messages(self) -> Iterator[tuple[MessageKind, int, int, bytes]]:
        """The messages that are there: kind, port, time and bytes.

        Raises LinkError when the other process sent what is no message.
        """
        head = self._words[_word(THEIR_SIDE, HEAD_OFFSET)]
        while head != self._words[_word(THEIR_SIDE, TAIL_OFFSET)]:
            at = _slot(THEIR_SIDE, head)
            length, kind, port, time_us = SLOT_HEAD.unpack_from(self._map, at)
            if length > MOST_BYTES or kind not in list(MessageKind):
                raise LinkError(f"{self.path}: the process at the other end sent what is no message")
            data = self._map[at + SLOT_HEAD.size : at + SLOT_HEAD.size + length]
            head += 1
            self._words[_word(THEIR_SIDE, HEAD_OFFSET)] = head
            yield MessageKind(kind), port, time_us, data

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
