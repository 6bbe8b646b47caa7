"""Each NF of a SmartNIC does to frames what the function in C does, within the limits of the card."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from placer.rack.compiler.ebpf.limits import MOST_INSTRUCTIONS, NicObject, NicUse, build, compile_command, read_object
from placer.rack.compiler.ebpf.program import NicEdge, NicEntry, NicExit, NicProgram, NicSide, NicStep
from placer.rack.compiler.ebpf.source import source_of
from placer.rack.compiler.traffic.entries import parse
from tests.placer.rack.compiler.ebpf.kernel import KernelProgram, require_clang
from tests.placer.rack.compiler.ebpf.programs import DROP, IN, OUT, TX, alone, frames, instance, labelled
from tests.placer.rack.compiler.library.nf_run import in_c, in_model
from tests.reference.ebpf.machine import NicMachine

MOST = {"ACL": 1000, "Detunnel": 200, "FastEncrypt": 3700, "IPv4Fwd": 700, "LB": 500, "Match": 130, "Tunnel": 200}
"""Instructions of each NF alone, with labels and counters, with room for another version of clang."""
CASES: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = (
    ("ACL", ()),
    ("ACL", (("rules", 0),)),
    ("Detunnel", ()),
    ("FastEncrypt", (("blocks", 1),)),
    ("IPv4Fwd", ()),
    ("LB", ()),
    ("LB", (("backends", 3), ("table", 4096), ("seed", 77))),
    ("LB", (("address", 0xC0000207), ("backends", 16), ("table", 16))),
    ("Match", ()),
    ("Tunnel", ()),
    ("Tunnel", (("vlan", 4094),)),
)


@cache
def object_of(kind: str, given: tuple[tuple[str, float], ...]) -> tuple[bytes, NicUse]:
    """The object of an NF alone, compiled once."""
    require_clang()
    return build(alone(kind, dict(given)))


def program_of(kind: str, given: tuple[tuple[str, float], ...]) -> NicObject:
    """The same, read."""
    return read_object(object_of(kind, given)[0])


def sent_by(machine: NicMachine | KernelProgram, given: list[bytes]) -> list[bytes]:
    """The frames that leave, without their labels, which are checked."""
    sent, head = [], len(labelled(bytes(12), OUT)) - 12
    for frame in given:
        action, packet = machine.run(labelled(frame, IN))
        assert action in (TX, DROP)
        if action == TX:
            assert packet == labelled(packet[head:], OUT)
            sent.append(packet[head:])
    assert machine.counters()[:2] == [len(given), len(sent)]
    return sent


@pytest.mark.parametrize(("kind", "given"), CASES)
def test_frames_leave_as_from_the_function_in_c(
    kind: str, given: tuple[tuple[str, float], ...], tmp_path: Path
) -> None:
    """Random frames and strays: the same leave, with the same bytes, and the same are dropped."""
    some = frames(11, 600)
    sent = sent_by(NicMachine(program_of(kind, given)), some)
    assert len(sent) > 100
    assert sent == in_c(kind, dict(given), some, tmp_path).out


@pytest.mark.parametrize(("kind", "given"), CASES)
def test_frames_leave_as_from_the_model(kind: str, given: tuple[tuple[str, float], ...]) -> None:
    """The models of the library say the same, where nothing is built."""
    some = frames(12, 600)
    assert sent_by(NicMachine(program_of(kind, given)), some) == in_model(kind, dict(given), some)


@pytest.mark.parametrize(("kind", "given"), CASES)
def test_the_kernel_takes_the_program_and_runs_it_alike(kind: str, given: tuple[tuple[str, float], ...]) -> None:
    """The verifier finds no fault, and frames leave the kernel as they leave the machine."""
    some = frames(13, 300)
    kernel = KernelProgram(object_of(kind, given)[0])
    assert sent_by(kernel, some) == sent_by(NicMachine(program_of(kind, given)), some)
    kernel.close()


@pytest.mark.parametrize(("kind", "given"), CASES)
def test_an_nf_takes_little_of_the_card(kind: str, given: tuple[tuple[str, float], ...]) -> None:
    """Instructions and stack are far from the limits, of all but FastEncrypt."""
    _, use = object_of(kind, given)
    assert use.instructions <= MOST[kind] < MOST_INSTRUCTIONS
    assert use.stack <= 320


def test_clang_warns_of_nothing(tmp_path: Path) -> None:
    """A program of all NFs, with branches, compiles without a message."""
    require_clang()
    kinds = dict.fromkeys(kind for kind, _ in CASES)
    exit_ = NicExit(NicSide.SWITCH, OUT)
    sorting = (NicEdge(exit_, parse("vlan 7 or udp port 53")), NicEdge(exit_), NicEdge(exit_))
    steps = tuple(
        NicStep(f"c-0/{kind}.1", instance(kind, {"blocks": 1} if kind == "FastEncrypt" else {})[0], sorting)
        for kind in kinds
    )
    source = tmp_path / "nic.c"
    source.write_text(source_of(NicProgram("n0", steps, (NicEntry(IN, 0),))), encoding="utf-8")
    done = subprocess.run(compile_command(source, tmp_path / "nic.o"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
