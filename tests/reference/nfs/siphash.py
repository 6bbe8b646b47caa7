"""SipHash-2-4 (Aumasson and Bernstein, 2012), and the key that two ends of a link get from a seed."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

MASK = (1 << 64) - 1


def split_mix(seed: int, n: int) -> list[int]:
    """The first numbers of SplitMix64 (Steele, Lea and Flood, 2014)."""
    made = []
    for _ in range(n):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        mixed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK
        made.append(mixed ^ mixed >> 31)
    return made


@njit  # compiled when it is called, as most runs of the tests do not
def _rotated(x, bits):  # type: ignore[no-untyped-def]
    return x << bits | x >> (uint64(64) - bits)


@njit
def _hash(words, key0, key1):  # type: ignore[no-untyped-def]
    a = key0 ^ uint64(0x736F6D6570736575)
    b = key1 ^ uint64(0x646F72616E646F6D)
    c = key0 ^ uint64(0x6C7967656E657261)
    d = key1 ^ uint64(0x7465646279746573)
    for at in range(len(words) + 1):
        rounds = 2
        if at == len(words):
            c ^= uint64(0xFF)
            rounds = 4
        else:
            d ^= words[at]
        for _ in range(rounds):
            a += b
            b = _rotated(b, uint64(13)) ^ a
            a = _rotated(a, uint64(32))
            c += d
            d = _rotated(d, uint64(16)) ^ c
            a += d
            d = _rotated(d, uint64(21)) ^ a
            c += b
            b = _rotated(b, uint64(17)) ^ c
            c = _rotated(c, uint64(32))
        if at < len(words):
            a ^= words[at]
    return a ^ b ^ c ^ d


class SipHash:
    """A keyed hash."""

    def __init__(self, seed: int) -> None:
        self.key = [np.uint64(number) for number in split_mix(seed, 2)]

    def __call__(self, data: bytes) -> int:
        """The hash of bytes: their last word has their length, modulo 256, in its highest byte."""
        padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 255])
        return int(_hash(np.frombuffer(bytearray(padded), dtype=np.uint64), *self.key))
