"""SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of 64 bits."""

from __future__ import annotations

import struct

MASK = (1 << 64) - 1


def siphash(key: tuple[int, int], data: bytes) -> int:
    """The hash of bytes under a key of two 64-bit numbers."""
    state = (
        key[0] ^ 0x736F6D6570736575,
        key[1] ^ 0x646F72616E646F6D,
        key[0] ^ 0x6C7967656E657261,
        key[1] ^ 0x7465646279746573,
    )
    padded = data + bytes(-(len(data) + 1) % 8) + bytes((len(data) & 0xFF,))
    for (word,) in struct.iter_unpack("<Q", padded):
        a, b, c, d = state
        a, b, c, d = _round(*_round(a, b, c, d ^ word))
        state = a ^ word, b, c, d
    a, b, c, d = state
    c ^= 0xFF
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


def _round(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    a = a + b & MASK
    c = c + d & MASK
    b = (b << 13 & MASK | b >> 51) ^ a
    d = (d << 16 & MASK | d >> 48) ^ c
    a = a << 32 & MASK | a >> 32
    c = c + b & MASK
    a = a + d & MASK
    b = (b << 17 & MASK | b >> 47) ^ c
    d = (d << 21 & MASK | d >> 43) ^ a
    return a, b, c << 32 & MASK | c >> 32, d
