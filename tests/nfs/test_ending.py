"""How the program of the host testbed ends in the middle of a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.nfs.talking import DESCRIBE, FLOW_STATS, found_by_sanitizers, run_of, start

BUSY_S = 0.2
"""More of a processor than it takes to read a request."""


def processor_s(pid: int) -> float:
    """The time that a process has had on processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def asked(program: Path, *options: str) -> subprocess.Popen[str]:
    """The program, awake and asked for a run."""
    running = start(program, "--counters", "none", *options)
    assert running.stdin and running.stdout
    for request in (DESCRIBE, run_of(FLOW_STATS)):
        running.stdin.write(json.dumps(request) + "\n")
        running.stdin.flush()
        if request is DESCRIBE:
            assert json.loads(running.stdout.readline())["ok"]
    return running


def wait_until_busy(pid: int) -> None:
    """Return when a process works, which one that waits for a line does not."""
    idle, end = processor_s(pid), time.monotonic() + 60
    while processor_s(pid) < idle + BUSY_S:
        assert time.monotonic() < end, "it never got busy"
        time.sleep(0.02)


@pytest.mark.parametrize("signalled", [signal.SIGINT, signal.SIGTERM])
def test_ends_when_asked(either: Path, signalled: signal.Signals) -> None:
    """A signal ends it in the middle of a run, cleanly and at once."""
    with asked(either, "--windows", "100000,1000000", "--timeout", "120") as running:
        wait_until_busy(running.pid)
        running.send_signal(signalled)
        stdout, stderr = running.communicate(timeout=30)
        assert running.returncode == 0
        assert stdout == ""
        found_by_sanitizers(stderr)


def test_ends_when_nobody_listens(either: Path) -> None:
    """Where the answer to a run cannot be told, it ends, and says why."""
    with asked(either, "--windows", "5,10", "--standard-error", "0.000001") as running:
        assert running.stdout and running.stderr
        running.stdout.close()
        stderr = running.stderr.read()
        assert running.wait(timeout=60) == 1
        assert "nobody hears" in stderr
        found_by_sanitizers(stderr)
