"""Programs of several NFs: branches, merges, entries, exits, what passes, and what is dropped and counted."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from placer.rack.compiler.ebpf.functions import NicMatch, NicTunnel
from placer.rack.compiler.ebpf.limits import build, read_object
from placer.rack.compiler.ebpf.program import NicEdge, NicEntry, NicExit, NicPassing, NicProgram, NicSide, NicStep
from placer.rack.compiler.ebpf.source import names_of
from placer.rack.compiler.routing import Label
from placer.rack.compiler.traffic.entries import parse
from tests.placer.rack.compiler.ebpf.kernel import KernelProgram, require_clang
from tests.placer.rack.compiler.ebpf.programs import (
    DROP,
    IN,
    OUT,
    PASS,
    TX,
    Handled,
    RandomProgram,
    frames,
    instance,
    labelled,
)
from tests.placer.rack.compiler.library.frames import ICMP, TCP, ipv4_frame
from tests.reference.ebpf.machine import NicMachine

FAST, MANY = 6, 150


def runs_alike(seed: int, packets: int, runner: Callable[[bytes], NicMachine | KernelProgram]) -> None:
    """Packets of a random program leave as the models of its NFs say, with the same counters."""
    made = RandomProgram(seed)
    data, _ = build(made.program)
    running = runner(data)
    for packet in made.packets(seed, packets):
        found = Handled(*running.run(packet))
        expected = made.process(packet)
        assert found.action == expected.action
        assert found.frame == expected.frame or found.action == DROP
    assert running.counters() == made.counters()


def in_machine(data: bytes) -> NicMachine:
    """The machine with a program."""
    return NicMachine(read_object(data))


@pytest.mark.parametrize("seed", range(FAST))
def test_random_programs_do_what_their_nfs_do(seed: int) -> None:
    """Several NFs with branches by match and by share, several entries and exits."""
    require_clang()
    runs_alike(seed, 300, in_machine)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FAST, MANY))
def test_many_random_programs_do_what_their_nfs_do(seed: int) -> None:
    """More of them, with more packets."""
    require_clang()
    runs_alike(seed, 1000, in_machine)


@pytest.mark.parametrize("seed", range(FAST))
def test_the_kernel_runs_random_programs(seed: int) -> None:
    """The verifier takes them, and they do the same there."""
    require_clang()
    runs_alike(seed, 300, KernelProgram)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FAST, MANY))
def test_the_kernel_runs_many_random_programs(seed: int) -> None:
    """More of them."""
    require_clang()
    runs_alike(seed, 300, KernelProgram)


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
