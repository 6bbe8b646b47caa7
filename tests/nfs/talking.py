"""Conversations with the program of the host testbed, a line each way."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

FLOW_STATS = {"kind": "nf", "name": "FlowStats", "traffic": {"flows": 100, "packet_size": 64}}
DESCRIBE = {"id": 2, "op": "describe"}
QUICK = ("--null-control", "0", "--window-ms", "20")


def start(program: Path, *options: str) -> subprocess.Popen[str]:
    """The program, which waits for a line."""
    return subprocess.Popen(
        [program, *QUICK, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(program: Path, *options: str, lines: list[Any] | None = None) -> subprocess.CompletedProcess[str]:
    """What the program says to `lines`, which are told as JSON unless they are text, and how it ends."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines or [])
    done = subprocess.run([program, *QUICK, *options], input=text, capture_output=True, text=True, timeout=120)
    found_by_sanitizers(done.stderr)
    return done


def found_by_sanitizers(stderr: str) -> None:
    """Fail when a program built with sanitizers said what they found."""
    assert "Sanitizer" not in stderr and "runtime error" not in stderr, stderr


def talk(program: Path, *options: str, lines: list[Any]) -> list[dict[str, Any]]:
    """The answers to `lines`."""
    done = said(program, *options, lines=lines)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def run_of(*workloads: Any, **more: object) -> dict[str, object]:
    return {"id": 1, "op": "run", "workloads": list(workloads), **more}


def mem_bench(**parameters: object) -> dict[str, object]:
    return {"kind": "bench", "name": "mem-bench", "parameters": parameters}
