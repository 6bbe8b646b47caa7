"""One side of a link (nfs/rack/link.h), for tests of the programs at the other side."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

PACKET, FLUSH, END = range(3)
SLOTS, SLOT_BYTES = 1024, 4096
RING_BYTES = 4096 + SLOTS * SLOT_BYTES
FIRST_RING = 4096
FILE_BYTES = FIRST_RING + 2 * RING_BYTES
MAGIC = 0x316B6E696C73666E
SLOT_HEADER = struct.Struct("<IHHQ")
TAIL, HEAD = 0, 64
LOCK = struct.Struct("hhqqi4x")


@dataclass(frozen=True)
class Message:
    """What a process received: a packet, a flush with its round as bytes, or the end."""

    kind: int
    data: bytes = b""
    time_us: int = 0


class LinkEnd:
    """Side A (0) or B (1) of a link, whose file is made if it does not exist."""

    def __init__(self, path: Path, side: int) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.fcntl(self.file, fcntl.F_OFD_SETLKW, LOCK.pack(fcntl.F_WRLCK, 0, 2, 1, 0))
        os.ftruncate(self.file, FILE_BYTES)
        self.bytes = mmap.mmap(self.file, FILE_BYTES)
        self.words = memoryview(self.bytes).cast("Q")
        self.uses = memoryview(self.bytes).cast("I")
        self.words[0] = MAGIC
        self.uses[2 + side] = 1
        fcntl.fcntl(self.file, fcntl.F_OFD_SETLK, LOCK.pack(fcntl.F_WRLCK, 0, side, 1, 0))
        fcntl.fcntl(self.file, fcntl.F_OFD_SETLK, LOCK.pack(fcntl.F_UNLCK, 0, 2, 1, 0))
        self.side = side
        self.out = FIRST_RING + side * RING_BYTES
        self.into = FIRST_RING + (1 - side) * RING_BYTES

    def __enter__(self) -> LinkEnd:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.uses[2 + self.side] = 2
        self.words.release()
        self.uses.release()
        self.bytes.close()
        os.close(self.file)

    def receive(self, patience_s: float = 10) -> Message:
        """The next message; TimeoutError if none comes."""
        tail, head = ((self.into + place) // 8 for place in (TAIL, HEAD))
        end = time.monotonic() + patience_s
        while self.words[tail] == self.words[head]:
            if time.monotonic() > end:
                raise TimeoutError("nothing came over the link")
            time.sleep(50e-6)
        at = self.into + 4096 + self.words[head] % SLOTS * SLOT_BYTES
        length, kind, _, time_us = SLOT_HEADER.unpack_from(self.bytes, at)
        data = self.bytes[at + SLOT_HEADER.size : at + SLOT_HEADER.size + length]
        self.words[head] += 1
        return Message(kind, data, time_us)

    def send(self, message: Message) -> None:
        """Send a message once there is room."""
        tail, head = ((self.out + place) // 8 for place in (TAIL, HEAD))
        while self.words[tail] - self.words[head] >= SLOTS:
            time.sleep(50e-6)
        at = self.out + 4096 + self.words[tail] % SLOTS * SLOT_BYTES
        SLOT_HEADER.pack_into(self.bytes, at, len(message.data), message.kind, 0, message.time_us)
        self.bytes[at + SLOT_HEADER.size : at + SLOT_HEADER.size + len(message.data)] = message.data
        self.words[tail] += 1
