"""`placer chain compile` and `placer chain exec`: what they write, print and refuse."""

import json
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

from placer.rack.compiler.directory import BUILT_FOLDER
from tests.nfs.captures import read_capture, write_capture
from tests.placer.commands.conftest import Placer, refuse
from tests.placer.rack.compiler.library.frames import ipv4_frame

CHAINS = """
packets: 1500 B
slo c: 100 Mbps to 100 Gbps
aggregate c: net 10.0.0.0/8
chain c: ACL(rules=0) -> Match -> [1/2 "port 53" Monitor | 1/2 Tunnel] -> IPv4Fwd
"""
RACK = Path(__file__).parents[3] / "examples" / "rack.toml"


@pytest.fixture
def plan(placer: Placer, tmp_path: Path) -> Path:
    """A plan with a Monitor on the server, all else on the switch."""
    (tmp_path / "c.chains").write_text(CHAINS, encoding="utf-8")
    placer("chain", "place", tmp_path / "c.chains", "--rack", RACK, "--plan", tmp_path / "plan.json")
    return tmp_path / "plan.json"


@pytest.fixture
def rack(placer: Placer, plan: Path, tmp_path: Path) -> Path:
    assert placer("chain", "compile", plan, "--out", tmp_path / "rack").status == 0
    return tmp_path / "rack"


def test_the_directory_has_a_program_for_each_device(placer: Placer, plan: Path, tmp_path: Path) -> None:
    """And the report names paths, devices and stages; nothing claims to be a real switch."""
    status, stdout, stderr = placer("chain", "compile", plan, "--out", tmp_path / "rack")
    assert (status, stderr) == (0, "")
    assert "  1: c/ACL (switch) -> c/Match (switch) -> c/Monitor (s0) -> c/IPv4Fwd (switch)\n" in stdout
    assert "switch, emulated" in stdout and "Stages of the switch, by our packer: " in stdout
    files = {str(file.relative_to(tmp_path / "rack")) for file in (tmp_path / "rack").rglob("*") if file.is_file()}
    assert files == {
        "Makefile", "plan.json", "routing.json", "servers/s0/server.chain", "switch/switch.entries",
        "switch/switch.names", "switch/switch.p4", "switch/switch.spec",
    }  # fmt: skip


@pytest.mark.parametrize(("t_max", "metered"), [("2 Gbps", True), ("100 Gbps", False)])
def test_a_t_max_below_that_of_its_port_has_a_meter(t_max: str, metered: bool, placer: Placer, tmp_path: Path) -> None:
    """The chain begins on the programmable switch; with 100 Gbps, its port keeps t_max."""
    chains, plan = tmp_path / "c.chains", tmp_path / "plan.json"
    chains.write_text(CHAINS.replace("100 Gbps", t_max), encoding="utf-8")
    placer("chain", "place", chains, "--rack", RACK, "--plan", plan)
    assert placer("chain", "compile", plan, "--out", tmp_path / "rack").stderr == ""
    files = {name: (tmp_path / "rack" / "switch" / name).read_text("utf-8") for name in ("switch.spec", "switch.p4")}
    assert ("extract h.arrival" in files["switch.spec"]) == ("limits.execute(0)" in files["switch.p4"]) == metered


def test_the_same_plan_gives_the_same_bytes(placer: Placer, plan: Path, rack: Path) -> None:
    """A directory that was compiled before is replaced."""
    before = {file: file.read_bytes() for file in rack.rglob("*") if file.is_file()}
    assert placer("chain", "compile", plan, "--out", rack).status == 0
    assert {file: file.read_bytes() for file in rack.rglob("*") if file.is_file()} == before


def test_a_directory_of_something_else_is_not_replaced(plan: Path, tmp_path: Path) -> None:
    """It stays as it is."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep", encoding="utf-8")
    assert "mine: something else is there\nhint: name a new directory" in refuse(
        "chain", "compile", plan, "--out", tmp_path / "mine"
    )
    assert (tmp_path / "mine" / "notes.txt").read_text(encoding="utf-8") == "keep"


def test_parameters_that_an_nf_lacks_are_all_named(plan: Path, tmp_path: Path) -> None:
    """Before anything is written."""
    document = json.loads(plan.read_text(encoding="utf-8"))
    document["chains"]["chains"][0]["nfs"][0]["parameters"] = {"rulez": 3}
    document["chains"]["chains"][0]["edges"][1][3] = "prt 53"
    plan.write_text(json.dumps(document), encoding="utf-8")
    stderr = refuse("chain", "compile", plan, "--out", tmp_path / "rack")
    assert "'prt' is no test" in stderr or "ACL has no such parameter" in stderr
    assert not (tmp_path / "rack").exists()


def test_an_nf_that_the_library_lacks_is_refused(placer: Placer, tmp_path: Path) -> None:
    """Racks may know more NFs than the library."""
    (tmp_path / "c.chains").write_text(CHAINS.replace("ACL(rules=0)", "ACL_1024"), encoding="utf-8")
    placer("chain", "place", tmp_path / "c.chains", "--rack", RACK, "--plan", tmp_path / "plan.json")
    assert "c/ACL_1024: the library has no ACL_1024: it can be placed, not generated\nhint: one of ACL, " in refuse(
        "chain", "compile", tmp_path / "plan.json", "--out", tmp_path / "rack"
    )


@pytest.mark.parametrize("name", ["../../s", "a b;exit", "$(HOME)", "world", "\u00e9", "-s", "s" * 65])
def test_names_that_files_cannot_have_are_refused(plan: Path, tmp_path: Path, name: str) -> None:
    """A server's name is that of a folder, and a word of the Makefile."""
    plan.write_text(plan.read_text(encoding="utf-8").replace('"s0"', json.dumps(name)), encoding="utf-8")
    assert f"plan.json: server: {name!r} cannot be the name of generated files\nhint: up to 64 letters" in refuse(
        "chain", "compile", plan, "--out", tmp_path / "rack"
    )
    assert not (tmp_path / "rack").exists()


def test_an_nf_on_several_cores_counts_once(placer: Placer, tmp_path: Path) -> None:
    """The report counts NFs, not their copies."""
    (tmp_path / "c.chains").write_text("slo c: 1 Gbps to 100 Gbps\nchain c: Encrypt -> IPv4Fwd\n", encoding="utf-8")
    placer("chain", "place", tmp_path / "c.chains", "--rack", RACK, "--plan", tmp_path / "plan.json")
    _, stdout, _ = placer("chain", "compile", tmp_path / "plan.json", "--out", tmp_path / "rack")
    assert re.search(r"^s0 +1  14 cores$", stdout, re.MULTILINE)


def test_what_was_not_compiled_is_not_run(placer: Placer, tmp_path: Path) -> None:
    """An empty directory is refused with a hint, and one that does not exist."""
    rest = ("--in", write_capture(tmp_path / "in.pcap", []), "--out", tmp_path / "out.pcap")
    status, _, stderr = placer("chain", "exec", tmp_path, *rest)
    assert status == 2
    hint = "hint: `placer chain compile PLAN --out DIR` writes such a directory\n"
    assert stderr == f"{tmp_path}: is no compiled rack: it has no routing.json\n{hint}"
    status, _, stderr = placer("chain", "exec", tmp_path / "x", *rest)
    assert status == 2 and stderr == f"{tmp_path / 'x'}: does not exist\n{hint}"
    assert "hint: `placer chain compile PLAN --out DIR` writes such a directory" in stderr


def test_what_is_no_capture_is_refused(placer: Placer, rack: Path, tmp_path: Path) -> None:
    """A missing file, a folder and a text, each before a process starts."""
    (tmp_path / "text").write_text("hello", encoding="utf-8")
    for name, message in (("none", "No such file"), (".", "Is a directory"), ("text", "is no capture")):
        status, _, stderr = placer("chain", "exec", rack, "--in", tmp_path / name, "--out", tmp_path / "out.pcap")
        assert status == 2 and message in stderr


@pytest.fixture
def programs() -> Path:
    """Skip without the programs of a rack."""
    if not all(os.access(BUILT_FOLDER / name, os.X_OK) for name in ("nf-switch", "nf-server")):
        pytest.skip("the programs of a rack are not built: `make deps nfs` builds them")
    return BUILT_FOLDER


PACKETS = [
    ipv4_frame(ports=(1000, 53), destination=0x0A000005),
    ipv4_frame(ports=(1000, 80), destination=0x0A000005),
    ipv4_frame(source=0x08080808, destination=0x08080404),
    b"\x02" * 12 + b"\x89\x4f" + bytes(50),
    b"\x02" * 10,
]
"""One for the server, one for the switch alone, one of no chain, one with a forged header, and a stump."""


def test_packets_pass_the_processes(placer: Placer, rack: Path, tmp_path: Path, programs: Path) -> None:
    """Each is out, or dropped for a reason; the counters are those of the packets, and nothing is left over."""
    capture = write_capture(tmp_path / "in.pcap", PACKETS)
    out = tmp_path / "out.pcap"
    status, stdout, _ = placer("chain", "exec", rack, "--in", capture, "--out", out, "--format", "json", "--quiet")
    assert status == 0
    answer = json.loads(stdout)
    assert answer["explained"] and (answer["received"], answer["sent"]) == (5, 2)
    assert answer["dropped"] == {"forged": 1, "malformed": 1, "unclassified": 1}
    entered = {name: one["entered"] for name, one in answer["nfs"].items()}
    assert entered == {"c/ACL": 2, "c/Match": 2, "c/Monitor": 1, "c/Tunnel": 1, "c/IPv4Fwd": 2}
    frames = read_capture(out)
    assert [frame[12:16].hex() for frame in frames] == ["81000064", "08004500"]


OPENFLOW_RACK = """
[switch]
kind = "openflow"
table_order = ["ACL", "Tunnel"]
[[server]]
name = "s0"
cores = 4
clock_mhz = 1700
nic_mbps = 40_000
[nf]
ACL = {switch = {blocks = 1}}
LB = {server = {cycles = 564}}
Tunnel = {switch = {blocks = 1}}
"""


def test_packets_pass_an_openflow_switch(placer: Placer, tmp_path: Path, programs: Path) -> None:
    """Emulated: a VLAN names the path; the tag of the Tunnel is all that is left of the way."""
    chains = CHAINS.split("chain c")[0] + "chain c: ACL(rules=0) -> LB -> Tunnel(vlan=7)\n"
    (tmp_path / "c.chains").write_text(chains, encoding="utf-8")
    (tmp_path / "rack.toml").write_text("crossing_us = 6\n" + OPENFLOW_RACK, encoding="utf-8")
    plan, rack, out = tmp_path / "plan.json", tmp_path / "rack", tmp_path / "out.pcap"
    assert placer("chain", "place", tmp_path / "c.chains", "--rack", tmp_path / "rack.toml", "--plan", plan).status == 0
    status, stdout, _ = placer("chain", "compile", plan, "--out", rack)
    assert (status, "OpenFlow rules" in stdout) == (0, True)
    capture = write_capture(tmp_path / "in.pcap", PACKETS)
    answer = placer("chain", "exec", rack, "--in", capture, "--out", out, "--format", "json", "--quiet")
    document = json.loads(answer.stdout)
    assert (document["explained"], document["sent"], document["nfs"]["c/LB"]["entered"]) == (True, 2, 2)
    assert {frame[12:16].hex() for frame in read_capture(out)} == {"81000007"}


def test_the_makefile_runs_the_rack_alone(placer: Placer, rack: Path, tmp_path: Path, programs: Path) -> None:
    """The same packets come out as from `placer chain exec`."""
    capture = write_capture(tmp_path / "in.pcap", PACKETS)
    placer("chain", "exec", rack, "--in", capture, "--out", tmp_path / "one.pcap", "--quiet")
    command = ["make", "-s", "-C", str(rack), "run", f"IN={capture}", f"OUT={tmp_path / 'other.pcap'}"]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    assert sorted(read_capture(tmp_path / "other.pcap")) == sorted(read_capture(tmp_path / "one.pcap"))


@pytest.mark.long
def test_a_program_that_refuses_its_input_is_named(placer: Placer, rack: Path, tmp_path: Path, programs: Path) -> None:
    """With its message; no output is left."""
    (rack / "servers" / "s0" / "server.chain").write_text("x: NoSuchFunction\n", encoding="utf-8")
    capture = write_capture(tmp_path / "in.pcap", PACKETS)
    status, _, stderr = placer("chain", "exec", rack, "--in", capture, "--out", tmp_path / "out.pcap", "--quiet")
    assert status == 1 and "error: nf-server of s0 failed with 2: server.chain:1:" in stderr
    assert not (tmp_path / "out.pcap").exists()


@pytest.mark.long
def test_a_capture_of_cut_packets_is_refused(rack: Path, tmp_path: Path, programs: Path) -> None:
    """As any input that cannot be used: with status 2, and each fault once."""
    capture = write_capture(tmp_path / "in.pcap", PACKETS[:1])
    content = bytearray(capture.read_bytes())
    content[36:40] = struct.pack("<I", 1500)
    capture.write_bytes(content)
    stderr = refuse("chain", "exec", rack, "--in", capture, "--out", tmp_path / "out.pcap", "--quiet")
    assert stderr.startswith(f"{capture}: packet 1: ")
    assert stderr.endswith("hint: capture whole packets (tcpdump -s 0)\n")


@pytest.mark.long
def test_the_process_that_was_killed_is_named(
    placer: Placer, rack: Path, tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the server that then missed the switch."""
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "nf-server").symlink_to(programs / "nf-server")
    (tmp_path / "programs" / "nf-switch").write_text("#!/bin/sh\nsleep 0.5; kill -9 $$\n", encoding="utf-8")
    (tmp_path / "programs" / "nf-switch").chmod(0o755)
    monkeypatch.setenv("NF_RACK_PROGRAMS", str(tmp_path / "programs"))
    capture = write_capture(tmp_path / "in.pcap", PACKETS)
    status, _, stderr = placer("chain", "exec", rack, "--in", capture, "--out", tmp_path / "out.pcap", "--quiet")
    assert (status, stderr) == (1, "error: nf-switch of switch was ended by signal 9: it says nothing\n")
