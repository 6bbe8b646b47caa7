"""Lemur's five chains, from their text to packets: what the example does with a switch, a server and a SmartNIC."""

import os
import re
import runpy
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from placer.rack.compiler.execute import execute_rack, find_programs
from placer.rack.files.plan_file import read_plan
from profiles import InputError
from tests.examples.test_examples import EXAMPLES
from tests.nfs.captures import read_capture, write_capture
from tests.reference.compare import RackOutcome, ReferenceRun

GAP_US = 10


@pytest.fixture(scope="module", params=[0, 1000], ids=["root", "user"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which the example ran, as root and as another user, and what it printed."""
    user, folder = request.param, tmp_path_factory.mktemp("run")
    if user == 0 and os.geteuid() != 0:
        pytest.skip("the kernel loads programs of the SmartNIC for root only")
    try:
        find_programs(with_nics=user == 0)
    except InputError:
        pytest.skip("programs of the rack are not built: `make deps nfs` builds them")
    pytest.importorskip("cryptography", reason="cryptography is not installed: the reference cannot encrypt")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
        patch.chdir(folder)
        patch.setattr(os, "geteuid", lambda: user)
        runpy.run_path(str(EXAMPLES / "compile_and_run.py"))
    return folder, printed.getvalue()


@pytest.mark.long
def test_packets_pass_every_network_function(run: tuple[Path, str]) -> None:
    """None has counters of 0, and both a filter of an ACL and an entry of a UrlFilter drop some."""
    _, printed = run
    rows = {found[1]: tuple(map(int, found.groups()[1:])) for found in re.finditer(ROW, printed, re.MULTILINE)}
    assert len(rows) == 38 and all(entered > 0 for entered, _, _ in rows.values())
    assert {name for name, (_, _, dropped) in rows.items() if dropped} == DROPPING
    assert "203 packets came from the world" in printed


ROW = r"^(chain[1-5]/\w+) +(\d+) +(\d+) +(\d+)$"
DROPPING = {"chain1/UrlFilter", "chain3/ACL", "chain5/ACL", "chain5/UrlFilter"}


@pytest.mark.long
def test_packets_leave_as_the_reference_says(run: tuple[Path, str]) -> None:
    """The reference knows of no devices."""
    folder, _ = run
    frames = read_capture(folder / "lemur-in.pcap")
    reference = ReferenceRun(
        read_plan(folder / "lemur-plan.json").chains,
        [(1_000_000 + GAP_US * at, frame) for at, frame in enumerate(frames)],
    )
    assert reference.differences(RackOutcome(read_capture(folder / "lemur-out.pcap"))) == []


def test_only_root_has_a_smartnic(run: tuple[Path, str]) -> None:
    """Else the server encrypts, and the first line says so."""
    folder, printed = run
    assert (folder / "lemur/nics/n0/nic.c").exists() != printed.startswith("Not root: the rack has no SmartNIC")


def test_the_packet_that_the_docs_follow_leaves_as_they_show(
    run: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Processes and interpreters send the same bytes."""
    folder, _ = run
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "follow_a_packet.py"))
    hops = [
        bytes.fromhex("".join(re.findall(r"^  [0-9a-f]{4}  ([0-9a-f ]{47})", hop, re.MULTILINE)))
        for hop in capsys.readouterr().out.split("\n\n")
    ]
    execute_rack(folder / "lemur", write_capture(tmp_path / "in.pcap", hops[:1]), tmp_path / "out.pcap")
    assert read_capture(tmp_path / "out.pcap") == [hops[5]]
