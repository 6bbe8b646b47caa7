"""The C tests of the network functions, and a short fuzzing run (`make fuzz` takes longer)."""

import json
from pathlib import Path

import pytest

from tests.nfs.builds import ROOT, SANITIZE, build_sanitized, build_tested, require, run

NFS = ROOT / "nfs"
TESTS = "meson-test-prereq"  # ninja's name for the programs that `meson test` runs


def test_c_tests_pass() -> None:
    """All of them; with SANITIZE=1 under the address and undefined-behaviour sanitizers."""
    require()
    output = run(["meson", "test", "-C", build_tested(TESTS), "--no-rebuild", "--print-errorlogs"])
    assert "Fail:               0" in output


def test_every_function_and_bench_is_tested() -> None:
    """Each file of a function or bench has a C test of the same name, and the build runs every C test."""
    require()
    build = build_tested(TESTS)
    tested = {test["name"] for test in json.loads(run(["meson", "introspect", "--tests", build]))}
    registered = {
        file.stem
        for folder in ("functions", "benches")
        for file in (NFS / folder).glob("*.c")
        if "_REGISTER(" in file.read_text()
    }
    assert registered
    assert registered <= tested
    assert {file.stem.removeprefix("test_") for file in (NFS / "tests").glob("test_*.c")} <= tested


@pytest.mark.skipif(not SANITIZE, reason="packets are fuzzed with SANITIZE=1, as `make sanitized` does")
@pytest.mark.parametrize("target", ["fuzz_packets", "fuzz_captures"])
def test_fuzzing_finds_nothing(tmp_path: Path, target: str) -> None:
    """Random packets and captures make nothing crash, read beyond a packet, or leak one."""
    require("clang")
    build = build_sanitized(target)
    options = [f"-dict={NFS / 'fuzz/packets.dict'}"] if target == "fuzz_packets" else []
    run([build / target, "-max_total_time=5", "-max_len=4096", *options, tmp_path], cwd=tmp_path)
