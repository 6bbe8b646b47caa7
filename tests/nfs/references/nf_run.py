"""Runs nf-run on frames, through capture files."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.nfs.captures import ETHERNET, GLOBAL_HEADER, PACKET_HEADER
from tests.nfs.references.traffic import Sent

MEMORY_MB = 2048


@dataclass(frozen=True, slots=True)
class Left:
    """What nf-run wrote: its report, and the captures of both ends."""

    report: dict[str, Any]
    out: Path
    back: Path

    def counters(self) -> dict[str, int]:
        """Those of the first function."""
        found: dict[str, int] = self.report["functions"][0]["counters"]
        return found


@dataclass(frozen=True, slots=True)
class NfRun:
    """The program with one function, or with a chain that begins with it."""

    program: Path
    nf: str
    settings: dict[str, str]
    folder: Path
    chain: str = ""

    def __call__(self, sent: Iterable[Sent], name: str) -> Left:
        """Give frames to the function; files in the folder begin with `name`."""
        ends = [self.folder / f"{name}-{side}.pcap" for side in ("inside", "outside")]
        write_frames(ends, sent)
        out, back = (self.folder / f"{name}-{end}.pcap" for end in ("out", "back"))
        command = [self.program, *self.function(), "--memory-mb", MEMORY_MB]
        command += ["--in", ends[0], "--outside", ends[1], "--out", out, "--back", back]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"nf-run: exit status {done.returncode}: {done.stderr}")
        return Left(json.loads(done.stdout), out, back)

    def function(self) -> list[object]:
        """Arguments that name the function."""
        if not self.chain:
            return ["--nf", self.nf, *(f"--set={key}={value}" for key, value in self.settings.items())]
        quoted = " ".join(f'"{key}={value}"' for key, value in self.settings.items())
        path = self.folder / "chain"
        path.write_text(self.chain.format(settings=quoted), encoding="utf-8")
        return ["--chain", path]


def write_frames(ends: list[Path], sent: Iterable[Sent]) -> None:
    """Write frames to the capture of their side."""
    files = [path.open("wb") for path in ends]
    for file in files:
        file.write(GLOBAL_HEADER.pack(0xA1B2C3D4, 2, 4, 0, 0, 65535, ETHERNET))
    pack = PACKET_HEADER.pack
    for one in sent:
        seconds, us = divmod(one.time_us, 1_000_000)
        files[one.side].write(pack(seconds, us, len(one.frame), len(one.frame)) + one.frame)
    for file in files:
        file.close()


def read_frames(path: Path) -> Iterator[tuple[int, bytes]]:
    """Times in microseconds and frames of a capture."""
    with path.open("rb") as file:
        file.seek(GLOBAL_HEADER.size)
        while header := file.read(PACKET_HEADER.size):
            seconds, us, length, _ = struct.unpack("<IIII", header)
            yield seconds * 1_000_000 + us, file.read(length)
