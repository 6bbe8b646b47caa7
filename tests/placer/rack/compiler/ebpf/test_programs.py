"""Programs of several NFs: branches, merges, entries, exits, what passes, and what is dropped and counted."""

import random
import subprocess
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from placer.rack.compiler.ebpf.functions import NicMatch, NicTunnel
from placer.rack.compiler.ebpf.limits import MOST_INSTRUCTIONS, NicObject, NicUse, build, compile_command, read_object
from placer.rack.compiler.ebpf.program import NicEdge, NicEntry, NicExit, NicPassing, NicProgram, NicSide, NicStep
from placer.rack.compiler.ebpf.source import names_of, source_of
from placer.rack.compiler.routing import Label
from placer.rack.compiler.traffic.entries import parse
from tests.placer.rack.compiler.ebpf.programs import (
    DROP,
    IN,
    OUT,
    PASS,
    TX,
    Handled,
    KernelProgram,
    RandomProgram,
    alone,
    frames,
    instance,
    labelled,
    require_clang,
)
from tests.placer.rack.compiler.library.frames import ICMP, TCP, in_model, ipv4_frame
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
def test_frames_leave_as_from_the_model(kind: str, given: tuple[tuple[str, float], ...]) -> None:
    """Random frames and strays, with the same bytes: as from the function in C, which leaves what the model does."""
    some = frames(12, 600)
    sent = sent_by(NicMachine(program_of(kind, given)), some)
    assert len(sent) > 100
    assert sent == in_model(kind, dict(given), some)


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


FAST, MANY = 6, 150


def in_machine(data: bytes) -> NicMachine:
    """The machine with a program."""
    return NicMachine(read_object(data))


@pytest.mark.parametrize("runner", [in_machine, KernelProgram])
@pytest.mark.parametrize("seed", [*range(FAST), *(pytest.param(n, marks=pytest.mark.slow) for n in range(FAST, MANY))])
def test_random_programs_do_what_their_nfs_do(seed: int, runner: Callable[[bytes], NicMachine | KernelProgram]) -> None:
    """Several NFs with branches by match and by share, several entries and exits: packets leave as the models of the
    NFs say, with the same counters; in the kernel, whose verifier takes the programs, as in the machine."""
    require_clang()
    made = RandomProgram(seed)
    data, _ = build(made.program)
    running = runner(data)
    for packet in made.packets(seed, 300 if seed < FAST or runner is KernelProgram else 1000):
        found = Handled(*running.run(packet))
        expected = made.process(packet)
        assert found.action == expected.action
        assert found.frame == expected.frame or found.action == DROP
    assert running.counters() == made.counters()


def sorting(*edges: NicEdge) -> NicMachine:
    """A program of one Match, with such edges."""
    require_clang()
    step = NicStep("c0/sort", NicMatch(), edges)
    passing = (NicPassing(Label(2, 255), NicSide.HOST), NicPassing(Label(3, 255), NicSide.SWITCH))
    return in_machine(build(NicProgram("n0", (step,), (NicEntry(IN, 0),), passing))[0])


def test_what_matches_no_edge_is_dropped_and_counted() -> None:
    """It has passed the NF: it is dropped behind it."""
    machine = sorting(NicEdge(NicExit(NicSide.HOST, OUT), parse("tcp")))
    tcp, icmp = ipv4_frame(protocol=TCP), ipv4_frame(protocol=ICMP)
    assert machine.run(labelled(tcp, IN)) == (PASS, labelled(tcp, OUT))
    assert machine.run(labelled(icmp, IN))[0] == DROP
    assert machine.counters() == [2, 2, 0, 1, 0]


def test_packets_of_others_go_through_unchanged() -> None:
    """From either side: the label alone decides where they go."""
    machine = sorting(NicEdge(NicExit(NicSide.SWITCH)))
    for label, action in ((Label(2, 255), PASS), (Label(3, 255), TX)):
        packet = labelled(ipv4_frame(), label)
        assert machine.run(packet) == (action, packet)


@pytest.mark.parametrize(
    "packet",
    [
        ipv4_frame(),  # no label
        labelled(ipv4_frame(), Label(1, 254)),  # an unknown one
        labelled(ipv4_frame(), IN)[:35],  # no whole frame in it
        labelled(ipv4_frame(), IN).replace(b"\x0f\xc2\x02\x03", b"\x0f\xc2\x01\x03"),  # metadata of type 1
        labelled(ipv4_frame(), IN).replace(b"\x0f\xc2\x02\x03", b"\x4f\xc2\x02\x03"),  # another version
        labelled(b"", None).ljust(14, b"\0"),
    ],
)
def test_packets_without_a_known_label_are_dropped_and_counted(packet: bytes) -> None:
    """Whatever is wrong with the header: `unknown_path`."""
    machine = sorting(NicEdge(NicExit(NicSide.SWITCH)))
    assert machine.run(packet)[0] == DROP
    assert machine.counters() == [0, 0, 1, 0, 0]


def test_packets_leave_the_rack_without_a_label() -> None:
    """An exit without a label sends the frame alone."""
    machine = sorting(NicEdge(NicExit(NicSide.SWITCH)))
    assert machine.run(labelled(ipv4_frame(), IN)) == (TX, ipv4_frame())


def test_shares_deal_flows_out() -> None:
    """One of four flows goes to the host, within what chance allows; packets of a flow stay together."""
    machine = sorting(NicEdge(NicExit(NicSide.HOST, OUT)), NicEdge(NicExit(NicSide.SWITCH, OUT), share=Fraction(3)))
    rng = random.Random(4)
    actions = []
    for _ in range(800):
        packet = labelled(ipv4_frame(rng.getrandbits(32), rng.getrandbits(32)), IN)
        actions.append(machine.run(packet)[0])
        assert machine.run(packet)[0] == actions[-1]
    assert 150 <= actions.count(PASS) <= 250


def test_counters_have_names() -> None:
    """The names of a program say which counter is whose."""
    steps = tuple(NicStep(f"c0/f{at}", NicTunnel(at), (NicEdge(NicExit(NicSide.SWITCH)),)) for at in range(2))
    assert names_of(NicProgram("n0", steps)) == {
        "functions": [{"name": "c0/f0", "entered": 0, "sent": 1}, {"name": "c0/f1", "entered": 2, "sent": 3}],
        "reasons": {"unknown_path": 4, "unmatched": 5, "no_room": 6},
    }


def test_all_strays_survive() -> None:
    """Random frames without labels never make the machine read outside of a packet."""
    machine = sorting(NicEdge(NicExit(NicSide.SWITCH)))
    for frame in frames(5, 1000):
        assert machine.run(frame)[0] == DROP


def test_the_verifier_takes_several_long_lists() -> None:
    """Three ACLs of 64 filters with LBs between them: the verifier would not follow each combination of results."""
    require_clang()
    kinds = [("ACL", 1), ("LB", 1), ("ACL", 3), ("LB", 2), ("ACL", 7)]
    ends = [*range(1, len(kinds)), NicExit(NicSide.SWITCH, OUT)]
    steps = tuple(
        NicStep(f"c0/f{at}", instance(kind, {"seed": seed})[0], (NicEdge(end),))
        for at, ((kind, seed), end) in enumerate(zip(kinds, ends, strict=True))
    )
    data, _ = build(NicProgram("n0", steps, (NicEntry(IN, 0),)))
    kernel, machine = KernelProgram(data), in_machine(data)
    for frame in frames(6, 200):
        assert Handled(*kernel.run(labelled(frame, IN))).action == machine.run(labelled(frame, IN))[0]
    assert kernel.counters() == machine.counters()
    kernel.close()


@pytest.mark.parametrize("bits_per_s", [20, 1000, 100_000])
def test_a_meter_keeps_a_rate_at_which_a_packet_takes_minutes(bits_per_s: int) -> None:
    """What one packet takes is not held to be time that went back: the next one passes when its time is over."""
    require_clang()
    step = alone("Tunnel", {}).steps[0]
    entry = NicEntry(IN, 0, Fraction(bits_per_s, 1_000_000))
    machine = NicMachine(read_object(build(NicProgram("n0", (step,), (entry,)))[0]))
    packet = labelled(ipv4_frame(payload=bytes(1400)), IN)
    took_us = 8 * len(packet) * 1_000_000 // bits_per_s
    begin = 1_800_000_000_000_000
    actions = [machine.run(packet, begin + at)[0] for at in (0, 20_000, took_us // 2, took_us + 20_000)]
    assert actions == [TX, DROP, DROP, TX]
