"""nf-run --backend: functions with kernels write the same packets and counters as in C, on every engine here."""

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.nfs.builds import ROOT
from tests.nfs.captures import udp_packet
from tests.nfs.comparison import NfRun, model_of, write_ends
from tests.reference.nfs import nf_models
from tests.reference.nfs.traffic import Mix, Sent, mixed_frames

PROGRAM = ROOT / "build" / "nfs" / "run" / "nf-run"
LIMIT_S = 280
ENGINES = ("plain", "opencl")
SETTINGS = {
    "IPRouter": (
        {"routes": "20000"},
        {"routes": "20000", "default_route": "0", "errors_per_s": "30", "unknown": "pass"},
    ),
    "ACL": ({"filters": "400"}, {"filters": "300", "default_permit": "0", "seed": "1", "unknown": "pass"}),
    "NIDS": ({"timeout_s": "2", "dropped_class": "7"}, {"flows": "900"}),
    "IPSec": ({"path_mtu": "0"}, {"tunnel": "0", "path_mtu": "0", "unknown": "pass", "arp": "pass"}),
}
SLOW = {"IPRouter": pytest.mark.slow}  # its many routes take as long as all others
CASES = [
    pytest.param(nf, i, id=f"{nf}-{i}", marks=SLOW.get(nf, ()))
    for nf, settings in SETTINGS.items()
    for i in range(len(settings))
]


@dataclass(frozen=True)
class Ran:
    """What a run wrote: its report and both captures, and lines of fates before the report."""

    report: dict[str, object]
    out: bytes
    back: bytes
    fates: list[str]


@pytest.fixture(scope="module")
def nf_run() -> Path:
    """The program of the normal build."""
    if not PROGRAM.exists():
        pytest.skip("nf-run is not built, so that no kernel is compared with its function: `make nfs` builds it")
    return PROGRAM


def sent_to(nf: str, n: int, folder: Path) -> list[Sent]:
    """Mixed and hostile frames, for functions that have a model those that it chooses."""
    if nf not in nf_models():
        return list(mixed_frames(3, n, Mix()))
    model = model_of(nf, 0, folder)
    return list(model.traffic(3, n, NfRun(PROGRAM, nf, dict(model.settings), folder).first))


def run_on(program: Path, nf: str, settings: dict[str, str], folder: Path, *options: str) -> Ran:
    """Run the function on the captures of a folder; the test is skipped if the engine is missing."""
    out, back = folder / "out.pcap", folder / "back.pcap"
    command = [program, "--nf", nf, *(f"--set={key}={value}" for key, value in settings.items()), *options]
    command += ["--in", folder / "inside", "--outside", folder / "outside", "--out", out, "--back", back]
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env=os.environ | {"POCL_MAX_PTHREAD_COUNT": "4"},
    )
    if "not built" in done.stderr or "no device" in done.stderr:
        pytest.skip(f"no such engine here: {done.stderr.splitlines()[0]}")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    *fates, report = done.stdout.splitlines()
    return Ran(json.loads(report), out.read_bytes(), back.read_bytes(), fates)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("nf", "case"), CASES)
def test_a_kernel_does_what_its_function_does(nf_run: Path, tmp_path: Path, nf: str, case: int, engine: str) -> None:
    """Captures and counters of 3,000 mixed packets are equal byte by byte, whatever the batches.

    In C packets pass one by one here: within a burst some functions send packets that are not IPv4 first.
    """
    write_ends([tmp_path / "inside", tmp_path / "outside"], sent_to(nf, 3000, tmp_path))
    settings = SETTINGS[nf][case]
    expected = replace(run_on(nf_run, nf, settings, tmp_path, "--each"), fates=[])
    assert len(expected.out) > 1000
    for options in (("--batch", "256"), ("--batch", "7", "--executors", "3", "--flush-us", "50")):
        assert run_on(nf_run, nf, settings, tmp_path, "--backend", engine, *options) == expected


@pytest.mark.parametrize("nf", SETTINGS)
def test_each_packet_has_the_same_fate(nf_run: Path, tmp_path: Path, nf: str) -> None:
    """With --each the lines are those of the function in C, too."""
    write_ends([tmp_path / "inside", tmp_path / "outside"], sent_to(nf, 300, tmp_path))
    settings = SETTINGS[nf][0]
    expected = run_on(nf_run, nf, settings, tmp_path, "--each", "--backend", "c")
    assert len(expected.fates) == 300
    assert run_on(nf_run, nf, settings, tmp_path, "--each", "--backend", "plain") == expected


@pytest.mark.slow
def test_large_and_foreign_packets_end_as_in_c(nf_run: Path, tmp_path: Path) -> None:
    """Packets that are larger than a slot, with a service header (RFC 8300), or cut within their Ethernet header."""
    plain = udp_packet(payload=b"some payload")
    service = plain[:12] + bytes.fromhex("894f0fc60101000005ff") + plain[14:]
    packets = [plain, service, udp_packet(payload=bytes(2500)), udp_packet(payload=bytes(2007)), plain[:13], plain]
    write_ends([tmp_path / "inside", tmp_path / "outside"], [Sent(i, 0, frame) for i, frame in enumerate(packets)])
    for nf in SETTINGS:
        expected = run_on(nf_run, nf, SETTINGS[nf][0], tmp_path)
        assert run_on(nf_run, nf, SETTINGS[nf][0], tmp_path, "--backend", "plain", "--batch", "3") == expected


def test_an_interrupt_loses_no_packet(nf_run: Path, tmp_path: Path) -> None:
    """After an interrupt all received packets have left, and the report says so."""
    command = [str(nf_run), "--nf", "ACL", "--backend", "plain", "--in", "ring:100,200", "--batch", "64"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=LIMIT_S)[0]
    report = json.loads(output)
    assert (process.returncode, report["interrupted"]) == (130, True)
    (function,) = report["functions"]
    assert (
        report["received"] == function["entered"] == sum(function["counters"][name] for name in ("permitted", "denied"))
    )
    assert report["received"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--nf", "ACL", "--backend", "vulkan"), "--backend: vulkan: not built\nhint: one of c "),
        (
            ("--nf", "NAT", "--backend", "plain"),
            "--backend: plain: NAT has no kernel\nhint: one of IPRouter ACL NIDS IPSec",
        ),
        (("--nf", "ACL", "--batch", "8"), "--batch, --flush-us and --executors go with a --backend other than c"),
        (("--nf", "ACL", "--backend", "plain", "--batch", "0"), '--batch: "0" is not a whole number from 1 to 1024'),
        (("--nf", "ACL", "--backend", "plain", "--executors", "1.5"), '--executors: "1.5" is not a whole number'),
        (("--nf", "ACL", "--backend", "plain", "--flush-us", "-1"), '--flush-us: "-1" is not a number above 0'),
        (("--chain", "chain", "--backend", "plain"), "--backend goes with --nf; chains run in C"),
    ],
)
def test_options_that_cannot_be_are_refused(
    nf_run: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    """Each fault is named, and nothing runs."""
    (tmp_path / "chain").write_text("acl: ACL\n")
    command = [str(nf_run), *options, "--in", "ring"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("nf", SETTINGS)
def test_kernels_agree_on_many_packets(nf_run: Path, tmp_path: Path, nf: str, engine: str) -> None:
    """So it is for 200,000 packets."""
    write_ends([tmp_path / "inside", tmp_path / "outside"], sent_to(nf, 200_000, tmp_path))
    expected = replace(run_on(nf_run, nf, SETTINGS[nf][0], tmp_path, "--each"), fates=[])
    assert run_on(nf_run, nf, SETTINGS[nf][0], tmp_path, "--backend", engine) == expected
