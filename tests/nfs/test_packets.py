"""The network functions in C: packets in, packets out, under sanitizers; and a minute of fuzzing."""

from __future__ import annotations

import json
from pathlib import Path

from tests.nfs.building import ROOT, SANITIZED, built, needs, run

NFS = ROOT / "nfs"


def test_packets_in_packets_out() -> None:
    """Every function, bench and accelerator passes its own tests with the address and undefined sanitizers."""
    needs("cc")
    build = built("nfs-sanitized", *SANITIZED)
    told = run(["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs"])
    assert "Fail:               0" in told


def test_every_function_and_bench_is_tested() -> None:
    """Each file of a function or bench has a test of the same name, and no test is left out of the build's lists."""
    needs("cc")
    build = built("nfs-sanitized", *SANITIZED)
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


def test_a_minute_of_fuzzing_finds_nothing(tmp_path: Path) -> None:
    """Bytes as packets make no function crash, read past a packet, or lose one."""
    needs("clang")
    build = built(
        "nfs-fuzz", "-Dfuzz=true", "-Dtests=disabled", *SANITIZED[:2], compiler="clang", target="fuzz_packets"
    )
    run(
        [
            build / "fuzz_packets",
            "-max_total_time=60",
            "-max_len=4096",
            f"-dict={NFS / 'fuzz/packets.dict'}",
            tmp_path,
        ],
        cwd=tmp_path,
    )
