"""A network interface of the kernel in place of captures, and orders on stdin: an OpenFlow switch that stays up.

What `nfs/rack/interface.c` and `nfs/rack/control.h` are to devices in C.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from types import TracebackType

from placer.rack.compiler.openflow.link_end import MOST_BYTES
from profiles import InputError

INTERFACE_PREFIX = "af_packet:"
ALL_PROTOCOLS, NO_PROTOCOL = 3, 0xFFFF  # ETH_P_ALL, and a type that is reserved
SOL_PACKET, ADD_MEMBERSHIP, STATISTICS, AUXDATA, VNET_HDR, IGNORE_OUTGOING = 263, 1, 6, 8, 15, 23
PROMISCUOUS = 1  # PACKET_MR_PROMISC
SO_RCVBUFFORCE, QUEUE_BYTES = 33, 64 << 20
AUXILIARY = struct.Struct("=IIIHHHH")  # struct tpacket_auxdata
VLAN_VALID, VLAN_TYPE_VALID, VLAN_TYPE = 1 << 4, 1 << 6, 0x8100
OFFLOAD_HEAD = struct.Struct("=BBHHHH")  # struct virtio_net_hdr
NEEDS_CHECKSUM = 1
ADDRESSES_BYTES = 12
SEND_PATIENCE_S = 0.1


class Interface:
    """Frames from and to an interface, with their VLAN tags. `unsent`: those that the kernel did not take.

    Raises InputError when there is no such interface, or it may not be opened.
    """

    def __init__(self, name: str, *, receives: bool) -> None:
        self.missed = self.unsent = 0
        self._name, self._is_shut = name, False
        try:
            number = socket.if_nametoindex(name)
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            for option in (VNET_HDR, AUXDATA, IGNORE_OUTGOING):
                self._socket.setsockopt(SOL_PACKET, option, 1)
            self._socket.setsockopt(SOL_PACKET, ADD_MEMBERSHIP, struct.pack("=iHH8x", number, PROMISCUOUS, 0))
            self._socket.bind((name, ALL_PROTOCOLS if receives else 0))
        except OSError as error:
            hint = "it needs the privilege CAP_NET_RAW" if isinstance(error, PermissionError) else None
            raise InputError.of(INTERFACE_PREFIX + name, error.strerror or str(error), hint=hint) from None
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, QUEUE_BYTES)
        except PermissionError:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, QUEUE_BYTES)
        self._socket.setblocking(False)

    def frames(self) -> Iterator[tuple[int, bytes] | None]:
        """The times of frames, us, and the frames; None while none is there. It ends once it is shut and empty."""
        while (frame := self._receive()) is not None or not self._is_shut:
            yield None if frame is None else (time.time_ns() // 1000, frame)

    def _receive(self) -> bytes | None:
        while True:
            try:
                data, more, _, _ = self._socket.recvmsg(
                    OFFLOAD_HEAD.size + MOST_BYTES + 1, socket.CMSG_SPACE(AUXILIARY.size)
                )
            except BlockingIOError:
                return None
            flags, _, _, _, start, offset = OFFLOAD_HEAD.unpack_from(data)
            frame = bytearray(data[OFFLOAD_HEAD.size :])
            if flags & NEEDS_CHECKSUM and start + offset + 2 <= len(frame):
                frame[start + offset : start + offset + 2] = _internet_checksum(bytes(frame[start:]))
            for level, kind, content in more:
                if (level, kind) == (SOL_PACKET, AUXDATA):
                    status, _, _, _, _, tag, kind_of_tag = AUXILIARY.unpack(content)
                    if status & VLAN_VALID:
                        type_ = kind_of_tag if status & VLAN_TYPE_VALID else VLAN_TYPE
                        frame[ADDRESSES_BYTES:ADDRESSES_BYTES] = struct.pack("!HH", type_, tag)
            if len(frame) <= MOST_BYTES:
                return bytes(frame)
            self.missed += 1

    def write(self, time_us: int, frame: bytes) -> bool:
        """Send a frame at once, whatever its time; whether the kernel took it."""
        limit = time.monotonic() + SEND_PATIENCE_S
        while time.monotonic() < limit:
            try:
                self._socket.send(bytes(OFFLOAD_HEAD.size) + frame)
                return True
            except BlockingIOError:
                select.select([], [self._socket], [], SEND_PATIENCE_S)
            except OSError:
                break
        self.unsent += 1
        return False

    def shut(self) -> None:
        """Let no more frames in than already wait."""
        self._is_shut = True
        self._socket.bind((self._name, NO_PROTOCOL))

    def count_missed(self) -> int:
        """Frames that came in and were lost: the queue was full, or they were too long for a link."""
        _, dropped = struct.unpack("=II", self._socket.getsockopt(SOL_PACKET, STATISTICS, 8))
        self.missed += dropped
        return self.missed

    def __enter__(self) -> Interface:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()


def _internet_checksum(data: bytes) -> bytes:
    """The checksum of RFC 1071, never 0, which is none to UDP."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) // 2 * 2])) + (data[-1] << 8) * (len(data) % 2)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", (~total & 0xFFFF) or 0xFFFF)


class Orders:
    """Lines on stdin, each answered on stdout. The end of stdin is an order to end, too."""

    def __init__(self) -> None:
        self.has_ended = False
        self._unread = b""
        print("ready", flush=True)

    def next(self) -> str | None:
        """The next order, if one is there."""
        while not self.has_ended and b"\n" not in self._unread and select.select([0], [], [], 0)[0]:
            text = os.read(0, 4096)
            self._unread, self.has_ended = self._unread + (text or b"end\n"), not text
        word, is_whole, rest = self._unread.partition(b"\n")
        if not is_whole:
            return None
        self._unread = rest
        return word.decode()

    def answer(self, is_done: bool) -> None:
        """Say that an order is done, or has failed."""
        print("done" if is_done else "failed", flush=True)
