"""Writes the files of a report: all of them, or none."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from profiles.aside import file_aside

Files = dict[Path, bytes]  # contents by path


def write_files(files: Mapping[Path, bytes]) -> list[Path]:
    """Write all files aside, then rename them: if one cannot be written, none is."""
    with ExitStack() as stack:
        for path, content in files.items():
            stack.enter_context(file_aside(path)).write_bytes(content)
    return list(files)
