"""Runs the functions in C on frames: `nf-run`, which the tests of the library compare models with."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from placer.metacompiler.library.nf_model import NF_KINDS
from tests.nfs.captures import read_capture, write_capture

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = ROOT / "build" / "nfs" / "run" / "nf-run"
GAP_US = 1000
FIRST_US = 1_000_000
"""When the first packet of a capture arrives; others follow at equal gaps."""


@dataclass(frozen=True)
class Sent:
    """What a function in C did: what left, and its counters."""

    out: list[bytes]
    counters: dict[str, int]


def in_c(
    nf: str,
    parameters: Mapping[str, float],
    frames: Sequence[bytes],
    folder: Path,
    settings: Mapping[str, str] | None = None,
) -> Sent:
    """Frames through the function in C, with the settings of the library and perhaps others. Skips without it."""
    require_nf(nf)
    kind = NF_KINDS[nf]
    completed = kind.completed(parameters, nf)
    files = {}
    for suffix, text in kind.server_files(kind.data(completed)).items():
        files[suffix] = str(folder / f"data.{suffix}")
        Path(files[suffix]).write_text(text, encoding="utf-8")
    given = {**kind.server_settings(completed, files), **(settings or {})}
    source, out = write_capture(folder / "in.pcap", frames, GAP_US), folder / "out.pcap"
    command = [PROGRAM, "--nf", nf, *(f"--set={key}={value}" for key, value in given.items())]
    command += ["--memory-mb", 512, "--in", source, "--out", out]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode == 2 and ("has no parameter" in done.stderr or "prime" in done.stderr):
        pytest.skip(f"this build of {nf} lacks a setting: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return Sent(read_capture(out), report["functions"][0]["counters"])


def in_model(nf: str, parameters: Mapping[str, float], frames: Sequence[bytes]) -> list[bytes]:
    """Frames through the model, at the same times."""
    kind = NF_KINDS[nf]
    completed = kind.completed(parameters, nf)
    model = kind.model(completed, kind.data(completed))
    return [out for i, frame in enumerate(frames) for out in model.process(frame, FIRST_US + i * GAP_US)]


def require_nf(nf: str) -> None:
    """Skip the test if the program is not built, or its build lacks the function."""
    if not PROGRAM.exists():
        pytest.skip("nf-run is not built: `make nfs` builds it")
    listed = subprocess.run([PROGRAM, "--list"], capture_output=True, text=True, check=True).stdout
    if nf not in [line.split()[0] for line in listed.splitlines()]:
        pytest.skip(f"this build of nf-run lacks {nf}")
