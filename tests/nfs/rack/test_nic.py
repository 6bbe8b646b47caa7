"""nf-nic on the command line: packets between a switch and a server, rounds, the report, and what it refuses."""

import json
import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placer.rack.compiler.ebpf.functions import NicMatch, NicTunnel
from placer.rack.compiler.ebpf.limits import build, read_object
from placer.rack.compiler.ebpf.program import NicEdge, NicEntry, NicExit, NicPassing, NicProgram, NicSide, NicStep
from placer.rack.compiler.routing import Label
from placer.rack.compiler.traffic.entries import parse
from tests.nfs.builds import ROOT
from tests.nfs.rack.wire import END, FLUSH, PACKET, SIDE_B, Message, Wire
from tests.placer.rack.compiler.ebpf.programs import RandomProgram, labelled, require_clang, require_kernel
from tests.placer.rack.compiler.library.frames import TCP, ipv4_frame
from tests.reference.ebpf.machine import NicMachine

PROGRAM = ROOT / "build" / "nfs" / "rack" / "nf-nic"
IN, BACK, OUT, HOST = Label(1, 255), Label(1, 253), Label(1, 252), Label(1, 254)
PATIENCE_S = 20.0


@pytest.fixture(autouse=True)
def _require() -> None:
    require_clang()
    require_kernel()
    if not PROGRAM.exists():
        pytest.skip("nf-nic is not built: `make nfs` builds it, if libbpf is installed")


def write_program(folder: Path, program: NicProgram) -> bytes:
    """Compile a program to n0.o."""
    data, _ = build(program)
    (folder / "n0.o").write_bytes(data)
    return data


def there_and_back() -> NicProgram:
    """TCP goes to the host behind a tag; what comes back goes to the switch; all else passes."""
    steps = (
        NicStep("c0/sort", NicMatch(), (NicEdge(1, parse("tcp")),)),
        NicStep("c0/tag", NicTunnel(7), (NicEdge(NicExit(NicSide.HOST, HOST)),)),
        NicStep("c0/out", NicMatch(), (NicEdge(NicExit(NicSide.SWITCH, OUT)),)),
    )
    passing = (NicPassing(Label(2, 255), NicSide.HOST), NicPassing(Label(2, 254), NicSide.SWITCH))
    return NicProgram("n0", steps, (NicEntry(IN, 0), NicEntry(BACK, 2)), passing)


class Rack:
    """nf-nic between a switch and a server that the test plays."""

    def __init__(self, folder: Path, with_host: bool = True, attach: bool = False) -> None:
        self.folder, self.attach = folder, attach
        self.wire = Wire(folder / "wire.link")
        self.host = Wire(folder / "host.link", SIDE_B) if with_host else None
        command = [PROGRAM, "--program", "n0.o", "--wire", "wire.link", "--report", "n0.json"]
        command += ["--host", "host.link"] * with_host + ["--attach"] * attach
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)

    def next(self, link: Wire) -> Message:
        """The next message of a link, which must come."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            has_ended = self.process.poll() is not None  # before looking: it may send a message and end in between
            if message := link.receive():
                return message
            assert not has_ended, self.process.stderr and self.process.stderr.read()
            assert time.monotonic() < deadline, "no message came"
            time.sleep(0.0002)

    def end(self) -> dict[str, Any]:
        """End the wire; the report."""
        assert self.wire.send(END)
        if self.host:
            assert self.next(self.host).kind == END
        _, errors = self.process.communicate(timeout=PATIENCE_S)
        assert (self.process.returncode, errors) == (0, "")
        return self.report()

    def report(self) -> dict[str, Any]:
        """What it wrote."""
        report: dict[str, Any] = json.loads((self.folder / "n0.json").read_text(encoding="utf-8"))
        return report

    def close(self) -> None:
        """Leave the links, and end the program if it still runs."""
        self.wire.close()
        if self.host:
            self.host.close()
        self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()


def require_namespace() -> None:
    """Skip the test where no interfaces can be made."""
    if subprocess.run(["unshare", "--net", "ip", "link", "add", "type", "veth"], check=False).returncode:
        pytest.skip("a network namespace with virtual interfaces needs root, and the program ip")


@pytest.fixture(params=[False, True], ids=["run by the kernel", "attached to an interface"])
def rack(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Rack]:
    """nf-nic with `there_and_back`."""
    if request.param:
        require_namespace()
    write_program(tmp_path, there_and_back())
    opened = Rack(tmp_path, attach=request.param)
    yield opened
    opened.close()


def test_packets_go_to_the_host_and_to_the_switch(rack: Rack) -> None:
    """By their labels, with the time at which they came in; the report counts each."""
    assert rack.host is not None
    tcp, udp = ipv4_frame(protocol=TCP), ipv4_frame()
    tagged = tcp[:12] + bytes.fromhex("81000007") + tcp[12:]
    assert rack.wire.send(PACKET, labelled(tcp, IN), 123)
    assert rack.next(rack.host) == Message(PACKET, 123, labelled(tagged, HOST))
    assert rack.wire.send(PACKET, labelled(udp, IN), 124)
    assert rack.wire.send(PACKET, labelled(udp, Label(9, 9)), 125)
    assert rack.wire.send(PACKET, labelled(udp, Label(2, 255)), 126)
    assert rack.next(rack.host) == Message(PACKET, 126, labelled(udp, Label(2, 255)))
    assert rack.host.send(PACKET, labelled(udp, BACK), 127)
    assert rack.next(rack.wire) == Message(PACKET, 127, labelled(udp, OUT))
    assert rack.host.send(PACKET, labelled(udp, Label(2, 254)), 128)
    assert rack.next(rack.wire) == Message(PACKET, 128, labelled(udp, Label(2, 254)))
    assert rack.end() == {
        "program": "nf-nic",
        "interrupted": False,
        "received": {"wire": 4, "host": 2},
        "sent": {"wire": 2, "host": 2},
        "functions": [
            {"name": "c0/sort", "entered": 2, "sent": 2, "dropped": 0},
            {"name": "c0/tag", "entered": 1, "sent": 1, "dropped": 0},
            {"name": "c0/out", "entered": 1, "sent": 1, "dropped": 0},
        ],
        "dropped": {
            "too_short": 0, "too_long": 0, "no_host": 0, "aborted": 0, "unknown_path": 1, "unmatched": 1, "no_room": 0
        },
    }  # fmt: skip


def test_a_flush_follows_the_packets_to_the_other_side(rack: Rack) -> None:
    """From the switch to the server, and back from it."""
    assert rack.host is not None
    packet = labelled(ipv4_frame(), Label(2, 255))
    for _ in range(50):
        assert rack.wire.send(PACKET, packet)
    assert rack.wire.send(FLUSH, struct.pack("<Q", 3))
    assert [rack.next(rack.host).kind for _ in range(51)] == [PACKET] * 50 + [FLUSH]
    assert rack.host.send(PACKET, labelled(ipv4_frame(), BACK))
    assert rack.host.send(FLUSH, struct.pack("<Q", 3))
    assert rack.next(rack.wire).kind == PACKET
    assert rack.next(rack.wire) == Message(FLUSH, 0, struct.pack("<Q", 3))
    assert rack.end()["received"] == {"wire": 50, "host": 1}


def test_packets_that_the_kernel_does_not_run_are_dropped_and_counted(rack: Rack) -> None:
    """Shorter than an Ethernet header, or longer than a page with room."""
    assert rack.host is not None
    longest = labelled(bytes((3514 if rack.attach else 3520) - 22), Label(2, 255))
    for packet in (b"", bytes(13), longest + b"\0", longest):
        assert rack.wire.send(PACKET, packet)
    assert rack.next(rack.host).data == longest
    dropped = rack.end()["dropped"]
    assert (dropped["too_short"], dropped["too_long"]) == (2, 1)


def test_without_a_host_rounds_are_answered_and_its_packets_dropped(tmp_path: Path) -> None:
    """The server's link is left out."""
    write_program(tmp_path, there_and_back())
    rack = Rack(tmp_path, with_host=False)
    packets = [(1, labelled(ipv4_frame(), Label(2, 255))), (2, labelled(ipv4_frame(), BACK))]
    assert rack.wire.exchange(packets, rounds=2) == [Message(PACKET, 2, labelled(ipv4_frame(), OUT))]
    rack.process.communicate(timeout=PATIENCE_S)
    assert rack.process.returncode == 0
    assert rack.report()["dropped"]["no_host"] == 1
    rack.close()


@pytest.mark.parametrize("attach", [False, True])
def test_a_random_program_does_what_the_machine_does(tmp_path: Path, attach: bool) -> None:
    """Several hundred packets, with the same counters."""
    if attach:
        require_namespace()
    made = RandomProgram(3)
    machine = NicMachine(read_object(write_program(tmp_path, made.program)))
    # a kernel's interface drops tags without a frame behind them; Ethernet has no such short frames
    packets = [packet for packet in made.packets(3, 600) if not attach or len(packet) >= 60]
    sent = [packet for action, packet in map(machine.run, packets) if action == 3]
    rack = Rack(tmp_path, with_host=False, attach=attach)
    came = rack.wire.exchange(enumerate(packets))
    assert [message.data for message in came] == sent
    rack.process.communicate(timeout=PATIENCE_S)
    functions = rack.report()["functions"]
    assert [one[kind] for one in functions for kind in ("entered", "sent")] == machine.counters()[: 2 * len(functions)]
    rack.close()


def test_an_interrupted_run_is_reported(rack: Rack) -> None:
    """SIGINT: exit status 130, and the report says so."""
    assert rack.host is not None
    assert rack.wire.send(PACKET, labelled(ipv4_frame(), Label(2, 255)))
    rack.next(rack.host)
    os.kill(rack.process.pid, signal.SIGINT)
    rack.process.communicate(timeout=PATIENCE_S)
    assert rack.process.returncode == 130
    assert rack.report()["interrupted"] is True
    assert not (rack.folder / "n0.json.part").exists()


def refused(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and stderr."""
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=20)
    assert done.stdout == ""
    return done.returncode, done.stderr


COMMAND = ("--program", "n0.o", "--wire", "wire.link", "--report", "n0.json")


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    """Missing, not an object, or an object of something else."""
    status, errors = refused(tmp_path, *COMMAND)
    assert status == 2
    assert "n0.o: No such file or directory" in errors
    (tmp_path / "n0.o").write_text("no object", encoding="utf-8")
    status, errors = refused(tmp_path, *COMMAND)
    assert status == 2
    assert "n0.o" in errors
    assert refused(tmp_path, "--program", "n0.o") == (
        2,
        "nf-nic: --wire is needed\nnf-nic: --report is needed\nhint: nf-nic --help lists the options\n",
    )
    assert not (tmp_path / "wire.link").exists()


def test_what_the_verifier_refuses_is_refused_with_its_log(tmp_path: Path) -> None:
    """A read behind the end of the packet."""
    data = bytearray(write_program(tmp_path, there_and_back()))
    code = data.index(struct.pack("<BBhi", 0xBF, 0x12, 0, 0)[:1])
    at = next(at for at in range(code, len(data) - 8, 8) if data[at] == 0x2D)  # the first comparison with the end
    data[at : at + 8] = struct.pack("<BBhi", 0xB7, 0x00, 0, 0)
    (tmp_path / "n0.o").write_bytes(data)
    status, errors = refused(tmp_path, *COMMAND)
    assert status == 2
    assert "invalid access to packet" in errors
    assert "n0.o: the kernel refuses the program: Permission denied" in errors
