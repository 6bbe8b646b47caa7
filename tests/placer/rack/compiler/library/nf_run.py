"""Runs the functions in C on frames, and their models: as chains have them, on a server of a rack."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from placer.rack.compiler.library.nf_kind import NF_KINDS
from tests.nfs.comparison import PROGRAM, NfRun, read_frames
from tests.reference.interpret import model_of
from tests.reference.nfs.headers import INSIDE
from tests.reference.nfs.traffic import Sent

GAP_US = 1000
FIRST_US = 1_000_000
"""When the first packet of a capture arrives; others follow at equal gaps."""


@dataclass(frozen=True)
class SentByC:
    """What a function in C did: what left, and its counters."""

    out: list[bytes]
    counters: dict[str, int]


def in_c(
    nf: str,
    parameters: Mapping[str, float],
    frames: Sequence[bytes],
    folder: Path,
    settings: Mapping[str, str] | None = None,
) -> SentByC:
    """Frames through the function in C, with the settings of the library and perhaps others. Skips without it."""
    require_nf(nf)
    kind = NF_KINDS[nf]
    completed = kind.completed(parameters, nf)
    files = {}
    for suffix, text in kind.server_files(kind.data(completed)).items():
        files[suffix] = str(folder / f"data.{suffix}")
        Path(files[suffix]).write_text(text, encoding="utf-8")
    given = {**kind.server_settings(completed, files), **(settings or {})}
    left = NfRun(PROGRAM, nf, given, folder)(sent_at_gaps(frames), "nf")
    return SentByC([frame for _, frame in read_frames(left.out)], left.counters())


def in_model(nf: str, parameters: Mapping[str, float], frames: Sequence[bytes]) -> list[bytes]:
    """Frames through the model, at the same times."""
    model = model_of(nf, parameters, nf)
    return [out for sent in sent_at_gaps(frames) for out in model.process(sent.frame, sent.time_us)]


def sent_at_gaps(frames: Sequence[bytes]) -> list[Sent]:
    return [Sent(FIRST_US + i * GAP_US, INSIDE, frame) for i, frame in enumerate(frames)]


def require_nf(nf: str) -> None:
    """Skip the test if the program is not built, or its build lacks the function."""
    if not PROGRAM.exists():
        pytest.skip("nf-run is not built: `make nfs` builds it")
    listed = subprocess.run([PROGRAM, "--list"], capture_output=True, text=True, check=True).stdout
    if nf not in [line.split()[0] for line in listed.splitlines()]:
        pytest.skip(f"this build of nf-run lacks {nf}")
