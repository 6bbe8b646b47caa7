"""Captures and packets for tests of nf-run, written byte by byte."""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.reference.nfs.headers import internet_checksum

ETHERNET = 1
GLOBAL_HEADER = struct.Struct("<IHHiIII")
PACKET_HEADER = struct.Struct("<IIII")
LAST_SECOND = 2**32 - 1  # that a packet of a capture can have


def write_capture(path: Path, packets: Iterable[bytes], gap_us: int = 1000, link: int = ETHERNET) -> Path:
    """Write packets `gap_us` microseconds apart, the first at 1 s; return the path."""
    return write_frames(path, ((1_000_000 + i * gap_us, packet) for i, packet in enumerate(packets)), link)


def write_frames(path: Path, frames: Iterable[tuple[int, bytes]], link: int = ETHERNET) -> Path:
    """Write frames with their times, us; return the path."""
    with path.open("wb") as file:
        file.write(GLOBAL_HEADER.pack(0xA1B2C3D4, 2, 4, 0, 0, 65535, link))
        for time_us, frame in frames:
            file.write(PACKET_HEADER.pack(*divmod(time_us, 1_000_000), len(frame), len(frame)) + frame)
    return path


def read_frames(path: Path) -> Iterator[tuple[int, bytes]]:
    """Times (us) and frames of a capture."""
    with path.open("rb") as file:
        file.seek(GLOBAL_HEADER.size)
        while header := file.read(PACKET_HEADER.size):
            seconds, us, length, _ = PACKET_HEADER.unpack(header)
            yield seconds * 1_000_000 + us, file.read(length)


def read_capture(path: Path) -> list[bytes]:
    """The packets of a capture."""
    return [frame for _, frame in read_frames(path)]


def udp_packet(
    source: str = "10.0.0.1",
    destination: str = "198.51.100.7",
    ports: tuple[int, int] = (1000, 53),
    payload: bytes = b"",
    identification: int = 0,
    flags: int = 0,
) -> bytes:
    """An Ethernet frame with a UDP packet, whose UDP checksum is left out."""
    addresses = bytes(int(part) for part in f"{source}.{destination}".split("."))
    udp = struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), identification, flags, 64, 17, 0) + addresses
    ip = ip[:10] + struct.pack("!H", internet_checksum(ip)) + ip[12:]
    return bytes([2] * 6 + [6] * 6) + b"\x08\x00" + ip + udp
