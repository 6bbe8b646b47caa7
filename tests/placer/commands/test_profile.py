"""`placer profile`, as a process: what signals end, and where the profile goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from profiler.journal.status import read_status
from profiler.profiling import journal_of
from tests.placer.commands.conftest import Placer
from tests.profiler.toy_testbed import description

PLACER = [sys.executable, "-c", "from placer.cli import main; main()", "profile"]
INTERRUPTED = 130

BUSY = """
import json, os, signal, subprocess, sys, time
processes, ready, described = sys.argv[1:]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
children = [subprocess.Popen(["sleep", "600"], start_new_session=own) for own in (False, True)]
with open(processes, "a") as file:
    print(os.getpid(), *(child.pid for child in children), file=file)
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "run":
        open(ready, "w").close()
        time.sleep(600)
    print(json.dumps({"id": request["id"], "ok": True, "testbed": json.loads(described)}), flush=True)
"""
"""A testbed that describes itself, then hangs in its first run; it ignores SIGTERM, and a child has called setsid."""


@pytest.mark.parametrize(
    ("busy", "number"),
    [
        (True, signal.SIGTERM),
        (False, signal.SIGINT),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in ((True, signal.SIGHUP), (True, signal.SIGINT), (False, signal.SIGTERM), (False, signal.SIGHUP))
        ),
    ],
)
def test_a_signal_ends_the_testbed_with_every_process_that_it_started(
    tmp_path: Path, number: signal.Signals, busy: bool
) -> None:
    """In the middle of a run and before the first answer; the journal is kept."""
    program, processes, ready = tmp_path / "busy.py", tmp_path / "processes", tmp_path / "ready"
    program.write_text(BUSY, encoding="utf-8")
    described = json.dumps(description().model_dump(mode="json"))
    spec = f"exec:{sys.executable} {program} {processes} {ready} '{described}'"
    heeded = partial(signal.signal, number, signal.SIG_DFL)  # a shell ignores some signals in the background
    command = subprocess.Popen(
        [*PLACER, "--testbed", spec, "--out", str(tmp_path / "p")],
        stderr=subprocess.PIPE, encoding="utf-8", preexec_fn=heeded,
    )  # fmt: skip
    while not (ready if busy else processes).exists():
        assert command.poll() is None
        time.sleep(0.01)
    command.send_signal(number)
    _, err = command.communicate(timeout=30)
    started = [int(process) for process in processes.read_text(encoding="utf-8").split()]
    survivors = [process for process in started if not _ended(process)]
    for process in survivors:
        os.kill(process, signal.SIGKILL)
    assert not survivors
    assert command.returncode == INTERRUPTED
    assert "Traceback" not in err and "interrupted" in err
    if busy:
        assert read_status(journal_of(tmp_path / "p")).recorded == 0


@pytest.mark.long
def test_a_profile_goes_into_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, placer: Placer
) -> None:
    """`--out .` and `--out ..` name the folder, with the journal next to it; the root folder is refused."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    arguments = ("profile", "--testbed", "simulated", "--nf", "FlowStats", "--quota", 100, "--quiet")
    assert placer(*arguments, "--out", ".").status == 0
    assert (tmp_path / "here" / "FlowStats").is_dir()
    assert (tmp_path / "here.journal.sqlite").is_file()
    monkeypatch.chdir(tmp_path / "here" / "FlowStats")
    assert "left: nothing" in placer("profile", "--out", "..", "--status").stdout
    status, _, err = placer("profile", "--out", "/", "--status")
    assert status == 2 and err.startswith("--out: / cannot hold a profile")


def _ended(process: int) -> bool:
    """Whether the process has ended, perhaps without being waited for."""
    for _ in range(50):
        try:
            if Path(f"/proc/{process}/stat").read_text().split()[2] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False
