"""Captures and packets for tests of nf-run, written byte by byte."""

import struct
from collections.abc import Iterable
from pathlib import Path

ETHERNET = 1
GLOBAL_HEADER = struct.Struct("<IHHiIII")
PACKET_HEADER = struct.Struct("<IIII")


def write_capture(path: Path, packets: Iterable[bytes], gap_us: int = 1000, link: int = ETHERNET) -> Path:
    """Write packets `gap_us` microseconds apart; return the path."""
    with path.open("wb") as file:
        file.write(GLOBAL_HEADER.pack(0xA1B2C3D4, 2, 4, 0, 0, 65535, link))
        for i, packet in enumerate(packets):
            seconds, us = divmod(i * gap_us, 1_000_000)
            file.write(PACKET_HEADER.pack(1 + seconds, us, len(packet), len(packet)) + packet)
    return path


def read_capture(path: Path) -> list[bytes]:
    """The packets of a capture."""
    data, at, packets = path.read_bytes(), GLOBAL_HEADER.size, []
    while at < len(data):
        length = PACKET_HEADER.unpack_from(data, at)[2]
        at += PACKET_HEADER.size
        packets.append(data[at : at + length])
        at += length
    return packets


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


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
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return bytes([2] * 6 + [6] * 6) + b"\x08\x00" + ip + udp
