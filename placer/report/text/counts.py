"""Counts in sentences: `1 NIC`, `127 NICs`, `500 arrivals`."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """A count and its noun, which takes an s unless the count is 1."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def counted_nics(count: int) -> str:
    """A number of NICs."""
    return counted(count, "NIC")
