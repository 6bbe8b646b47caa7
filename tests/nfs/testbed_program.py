"""Runs the host testbed's program on requests in the testbed protocol, one JSON object per line."""

import json
import subprocess
from pathlib import Path
from typing import Any

FLOW_STATS = {"kind": "nf", "name": "FlowStats", "traffic": {"flows": 100, "packet_size": 64}}
DESCRIBE = {"id": 2, "op": "describe"}
QUICK = ("--null-control", "0", "--window-ms", "20")


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


def run_request(*workloads: Any, **more: object) -> dict[str, object]:
    return {"id": 1, "op": "run", "workloads": list(workloads), **more}


def mem_bench(**parameters: object) -> dict[str, object]:
    return {"kind": "bench", "name": "mem-bench", "parameters": parameters}
