"""One side of a link (nfs/rack/link.h): for tests of what is at the other."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

MAGIC = 0x316B6E696C73666E
SLOTS, SLOT_BYTES, HEADER = 1024, 4096, struct.Struct("<IHHQ")
RINGS_AT, SLOTS_AT = 4096, 4096
RING_BYTES = SLOTS_AT + SLOTS * SLOT_BYTES
FILE_BYTES = RINGS_AT + 2 * RING_BYTES
PACKET, FLUSH, END = 0, 1, 2
SIDE_A, SIDE_B, MAKING = 0, 1, 2
OPEN, LEFT = 1, 2


class Message(NamedTuple):
    """What a link carries."""

    kind: int
    time_us: int
    data: bytes


class Wire:
    """One side of a link. It must be closed."""

    def __init__(self, path: Path, side: int = SIDE_A) -> None:
        self.side, self.other = side, SIDE_B if side == SIDE_A else SIDE_A
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._lock(fcntl.F_WRLCK, MAKING, wait=True)
        if os.fstat(self.descriptor).st_size == 0:
            os.ftruncate(self.descriptor, FILE_BYTES)
        self.memory = mmap.mmap(self.descriptor, FILE_BYTES)
        # written at once: struct.pack_into writes zeros first, and the other process sees them
        self.longs, self.ints = memoryview(self.memory).cast("Q"), memoryview(self.memory).cast("I")
        self._lock(fcntl.F_WRLCK, side)
        self.longs[0] = MAGIC
        self.ints[2 + side] = OPEN
        self._lock(fcntl.F_UNLCK, MAKING)

    def close(self) -> None:
        """Leave the link."""
        self.ints[2 + self.side] = LEFT
        self.longs.release()
        self.ints.release()
        self.memory.close()
        os.close(self.descriptor)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, kind: int, data: bytes = b"", time_us: int = 0) -> bool:
        """Put a message into the ring; false if it is full."""
        ring = RINGS_AT + self.side * RING_BYTES
        tail = self.longs[ring // 8]
        if tail - self.longs[ring // 8 + 8] == SLOTS:
            return False
        at = ring + SLOTS_AT + tail % SLOTS * SLOT_BYTES
        self.memory[at : at + HEADER.size] = HEADER.pack(len(data), kind, 0, time_us)
        self.memory[at + HEADER.size : at + HEADER.size + len(data)] = data
        self.longs[ring // 8] = tail + 1
        return True

    def receive(self) -> Message | None:
        """The next message, if one is there."""
        ring = RINGS_AT + self.other * RING_BYTES
        head = self.longs[ring // 8 + 8]
        if head == self.longs[ring // 8]:
            return None
        at = ring + SLOTS_AT + head % SLOTS * SLOT_BYTES
        length, kind, _, time_us = HEADER.unpack_from(self.memory, at)
        message = Message(kind, time_us, self.memory[at + HEADER.size : at + HEADER.size + length])
        self.longs[ring // 8 + 8] = head + 1
        return message

    def wait(self, patience_s: float = 10) -> Message:
        """The next message, which must come."""
        deadline = time.monotonic() + patience_s
        while (message := self.receive()) is None:
            assert time.monotonic() < deadline, "nothing came over the link"
            time.sleep(50e-6)
        return message

    def exchange(self, packets: Iterable[tuple[int, bytes]], rounds: int = 1, patience_s: float = 30) -> list[Message]:
        """Send packets with their times, then rounds of flushes, then the end; return the packets that came."""
        orders = [(PACKET, data, time_us) for time_us, data in packets]
        orders += [(FLUSH, struct.pack("<Q", i), 0) for i in range(rounds)]
        came, answered, deadline = list[Message](), 0, time.monotonic() + patience_s
        while orders or answered < rounds:
            while orders and self.send(*orders[0]):
                orders.pop(0)
            while message := self.receive():
                if message.kind == PACKET:
                    came.append(message)
                elif message.kind == FLUSH:
                    assert struct.unpack("<Q", message.data) == (answered,)
                    answered += 1
            assert time.monotonic() < deadline, f"{len(orders)} messages unsent, {answered} of {rounds} rounds answered"
            time.sleep(0.0002)
        assert self.send(END)
        return came

    def _lock(self, kind: int, byte: int, wait: bool = False) -> None:
        how = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
        fcntl.fcntl(self.descriptor, how, struct.pack("hhqqi4x", kind, os.SEEK_SET, byte, 1, 0))
