"""Runs the host testbed's program on requests in the testbed protocol, one JSON object per line."""

import json
import os
import resource
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

FLOW_STATS = {"kind": "nf", "name": "FlowStats", "traffic": {"flows": 100, "packet_size": 64}}
DESCRIBE = {"id": 2, "op": "describe"}
QUICK = ("--null-control", "0", "--window-ms", "20")
ACCEPTS_NOISE = ("--windows", "5,200", "--standard-error", "50", *(["--realtime"] if os.geteuid() == 0 else []))
LEAST_OTHER_WORK = 0.02  # CPU time per second that explains why most windows were disturbed; each lost 0.5 % or more
OF_HYPERVISOR = ("steal", "slowed")  # reasons of disturbed windows that are not work of this machine


def start(program: Path, *options: str) -> subprocess.Popen[str]:
    """Start the program, with pipes to its standard streams."""
    return subprocess.Popen(
        [program, *QUICK, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run_to_end(program: Path, *options: str, lines: list[Any] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the program on `lines`, each a text or an object to send as JSON, until it exits."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines or [])
    done = subprocess.run([program, *QUICK, *options], input=text, capture_output=True, text=True, timeout=120)
    assert_no_sanitizer_error(done.stderr)
    return done


def assert_no_sanitizer_error(stderr: str) -> None:
    """Fail if a sanitizer reported an error."""
    assert "Sanitizer" not in stderr and "runtime error" not in stderr, stderr


def responses_to(program: Path, *options: str, lines: list[Any]) -> list[dict[str, Any]]:
    """Run the program on `lines`; return its responses."""
    done = run_to_end(program, *options, lines=lines)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def measured_or_skip(program: Path, *options: str, lines: list[Any]) -> list[dict[str, Any]]:
    """The responses to runs, all measured, and none by best effort. The test is skipped if the machine is too busy for
    that, also when it tries again; it fails if the program says so three times of a machine on which nothing else runs.
    """
    answers: list[dict[str, Any]] = [{}] * len(lines)
    left, helped, unexplained = list(range(len(lines))), True, 0
    while left and (helped or 0 < unexplained < 3):
        begin, before = time.monotonic(), _other_cpu_s()
        for at, answer in zip(left, responses_to(program, *options, lines=[lines[at] for at in left]), strict=True):
            answers[at] = answer
        other_work = (_other_cpu_s() - before) / (time.monotonic() - begin)
        noisy = [at for at in left if _is_noisy(answers[at])]
        left, helped = noisy, len(noisy) < len(left)
        rejected = [answers[at].get("error", answers[at])["windows"]["rejected"] for at in noisy]
        outside = all(sum(of.get(reason, 0) for reason in OF_HYPERVISOR) > sum(of.values()) / 2 for of in rejected)
        unexplained = 0 if outside or other_work > LEAST_OTHER_WORK else unexplained + 1
    assert not unexplained or not left, f"other work takes {other_work:.1%} only: {answers[left[0]]}"
    if left:
        pytest.skip(f"this machine has other work: {answers[left[0]]}")
    assert all(answer["ok"] for answer in answers), answers
    return answers


def _is_noisy(answer: dict[str, Any]) -> bool:
    """Whether the response to a run is one by best effort, or there was none."""
    return "best_effort" in answer or answer.get("error", {}).get("code") == "too-noisy"


def _other_cpu_s() -> float:
    """CPU time (s) that all processes of the machine have used, but for this one and its ended children; what the
    hypervisor gave to other machines counts, too: a process that waits meanwhile waits for a core."""
    user, nice, system, _, _, interrupts, soft, stolen = map(int, Path("/proc/stat").read_text().split()[1:9])
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ticks = user + nice + system + interrupts + soft + stolen
    return ticks / os.sysconf("SC_CLK_TCK") - sum(usage.ru_utime + usage.ru_stime for usage in own)


def run_request(*workloads: Any, **more: object) -> dict[str, object]:
    return {"id": 1, "op": "run", "workloads": list(workloads), **more}


def mem_bench(**parameters: object) -> dict[str, object]:
    return {"kind": "bench", "name": "mem-bench", "parameters": parameters}
