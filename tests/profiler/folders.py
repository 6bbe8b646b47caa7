"""Folders compared by their bytes."""

from __future__ import annotations

from pathlib import Path


def bytes_of(directory: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path inside."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
