"""The network functions in C: packets in, packets out, under sanitizers; and a minute of fuzzing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SANITIZED = ("-Db_sanitize=address,undefined", "-Db_lundef=false", "-Doptimization=1")


def needs(*programs: str) -> None:
    """Skip, visibly, where the network functions cannot be built."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: `make deps` installs what the functions in C need")
    if subprocess.run(["pkg-config", "--exists", "libdpdk >= 22.11", "cmocka"], check=False).returncode:
        pytest.skip("DPDK 22.11 or cmocka not installed: `make deps` installs what the functions in C need")


def built(folder: str, *options: str, compiler: str = "cc", target: str = "all") -> Path:
    """The folder in which `target` is built."""
    build = ROOT / "build" / folder
    if not (build / "build.ninja").exists():
        run(["meson", "setup", build, ROOT / "nfs", *options], env=os.environ | {"CC": compiler})
    run(["ninja", "-C", build, target])
    return build


def run(command: list[object], **how: object) -> str:
    """What a command says; the test fails with it when the command does."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, errors="replace", check=False, **how
    )  # type: ignore[call-overload]
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return str(done.stdout)


def test_packets_in_packets_out() -> None:
    """Every function, bench and accelerator passes its own tests with the address and undefined sanitizers."""
    needs("meson", "ninja", "pkg-config", "cc")
    build = built("nfs-sanitized", *SANITIZED)
    told = run(["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs"])
    assert "Fail:               0" in told


def test_every_function_and_bench_has_a_test() -> None:
    """Each file of a function or bench has a test of the same name, so that none is left out of the build's list."""
    nfs = ROOT / "nfs"
    kinds = {file.stem for folder in ("functions", "benches") for file in (nfs / folder).glob("*.c")}
    registered = {
        kind for kind in kinds if any(registers(nfs / folder / f"{kind}.c") for folder in ("functions", "benches"))
    }
    assert registered
    assert registered <= {file.stem.removeprefix("test_") for file in (nfs / "tests").glob("test_*.c")}


def registers(file: Path) -> bool:
    """Whether a file makes a function or bench known."""
    return file.exists() and "_REGISTER(" in file.read_text()


def test_a_minute_of_fuzzing_finds_nothing(tmp_path: Path) -> None:
    """Bytes as packets make no function crash, read past a packet, or lose one."""
    needs("meson", "ninja", "pkg-config", "clang")
    build = built(
        "nfs-fuzz", "-Dfuzz=true", "-Dtests=disabled", *SANITIZED[:2], compiler="clang", target="fuzz_packets"
    )
    run(
        [
            build / "fuzz_packets",
            "-max_total_time=60",
            "-max_len=4096",
            f"-dict={ROOT / 'nfs/fuzz/packets.dict'}",
            tmp_path,
        ],
        cwd=tmp_path,
    )
