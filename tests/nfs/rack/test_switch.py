"""nf-switch on the command line: programs run on captures and links, and reports."""

import json
import struct
import threading
from pathlib import Path

import pytest

from tests.nfs.captures import read_capture, udp_packet, write_capture
from tests.nfs.rack.switch_program import COUNTING, PROGRAMS, TO_WORLD, run
from tests.nfs.rack.wire import END, FLUSH, PACKET, SIDE_B, Message, Wire
from tests.reference.nfs.headers import internet_checksum

NSH = bytes.fromhex("020202020202 060606060606 894f 0fc2 02 03 000001 ff")
"""What stands before a packet of udp_packet() on path 1 at its first function."""


def tagged(packet: bytes, *tags: tuple[int, int]) -> bytes:
    """The packet with VLAN tags."""
    return packet[:12] + b"".join(struct.pack("!HH", *tag) for tag in tags) + packet[12:]


def with_options(packet: bytes, words: int) -> bytes:
    """The packet with no-operation options in its IPv4 header."""
    options = bytes([1] * 4 * words)
    length = struct.unpack_from("!H", packet, 16)[0] + len(options)
    ip = bytes([0x45 + words, 0]) + struct.pack("!H", length) + packet[18:24] + b"\0\0" + packet[26:34] + options
    return packet[:14] + ip[:10] + struct.pack("!H", internet_checksum(ip)) + ip[12:] + packet[34:]


class Server(threading.Thread):
    """The other end of a link: lets each packet of path 1 go on one index further, until the end comes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.packets: list[Message] = []
        self.rounds: list[int] = []

    def run(self) -> None:
        """Answer all messages."""
        with Wire(self.path, SIDE_B) as link:
            while (message := link.wait()).kind != END:
                data = message.data
                if message.kind == FLUSH:
                    self.rounds.append(int.from_bytes(data, "little"))
                if message.kind == PACKET:
                    self.packets.append(message)
                    data = data[:21] + b"\xfe" + data[22:]
                assert link.send(message.kind, data, message.time_us)


def test_forwards_by_table_and_counts(nf_switch: Path, tmp_path: Path) -> None:
    """What the table knows goes to the world, the rest to the drop port; a truncated frame does not enter."""
    packets = [udp_packet(payload=bytes(size)) for size in (0, 1, 1400)]
    others = [b"\3" * 12 + b"\x08\x06" + bytes(28), udp_packet()[:20], b"short"]
    write_capture(tmp_path / "in.pcap", packets + others)
    (tmp_path / "entries").write_text("# one address\n" + TO_WORLD)
    ends = ("--entries", "entries", "--in", "in.pcap", "--out", "out.pcap")
    done = run(nf_switch, "--spec", PROGRAMS / "l2.spec", *ends, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert read_capture(tmp_path / "out.pcap") == packets
    report = json.loads(done.stdout)
    assert report["program"] == "nf-switch"
    assert (report["received"], report["sent"]) == ({"world": 6}, {"world": 3})
    assert (report["dropped"], report["drop_port"], report["interrupted"]) == ({"malformed": 2}, 1, False)


def test_frames_with_three_tags_do_not_enter(nf_switch: Path, tmp_path: Path) -> None:
    """NFs look behind two tags: with one less such a frame would be another packet."""
    packets = [tagged(udp_packet(), *[(0x88A8, 1), (0x8100, 2), (0x8100, 3)][:tags]) for tags in range(4)]
    write_capture(tmp_path / "in.pcap", [*packets, packets[3][:22], packets[3][:21]])
    (tmp_path / "entries").write_text(TO_WORLD)
    ends = ("--entries", "entries", "--in", "in.pcap", "--out", "out.pcap")
    done = run(nf_switch, "--spec", PROGRAMS / "l2.spec", *ends, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert read_capture(tmp_path / "out.pcap") == packets[:3]
    assert json.loads(done.stdout)["dropped"] == {"malformed": 3}


@pytest.mark.parametrize("in_flight", [1, 16])
def test_labels_are_pushed_and_popped(nf_switch: Path, tmp_path: Path, in_flight: int) -> None:
    """Packets go to a server behind 22 bytes of NSH and come back without, byte for byte, with their times."""
    plain = [udp_packet(payload=bytes(size)) for size in range(20)]
    packets = [
        *plain,
        tagged(plain[3], (0x8100, 5)),
        tagged(plain[4], (0x88A8, 5), (0x8100, 7)),
        *(with_options(plain[5], words) for words in range(1, 11)),
        tagged(with_options(plain[6], 3), (0x8100, 5)),
    ]
    arp, forged = b"\3" * 12 + b"\x08\x06" + bytes(28), b"\3" * 12 + b"\x89\x4f" + bytes(50)
    write_capture(tmp_path / "in.pcap", [*packets, arp, forged, udp_packet(source="11.0.0.1"), b"short"])
    server = Server(tmp_path / "s0.link")
    server.start()
    files = {"--spec": PROGRAMS / "nsh.spec", "--entries": PROGRAMS / "nsh.entries", "--names": PROGRAMS / "nsh.names"}
    files |= {"--in": Path("in.pcap"), "--out": Path("out.pcap"), "--report": Path("report.json")}
    arguments = [part for pair in files.items() for part in pair]
    done = run(nf_switch, *arguments, "--link", "s0=s0.link", "--in-flight", in_flight, cwd=tmp_path)
    server.join()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(message.data for message in server.packets) == sorted(NSH + packet for packet in packets)
    assert {message.time_us for message in server.packets} == {1_000_000 + 1000 * i for i in range(len(packets))}
    assert server.rounds == list(range(1, server.rounds[-1] + 1))
    if in_flight == 1:
        assert read_capture(tmp_path / "out.pcap") == packets
    assert sorted(read_capture(tmp_path / "out.pcap")) == sorted(packets)
    report, n = json.loads((tmp_path / "report.json").read_text()), len(packets)
    assert report["received"] == {"world": n + 4, "s0": n}
    assert report["sent"] == {"world": n, "s0": n}
    assert report["functions"] == [
        {"name": "c0/out", "entered": n + 2, "sent": n, "dropped": 2},
        {"name": "c0/back", "entered": n, "sent": n, "dropped": 0},
    ]
    assert report["dropped"] == {"malformed": 1, "forged": 1, "unclassified": 2}
    assert not list(tmp_path.glob("*.part"))


def udp_with_checksum(packet: bytes) -> bytes:
    """The packet with its UDP checksum."""
    covered = packet[26:34] + b"\0\x11" + packet[38:40] + packet[34:40] + b"\0\0" + packet[42:]
    return packet[:40] + struct.pack("!H", internet_checksum(covered)) + packet[42:]


def test_a_learner_is_a_nat(nf_switch: Path, tmp_path: Path) -> None:
    """Each flow gets one external port of its own, and all checksums stay right, however often it comes."""
    flows = [(f"10.0.{i % 7}.{i % 5}", 1000 + i % 35) for i in range(200)]
    packets = [
        udp_with_checksum(udp_packet(source=source, ports=(port, 53), payload=bytes([i, 255 - i]), identification=i))
        for i, (source, port) in enumerate(flows)
    ]
    write_capture(tmp_path / "in.pcap", [*packets, udp_packet(destination="192.168.0.1")])
    (tmp_path / "entries").write_text(
        "routes match 0/0 action next_hop dst 0x020000000001\n"
        "routes match 0xc6336400/0xffffff00 action next_hop dst 0x020000000002\n"
        "routes match 0xc0a80000/0xffff0000 action no_route\n"
    )
    ends = ("--entries", "entries", "--in", "in.pcap", "--out", "out.pcap")
    (tmp_path / "names").write_text("function 0 nat\n")
    done = run(nf_switch, "--spec", PROGRAMS / "nat.spec", *ends, "--names", "names", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    out = read_capture(tmp_path / "out.pcap")
    assert len(out) == len(packets)
    ports: dict[tuple[str, int], bytes] = {}
    for flow, before, after in zip(flows, packets, out, strict=True):
        assert ports.setdefault(flow, after[34:36]) == after[34:36]
        assert after[:12] == b"\2\0\0\0\0\2" + before[6:12]
        assert after[22] == before[22] - 1
        assert after[26:30] == bytes([192, 0, 2, 1])
        assert internet_checksum(after[14:34]) == 0
        assert udp_with_checksum(after) == after
        assert (after[30:34], after[36:40], after[42:]) == (before[30:34], before[36:40], before[42:])
    assert sorted(ports.values()) == [struct.pack("!H", 1024 + i) for i in range(35)]
    assert json.loads(done.stdout)["functions"] == [{"name": "nat", "entered": 201, "sent": 200, "dropped": 1}]


def test_every_form_of_counting_counts(nf_switch: Path, tmp_path: Path) -> None:
    """Registers of any array change, also by two numbers; the lowest priority wins; a default entry replaces."""
    (tmp_path / "p.spec").write_text(COUNTING)
    (tmp_path / "entries").write_text(
        "classes match 0x0800/0xff00 priority 3 action count n 100\n"
        "classes match 0x0800/0xffff priority 1 action count n 10\n"
        "classes match 0/0 priority 2 action count n 1000\n"
        "always default action count n 1\n"
    )
    (tmp_path / "names").write_text("function 1 a\nfunction 2 b\nfunction 3 c\nreason 2 d\nreason 3 e\n")
    write_capture(tmp_path / "in.pcap", [*[udp_packet()] * 5, b"\3" * 12 + b"\x08\x06" + bytes(28)])
    ends = ("--entries", "entries", "--names", "names", "--in", "in.pcap", "--out", "out.pcap")
    done = run(nf_switch, "--spec", "p.spec", *ends, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert [(f["name"], f["entered"], f["sent"]) for f in report["functions"]] == [
        ("a", 5, 15),
        ("b", 0, 9),
        ("c", 0, 10),
    ]
    assert report["dropped"] == {"malformed": 0, "d": 60, "e": 5}
    assert report["drop_port"] == 1


def test_packets_to_no_port_are_dropped(nf_switch: Path, tmp_path: Path) -> None:
    """Packets to a port that is not there are dropped and counted; headers that are not emitted are cut off."""
    short = COUNTING.replace("emit h.eth", "jmpeq SHORT h.eth.dst 0x020202020202\n\temit h.eth")
    (tmp_path / "p.spec").write_text(short.replace("tx 0", "tx 9\n\tSHORT : tx 0"))
    write_capture(tmp_path / "in.pcap", [udp_packet()[:42], b"\3" * 12 + udp_packet()[12:]])
    done = run(nf_switch, "--spec", "p.spec", "--in", "in.pcap", "--out", "out.pcap", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines() == ["nf-switch: the program sends a packet to a port beyond 1"]
    assert read_capture(tmp_path / "out.pcap") == [udp_packet()[14:42]]
    assert json.loads(done.stdout)["dropped"] == {"malformed": 0, "no_port": 1}


def test_a_program_can_be_checked_alone(nf_switch: Path, tmp_path: Path) -> None:
    """With --check nothing runs, and nothing is written."""
    files = ("--spec", PROGRAMS / "nsh.spec", "--entries", PROGRAMS / "nsh.entries", "--names", PROGRAMS / "nsh.names")
    done = run(nf_switch, "--check", *files, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())
