"""nf-run on the command line: packets in, packets out, counters, fates, and what it refuses."""

import json
import os
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from tests.nfs.builds import build_tested, require
from tests.nfs.captures import read_capture, udp_packet, write_capture

DF = 0x4000


@pytest.fixture(scope="module")
def nf_run() -> Path:
    """The program."""
    require("cc")
    return build_tested("run/nf-run") / "run" / "nf-run"


def run(program: Path, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run nf-run in a folder."""
    return subprocess.run(
        [str(program), *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Ten packets of ten flows, of which the sixth is truncated within its UDP header."""
    packets = [udp_packet(ports=(1000 + i, 53), payload=b"some payload") for i in range(10)]
    packets[5] = packets[5][:36]
    return write_capture(tmp_path / "in.pcap", packets)


def test_packets_come_out_translated_and_counted(nf_run: Path, tmp_path: Path, capture: Path) -> None:
    """NAT writes nine translated packets, keeps their payloads, and counts the malformed one."""
    done = run(nf_run, "--nf", "NAT", "--in", capture, "--out", "out.pcap", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["received"], report["out"], report["back"], report["lost"]) == (10, 9, 0, 0)
    assert report["functions"][0]["counters"]["malformed"] == 1
    out = read_capture(tmp_path / "out.pcap")
    assert len(out) == 9
    assert all(packet[26:29] == bytes([203, 0, 113]) and packet[42:] == b"some payload" for packet in out)
    assert not (tmp_path / "out.pcap.part").exists()


def test_each_packet_has_a_fate(nf_run: Path, tmp_path: Path, capture: Path) -> None:
    """With --each, every packet has a line: out, or dropped by a function and why; then come the counters."""
    done = run(nf_run, "--nf", "NAT", "--in", capture, "--each", cwd=tmp_path)
    *fates, report = [json.loads(line) for line in done.stdout.splitlines()]
    assert [fate["packet"] for fate in fates] == list(range(10))
    assert [fate["fate"] for fate in fates] == ["out"] * 5 + ["dropped"] + ["out"] * 4
    assert (fates[5]["by"], fates[5]["why"]) == ("NAT", ["malformed"])
    assert report["out"] == 9


@pytest.mark.parametrize("payload", ["1603010200", "1603010000", "16"])
def test_a_record_without_its_handshake_is_incomplete(nf_run: Path, tmp_path: Path, payload: str) -> None:
    """Its server name may follow in the next segment: UrlFilter blocks it if so set."""
    frame = bytearray(udp_packet(payload=bytes(12) + bytes.fromhex(payload)))
    frame[23] = 6  # a TCP header of 20 bytes in place of UDP's 8, and 12 of the payload
    frame[46:48] = b"\x50\x10"  # with ACK, else hosts take no bytes
    write_capture(tmp_path / "in.pcap", [bytes(frame)])
    arguments = ("--nf", "UrlFilter", "--set", "block_incomplete=1", "--in", "in.pcap", "--each")
    found = json.loads(run(nf_run, *arguments, cwd=tmp_path).stdout.splitlines()[0])
    assert (found["fate"], found.get("why")) == ("dropped", ["blocked", "incomplete"])


def test_errors_come_back(nf_run: Path, tmp_path: Path) -> None:
    """A packet that is too large for the tunnel is answered: its fate is to go back, and the answer is in --back."""
    write_capture(tmp_path / "in.pcap", [udp_packet(payload=bytes(900), flags=DF), udp_packet()])
    arguments = ("--nf", "IPTunnel", "--set", "mtu=600", "--in", "in.pcap", "--back", "back.pcap", "--each")
    done = run(nf_run, *arguments, cwd=tmp_path)
    assert [json.loads(line)["fate"] for line in done.stdout.splitlines()[:2]] == ["back", "out"]
    (answer,) = read_capture(tmp_path / "back.pcap")
    assert answer[23] == 1  # ICMP
    assert answer[34:36] == bytes([3, 4])  # fragmentation needed


def test_packets_from_outside_are_merged_by_time(nf_run: Path, tmp_path: Path) -> None:
    """A reply 0.5 ms after its packet passes NAT to the inside; one before it finds no mapping."""
    write_capture(tmp_path / "in.pcap", [udp_packet()])
    run(nf_run, "--nf", "NAT", "--in", "in.pcap", "--out", "out.pcap", cwd=tmp_path)
    (left,) = read_capture(tmp_path / "out.pcap")
    address, port = ".".join(str(byte) for byte in left[26:30]), int.from_bytes(left[34:36], "big")
    reply = udp_packet("198.51.100.7", address, (53, port), b"answer")
    write_capture(tmp_path / "in.pcap", [udp_packet(), udp_packet()])
    data = bytearray(write_capture(tmp_path / "outside.pcap", [reply, reply]).read_bytes())
    data[24:32] = (0).to_bytes(4, "little") + (0).to_bytes(4, "little")  # the first at 0 s, before the packet at 1 s
    data[-len(reply) - 12 : -len(reply) - 8] = (500).to_bytes(4, "little")
    (tmp_path / "outside.pcap").write_bytes(data)
    arguments = ("--nf", "NAT", "--in", "in.pcap", "--outside", "outside.pcap", "--back", "back.pcap")
    counters = json.loads(run(nf_run, *arguments, cwd=tmp_path).stdout)["functions"][0]["counters"]
    assert (counters["outward"], counters["inward"], counters["unmapped"]) == (2, 1, 1)
    (inward,) = read_capture(tmp_path / "back.pcap")
    assert inward[30:34] == bytes([10, 0, 0, 1])


CHAIN = """\
# a firewall, then two ways through a router
acl: ACL filters=0
router: IPRouter routes=0 ports=2
left: FlowStats
right: "FlowStats"
nat: NAT addresses=1
acl -> router
router[0] -> left
router[1] -> right
left -> nat
right -> nat
"""


def test_a_chain_passes_packets_on(nf_run: Path, tmp_path: Path, capture: Path) -> None:
    """Packets pass the functions of a chain file in the order of its edges."""
    (tmp_path / "a.chain").write_text(CHAIN)
    done = run(nf_run, "--chain", "a.chain", "--in", capture, "--out", "out.pcap", cwd=tmp_path)
    assert done.stderr == ""
    entered = {function["name"]: function["entered"] for function in json.loads(done.stdout)["functions"]}
    assert entered == {"acl": 10, "router": 9, "left": 9, "right": 0, "nat": 9}
    assert all(packet[22] == 63 and packet[26] == 203 for packet in read_capture(tmp_path / "out.pcap"))


ROUTER_BEFORE_ACLS = """\
router: IPRouter ports=2 routes=0 unknown=pass arp=pass
a: ACL filters=0 default_permit=0 ipv6=drop arp=drop
b: ACL filters=0 default_permit=0
router[0] -> a
router[1] -> b
"""


def test_what_a_router_with_gates_does_not_route_leaves_by_the_first(nf_run: Path, tmp_path: Path) -> None:
    """IPv6, LLDP and ARP meet the filter behind gate 0, in place of leaving the chain by a gate that leads nowhere."""
    ethernet = bytes([2] * 6 + [6] * 6)
    others = [ethernet + kind + bytes(46) for kind in (b"\x88\xcc", b"\x08\x06", b"\x86\xdd\x60")]
    write_capture(tmp_path / "in.pcap", [udp_packet(), *others])
    (tmp_path / "a.chain").write_text(ROUTER_BEFORE_ACLS)
    done = run(nf_run, "--chain", "a.chain", "--in", "in.pcap", "--out", "out.pcap", cwd=tmp_path)
    entered = {function["name"]: function["entered"] for function in json.loads(done.stdout)["functions"]}
    assert entered == {"router": 4, "a": 4, "b": 0}
    assert read_capture(tmp_path / "out.pcap") == []


def test_bursts_change_nothing(nf_run: Path, tmp_path: Path) -> None:
    """Packets of one time, which pass in bursts, come out as the same bytes as one by one."""
    packets = [udp_packet(ports=(1000 + i % 40, 53), payload=bytes(i % 90)) for i in range(500)]
    write_capture(tmp_path / "in.pcap", packets, gap_us=0)
    (tmp_path / "a.chain").write_text(CHAIN)
    common = ("--chain", "a.chain", "--in", "in.pcap")
    run(nf_run, *common, "--out", "bursts.pcap", cwd=tmp_path)
    run(nf_run, *common, "--out", "each.pcap", "--each", cwd=tmp_path)
    assert len(read_capture(tmp_path / "each.pcap")) == 500
    assert (tmp_path / "bursts.pcap").read_bytes() == (tmp_path / "each.pcap").read_bytes()


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a: Acl\n", ["a.chain:1: a: Acl: unknown network function"]),
        ("a: ACL filtres=1 seed=x\n", ["a.chain:1: a: ACL has no parameter filtres", "a.chain:1: a: seed: "]),
        ("a: ACL\na: NAT\n", ["a.chain:2: a: this name is there already"]),
        ("a: ACL\nb: NAT\na -> b\nb -> a\n", ["a.chain:4: b -> a closes a cycle"]),
        ("a: ACL\nb: NAT\n", ["a.chain:2: b: a chain has one entry, and a is one, too"]),
        ("a: ACL\n\na -> c\n", ["a.chain:3: c: no function has this name"]),
        ("a: ACL\na ->\n", ["a.chain:2: the edge leads nowhere"]),
        ("a: ACL\nb: NAT\na -> b 1/3\na -> out 1/3\n", ["a.chain:3: the shares of a add up to 0.666667, not to 1"]),
        ("a: ACL\na -> out 4/3\n", ["a.chain:2: 4/3: a share is"]),
        ("a: ACL\na[1] -> out\n", ["a.chain:2: a: has no gate 1: ACL has 0 numbered gates"]),
        ("a: IPRouter routes=0 ports=2\na[0] -> out\n", ["a.chain:1: a: gate 1 leads nowhere"]),
        ("a: ACL\nb: NAT\na -> b\ncore 0: a\n", ["a.chain:2: b is on no core"]),
        ("a: ACL\ncore 0: a\ncore 1: a\n", ["a.chain:3: a is on a core already"]),
        ("a: ACL\nnsh 1 256 -> a\n", ["a.chain:2: nsh 1 256: a path is at most"]),
        ('a: ACL "filters=1\n', ["a.chain:1: a quotation mark is not closed"]),
        ("what is this\n", ["a.chain:1: neither NAME: FUNCTION"]),
        ("# nothing\n", ["a.chain: no function"]),
    ],
)
def test_faults_of_a_chain_are_named(nf_run: Path, tmp_path: Path, capture: Path, text: str, faults: list[str]) -> None:
    """A chain file with a fault is refused with exit status 2, each fault with file and line."""
    (tmp_path / "a.chain").write_text(text)
    done = run(nf_run, "--chain", "a.chain", "--in", capture, "--out", "out.pcap", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    for fault in faults:
        assert fault in done.stderr
    assert not list(tmp_path.glob("out.pcap*"))


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--nf", "Nat"], "Nat: unknown network function\nhint: one of ACL"),
        (["--nf", "NAT", "--set", "sessions=1"], "sessions: 1 is outside [8, 4.1943e+06]"),
        (["--nf", "NAT", "--set", "sessions"], '"sessions" is not KEY=VALUE'),
        (["--nf", "NAT", "--set", "udp_s=1", "--set", "udp_s=2"], "udp_s is set twice"),
        (["--nf", "NAT", "--chain", "x"], "either --nf or --chain"),
        ([], "either --nf or --chain"),
        (["--nf", "NAT", "--out", "in.pcap"], "cannot be read and written at once"),
        (["--nf", "NAT", "--count", "0"], '--count: "0" is not a number above 0'),
        (["--nf", "NAT", "--count", "0.5"], "--count is a whole number"),
        (["--nf", "NAT", "--count", "1e15"], '--count: "1e15" is not a number above 0 and below 1e15'),
        (["--nf", "NAT", "--out", "no/such/out.pcap"], "no/such/out.pcap"),
        (["--nf", "NAT", "--outside", "ring"], "must both be captures"),
    ],
)
def test_wrong_options_are_refused(
    nf_run: Path, tmp_path: Path, capture: Path, arguments: list[str], fault: str
) -> None:
    """A wrong option is refused with exit status 2 and what is wrong."""
    done = run(nf_run, *arguments, "--in", capture.name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert fault in done.stderr


def test_faults_of_a_capture_are_named(nf_run: Path, tmp_path: Path, capture: Path) -> None:
    """A capture that is cut, has empty packets, is of another link, or is none, is refused with file and packet."""
    data = capture.read_bytes()
    empty = data[: 24 + 8] + struct.pack("<II", 0, 99)
    cases = {
        "cut.pcap": (data[:-3], "cut.pcap: packet 10: "),
        "empty.pcap": (empty, "empty.pcap: packet 1: 0 of 99 bytes were captured"),
        "wlan.pcap": (write_capture(tmp_path / "w", [], link=105).read_bytes(), "not from Ethernet"),
        "text.pcap": (b"not a capture at all, but text", "text.pcap"),
    }
    for name, (content, fault) in cases.items():
        (tmp_path / name).write_bytes(content)
        done = run(nf_run, "--nf", "NAT", "--in", name, "--out", "out.pcap", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert fault in done.stderr
        assert not list(tmp_path.glob("out.pcap*"))


def test_rules_are_read_from_a_file(nf_run: Path, tmp_path: Path, capture: Path) -> None:
    """A rule that matches every payload drops all but the malformed packet, which is freed besides."""
    (tmp_path / "rules.txt").write_text("# ours\nweb some [a-z]+load\n")
    arguments = ("--nf", "PacketFilter", "--set", "file=rules.txt", "--in", capture, "--out", "out.pcap")
    done = run(nf_run, *arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    counters = json.loads(done.stdout)["functions"][0]["counters"]
    assert (counters["dropped"], counters["matches"], counters["malformed"]) == (9, 9, 1)
    assert read_capture(tmp_path / "out.pcap") == []


def test_faults_of_rules_are_named(nf_run: Path, tmp_path: Path, capture: Path) -> None:
    """Every line with a fault is named, then how a line should be; nothing is written."""
    (tmp_path / "rules.txt").write_text("web GET\nwww GET\nweb GET(\n")
    done = run(nf_run, "--nf", "NIDS", "--set", "file=rules.txt", "--in", capture, "--out", "out.pcap", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    first, second, hint = done.stderr.splitlines()[:3]
    assert first == "rules.txt:2: www: not a class"
    assert second.startswith("rules.txt:3: GET(: Missing close parenthesis")
    assert hint.startswith("hint: CLASS EXPRESSION")
    assert not list(tmp_path.glob("out.pcap*"))


def test_a_full_disk_is_a_failure(nf_run: Path, tmp_path: Path, capture: Path) -> None:
    """Where a capture cannot be written, the exit status is 1, stderr says why, and nothing half-written is left."""
    (tmp_path / "out.pcap.part").symlink_to("/dev/full")
    done = run(nf_run, "--nf", "NAT", "--in", capture, "--out", "out.pcap", cwd=tmp_path)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert not (tmp_path / "out.pcap").exists()


def test_an_interrupt_keeps_what_was_done(nf_run: Path, tmp_path: Path) -> None:
    """Ctrl-C ends an endless run with its counters, its packets, and exit status 130."""
    arguments = ["--nf", "FlowStats", "--in", "ring:100,64", "--out", "out.pcap"]
    with subprocess.Popen([nf_run, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "out.pcap.part").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    report = json.loads(output)
    assert process.returncode == 130
    assert report["interrupted"]
    assert len(read_capture(tmp_path / "out.pcap")) == report["out"] > 0


def _exchanged(nf_run: Path, folder: Path, names: list[str], pause: float) -> list[bytes]:
    """What one run receives at an interface while another sends `in.pcap` from the other one through NAT."""
    receiving = ["--nf", "FlowStats", "--in", f"af_packet:{names[1]}", "--out", "got.pcap", "--seconds", "120"]
    with subprocess.Popen([nf_run, *receiving], cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (folder / "got.pcap.part").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(pause)
        run(nf_run, "--nf", "NAT", "--in", "in.pcap", "--out", f"af_packet:{names[0]}", cwd=folder)
        time.sleep(2 * pause)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    return [packet for packet in read_capture(folder / "got.pcap") if packet[26:29] == bytes([203, 0, 113])]


def test_packets_cross_network_interfaces(nf_run: Path, tmp_path: Path) -> None:
    """With AF_PACKET on a pair of virtual interfaces, what one run sends another one receives."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("root and the program ip are needed to make a pair of network interfaces")
    names = [f"nfrun{os.getpid() % 10000}{end}" for end in "ab"]
    made = subprocess.run(["ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1]], check=False)
    if made.returncode:
        pytest.skip("no pair of network interfaces can be made here")
    try:
        for name in names:
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
        write_capture(tmp_path / "in.pcap", [udp_packet(ports=(7000, i)) for i in range(50)])
        for pause in (0.5, 4, 15):  # seconds that a busy machine may need to pass packets on
            got = _exchanged(nf_run, tmp_path, names, pause)
            if len(got) == 50:
                break
        assert sorted(int.from_bytes(packet[36:38], "big") for packet in got) == list(range(50))
    finally:
        subprocess.run(["ip", "link", "del", names[0]], check=False)
