"""The host testbed's program exits cleanly in the middle of a run."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.nfs.testbed_program import DESCRIBE, FLOW_STATS, assert_no_sanitizer_error, run_request, start

BUSY_S = 0.2  # more CPU time than the program needs to read a request


def cpu_time_s(pid: int) -> float:
    """The CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start_run(program: Path, *options: str) -> subprocess.Popen[str]:
    """Start the program, wait until it answers, and send it a run request."""
    running = start(program, "--counters", "none", *options)
    assert running.stdin and running.stdout
    for request in (DESCRIBE, run_request(FLOW_STATS)):
        running.stdin.write(json.dumps(request) + "\n")
        running.stdin.flush()
        if request is DESCRIBE:
            assert json.loads(running.stdout.readline())["ok"]
    return running


@pytest.mark.parametrize("signalled", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run(either: Path, signalled: signal.Signals) -> None:
    """SIGINT and SIGTERM end the program in the middle of a run, with status 0 and without a response."""
    with start_run(either, "--windows", "100000,1000000", "--timeout", "120") as running:
        # until it uses the CPU: a process that waits for input does not
        idle, end = cpu_time_s(running.pid), time.monotonic() + 60
        while cpu_time_s(running.pid) < idle + BUSY_S:
            assert time.monotonic() < end, "the process never used the CPU"
            time.sleep(0.02)
        running.send_signal(signalled)
        stdout, stderr = running.communicate(timeout=30)
        assert running.returncode == 0
        assert stdout == ""
        assert_no_sanitizer_error(stderr)


def test_a_closed_stdout_ends_the_program(either: Path) -> None:
    """If a response cannot be written, the program exits with status 1 and reports why."""
    with start_run(either, "--windows", "5,10", "--standard-error", "0.000001") as running:
        assert running.stdout and running.stderr
        running.stdout.close()
        stderr = running.stderr.read()
        assert running.wait(timeout=60) == 1
        assert "cannot write a response" in stderr
        assert_no_sanitizer_error(stderr)
