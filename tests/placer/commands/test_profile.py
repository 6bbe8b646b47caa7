"""`placer profile`, as a process: what signals end, and where the profile goes. `placer profile --chain` and
`--chains`. `placer profile --latency`. `placer train` on a profile with latency.csv."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from profiler.journal.status import read_status
from profiler.profiling import journal_of
from profiles.chain_table import read_chains
from profiles.profile import read_profile
from tests.placer.commands.conftest import Placer, refuse
from tests.profiler.foreign import FOREIGN
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
        pytest.param(False, signal.SIGINT, marks=pytest.mark.long),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in ((True, signal.SIGHUP), (True, signal.SIGINT), (False, signal.SIGTERM), (False, signal.SIGHUP))
        ),
    ],
)
@pytest.mark.long
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
    assert not survivors and command.returncode == INTERRUPTED
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
    assert placer(*arguments, "--out", ".").status == 0 and (tmp_path / "here" / "FlowStats").is_dir()
    assert (tmp_path / "here.journal.sqlite").is_file()
    monkeypatch.chdir(tmp_path / "here" / "FlowStats")
    assert "left: nothing" in placer("profile", "--out", "..", "--status").stdout
    assert refuse("profile", "--out", "/", "--status").startswith("--out: / cannot hold a profile")


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


SERVER = ("profile", "--testbed", "simulated:server")


@pytest.mark.long
def test_chains_are_profiled_into_a_folder(tmp_path: Path, placer: Placer) -> None:
    """The placement that the user names, with its NFs alone; results in files, progress on stderr."""
    arguments = ("--out", tmp_path / "p", "--chain", "Tunnel|Tunnel", "--repeats", 1)
    status, out, err = placer(*SERVER, *arguments)
    assert (status, out) == (0, "") and err.endswith(f"chains written: {tmp_path / 'p'}\n")
    table = read_chains(tmp_path / "p" / "chains.csv")
    assert list(dict.fromkeys(zip(table.order, table.cores, strict=True))) == [
        ("Tunnel", "[[0]]"),
        ("Tunnel,Tunnel", "[[0], [1]]"),
    ]
    cycles = json.loads((tmp_path / "p" / "cycles.json").read_text())
    assert cycles["simulated"] is True and list(cycles["nfs"]) == ["Tunnel"]
    status, _, err = placer(*SERVER, *arguments)
    assert status == 0 and "nothing to measure" in err


def test_a_testbed_without_chains_is_reported_plainly(tmp_path: Path) -> None:
    """With its answer and a hint, as bad input."""
    err = refuse("profile", "--testbed", f"exec:{FOREIGN}", "--out", tmp_path / "p", "--chain", "tls-proxy")
    assert err.startswith("--testbed: somewhere-else does not run chains: testbed `")
    assert "bad-request: no workload chain" in err and "\nhint: a testbed that runs chains describes" in err


RECORDED = Path(__file__).parents[3] / "traces" / "server-simulated"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    folder = tmp_path / "profile"
    shutil.copytree(RECORDED / "Tunnel", folder / "Tunnel")
    for file in ("testbed.json", "benches.csv"):
        shutil.copy2(RECORDED / file, folder / file)
    return folder


@pytest.mark.long
def test_latency_is_trained_with_all_else(profile: Path, tmp_path: Path, placer: Placer) -> None:
    """Its errors are on stderr, and its model in a file of its own; the same command, the same bytes."""
    status, out, err = placer("train", profile, "--out", tmp_path / "m", "--predictor", "slomo")
    assert (status, out) == (0, "")
    assert "trained the latency of Tunnel: at left-out settings, the error of the mean is" in err
    found = json.loads((tmp_path / "m" / "latency" / "Tunnel.json").read_text())
    assert found["latency"] == 1 and found["settings"] == 8 and found["utilisation"] == pytest.approx([0.1, 0.95], 1e-3)
    placer("train", profile, "--out", tmp_path / "again", "--predictor", "slomo")
    for name in ("Tunnel.json", "shared.npz"):
        one, other = ((tmp_path / folder / "latency" / name).read_bytes() for folder in ("m", "again"))
        assert one == other


@pytest.mark.long
def test_a_fitted_curve_of_the_user_is_not_replaced(profile: Path, tmp_path: Path, placer: Placer) -> None:
    """Which of two would count is not known."""
    latency = (profile / "Tunnel" / "latency.csv").rename(tmp_path / "latency.csv")
    train = ("train", profile, "--out", tmp_path / "m", "--predictor", "slomo")
    assert placer(*train).status == 0
    (tmp_path / "m" / "latency").mkdir()
    (tmp_path / "m" / "latency" / "Tunnel.json").write_text('{"fit": 1}')
    assert placer(*train).status == 0
    latency.rename(profile / "Tunnel" / "latency.csv")
    assert "latency/Tunnel.json: is a fitted curve, and the latency of Tunnel would be trained" in refuse(*train)
    assert (tmp_path / "m" / "latency" / "Tunnel.json").read_text() == '{"fit": 1}'


WITH_LATENCY = ("profile", "--testbed", "simulated:server", "--latency")


@pytest.mark.long
def test_latency_is_profiled_into_a_folder(tmp_path: Path, placer: Placer) -> None:
    """Of the NFs that the user names; results in files, progress on stderr; the same command measures nothing again."""
    arguments = (*WITH_LATENCY, "--out", tmp_path / "p", "--nf", "Tunnel", "--repeats", 1)
    status, out, err = placer(*arguments)
    assert (status, out) == (0, "") and err.endswith(f"latency written: {tmp_path / 'p'}\n")
    nfs = read_profile(tmp_path / "p").nfs
    assert list(nfs) == ["Tunnel"] and (nfs["Tunnel"].latency.repeats == 1).all()
    status, _, err = placer(*arguments)
    assert status == 0 and "nothing to measure" in err
    status, out, _ = placer("profile", "--out", tmp_path / "p", "--status")
    assert status == 0 and "latency" in out and "left: nothing" in out
