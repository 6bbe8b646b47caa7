"""Captures (pcap) of Ethernet frames, read and written."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from profiles import InputError

MICROSECONDS, NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D
ETHERNET = 1
GLOBAL_BYTES, RECORD_BYTES = 24, 16
LONGEST = 65535


def read_capture(path: Path) -> Iterator[tuple[int, bytes]]:
    """The times of a capture's frames, us, and the frames.

    Raises
    ------
    InputError
        When it is no capture of whole frames from Ethernet.
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
        if length != whole or length > LONGEST or len(data) < at + length:
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
        if magic in (MICROSECONDS, NANOSECONDS):
            if link != ETHERNET:
                raise InputError.of(str(path), "not captured from Ethernet")
            return order, 1 if magic == MICROSECONDS else 1000
    raise InputError.of(str(path), "is no capture in the format of pcap")


class CaptureWriter:
    """Writes a capture aside; it is there once all is written."""

    def __init__(self, path: Path) -> None:
        self._path, self._aside = path, path.with_name(path.name + ".part")
        self._file = self._aside.open("wb")
        self._file.write(struct.pack("<IHHiIII", MICROSECONDS, 2, 4, 0, 0, LONGEST, ETHERNET))

    def write(self, time_us: int, frame: bytes) -> None:
        seconds, us = divmod(time_us, 1_000_000)
        self._file.write(struct.pack("<IIII", seconds, us, len(frame), len(frame)) + frame)

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
