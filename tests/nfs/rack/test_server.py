"""nf-server behind a link: entries, replicas, cores, rounds, losses by cause, its report, and what it refuses."""

import json
import os
import random
import re
import signal
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.nfs.builds import ROOT
from tests.nfs.captures import udp_packet
from tests.nfs.rack.wire import END, PACKET, Message, Wire
from tests.reference.nfs.headers import read_headers, split_value

PROGRAM = ROOT / "build" / "nfs" / "rack" / "nf-server"


@pytest.fixture(scope="module")
def server() -> Path:
    """The program of the normal build."""
    if not PROGRAM.exists():
        pytest.skip("nf-server is not built: `make nfs` builds it")
    return PROGRAM


def labelled(path: int, index: int, frame: bytes) -> bytes:
    """A frame behind a network service header (RFC 8300)."""
    return frame[:12] + b"\x89\x4f\x0f\xc2\x02\x03" + struct.pack("!I", path << 8 | index) + frame


def label_of(frame: bytes) -> tuple[int, int] | None:
    """Path and index; None without a header."""
    if frame[12:14] != b"\x89\x4f":
        return None
    word = int.from_bytes(frame[18:22], "big")
    return word >> 8, word & 0xFF


@dataclass
class Done:
    """What a run left."""

    came: list[Message]
    report: dict[str, Any]

    def entered(self) -> dict[str, int]:
        """Packets that entered, by function."""
        return {function["name"]: function["entered"] for function in self.report["functions"]}

    def losses(self) -> dict[str, int]:
        """Packets dropped, by cause; those with none are left out."""
        return {cause: n for cause, n in self.report["dropped"].items() if n}


def exchange(
    folder: Path, chain: str, packets: Sequence[tuple[int, bytes]], *options: str, rounds: int = 1, status: int = 0
) -> Done:
    """Give packets with their times to a server, and take what it sends."""
    (folder / "a.chain").write_text(chain)
    command = [str(PROGRAM), "--chain", "a.chain", "--link", "a.link", "--report", "a.json", *options]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        with Wire(folder / "a.link") as wire:
            came = wire.exchange(packets, rounds)
            _, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, stderr) == (status, "")
    assert not (folder / "a.json.part").exists()
    return Done(came, json.loads((folder / "a.json").read_text()))


REPLICAS = """\
# two copies of a subgroup, on cores of their own, and one function on core 0
tag.0: Tunnel vlan=10
tag.1: Tunnel vlan=11
pick: Match filters="udp port 53;udp port 80" drop_unmatched=1
nsh 1 255 -> tag.0 1/3
nsh 1 255 -> tag.1 2/3
split nsh 1 255 77
tag.0 -> nsh 1 254
tag.1 -> nsh 1 254
nsh 1 253 -> pick
pick[0] -> out
pick[1] -> nsh 2 252
core 0: pick
core 1: tag.0
core 2: tag.1
"""


@pytest.mark.parametrize("options", [(), ("--cores", "1"), ("--cores", "2")], ids=["three", "one", "too few"])
def test_packets_enter_and_leave_by_their_labels(server: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Whatever the cores: the same bytes in the order of each flow, and counters that add up."""
    frames = [udp_packet(ports=(i % 50, (53, 80, 99)[i % 3]), payload=i.to_bytes(4, "big")) for i in range(3000)]
    packets = [(i, labelled(1, 255 if i % 2 else 253, frame)) for i, frame in enumerate(frames)]
    done = exchange(tmp_path, REPLICAS, packets, *options, rounds=2)
    expected = []
    for i, frame in enumerate(frames):
        if i % 2:
            vlan = 10 if split_value(frame, read_headers(frame), 77) < 21845 else 11
            tagged = frame[:12] + struct.pack("!HH", 0x8100, vlan) + frame[12:]
            expected.append((i, labelled(1, 254, tagged)))
        elif i % 3 < 2:
            expected.append((i, labelled(2, 252, frame) if i % 3 else frame))
    came = [(message.time_us, message.data) for message in done.came]
    assert Counter(came) == Counter(expected)
    flows: dict[tuple[object, ...], list[int]] = {}
    for at, data in came:
        body = data[22:] if label_of(data) else data
        flows.setdefault((label_of(data), body[-12:-8]), []).append(at)
    assert all(times == sorted(times) for times in flows.values())
    assert done.losses() == {"unmatched": 500}
    assert done.report["received"] == {"link": 3000} and done.report["sent"] == {"link": 2500}
    assert [(one["entered"], one["sent"], one["dropped"]) for one in done.report["functions"]][2] == (1500, 1500, 0)
    assert done.entered()["tag.0"] + done.entered()["tag.1"] == 1500


def test_what_cannot_enter_is_counted_by_its_cause(server: Path, tmp_path: Path) -> None:
    """No label, a damaged one, an expired one, an unknown path, an unknown index."""
    good = labelled(3, 255, udp_packet())
    wrong = [
        udp_packet(),
        good[:30],
        good[:14] + b"\x00\x02" + good[16:],
        labelled(4, 255, udp_packet()),
        labelled(3, 1, udp_packet()),
        b"",
        b"\x02" * 13,
    ]
    done = exchange(tmp_path, "a: Null\nnsh 3 255 -> a\na -> out\n", [(1, one) for one in [*wrong, good]])
    assert [message.data for message in done.came] == [udp_packet()]
    assert done.losses() == {"without_nsh": 3, "invalid_nsh": 2, "unknown_path": 2}


def test_what_functions_drop_is_explained(server: Path, tmp_path: Path) -> None:
    """Entered less sent is what a function dropped, and its own counters say why."""
    (tmp_path / "acl").write_text("deny udp any any 53\n")
    packets = [(1, labelled(1, 255, udp_packet(ports=(1, port)))) for port in (53, 54, 53)]
    done = exchange(tmp_path, "a: ACL file=acl\nnsh 1 255 -> a\na -> out\n", packets)
    (acl,) = done.report["functions"]
    assert (acl["name"], acl["nf"], acl["entered"], acl["sent"], acl["dropped"]) == ("a", "ACL", 3, 1, 2)
    assert acl["counters"]["denied"] == 2 and done.losses() == {}


def some_frame(rng: random.Random, number: int) -> bytes:
    """A frame of any kind with its number at the end: plain, with one tag or two, a fragment, or not IPv4."""
    ports, mark = (rng.randrange(1 << 16), rng.randrange(1 << 16)), number.to_bytes(4, "big")
    flags = 0x2000 if number % 5 == 3 else 0
    frame = udp_packet(f"10.{number % 7}.0.{number % 251}", "198.51.100.7", ports, mark, flags=flags)
    tags = {1: b"\x81\x00\x00\x07", 2: b"\x88\xa8\x00\x07\x81\x00\x00\x09"}.get(number % 5, b"")
    return frame[:12] + tags + (b"\x08\x06" if number % 5 == 4 else frame[12:14]) + frame[14:]


@pytest.mark.parametrize("seed", range(4))
def test_shares_are_split_as_defined(server: Path, tmp_path: Path, seed: int) -> None:
    """Exact fractions, behind a function: tagged frames, fragments and what is not IPv4 go where the hash says."""
    rng, names = random.Random(seed), "bcdef"[: 2 + seed]
    salt, parts = rng.getrandbits(32), [rng.randrange(1, 50) for _ in names]
    lines = [f"{name}: Tunnel vlan={i + 1}" for i, name in enumerate(names)]
    lines += [f"a -> {name} {part}/{sum(parts)}\n{name} -> out" for name, part in zip(names, parts, strict=True)]
    chain = "\n".join(["a: Null", *lines, f"split a {salt}", "nsh 7 255 -> a", ""])
    limits = [65536 * sum(parts[: i + 1]) // sum(parts) for i in range(len(parts))]
    frames = [some_frame(rng, number) for number in range(400)]
    done = exchange(tmp_path, chain, [(1, labelled(7, 255, frame)) for frame in frames])
    expected = Counter[str]()
    for frame in frames:
        value = split_value(frame, read_headers(frame), salt)
        expected[names[next(i for i, limit in enumerate(limits) if value < limit)]] += 1
    assert {name: n for name, n in done.entered().items() if name != "a" and n} == dict(expected)


LIMITED = """\
limit: Limiter rate_mbps=1 burst_bytes=1000
a: Null
b: Null
nsh 1 255 -> limit
limit -> a 1/2
limit -> b 1/2
a -> out
b -> out
core 1: limit a
core 2: b
"""


@pytest.mark.parametrize("options", [(), ("--cores", "1")], ids=["three", "one"])
def test_a_limiter_stands_before_replicas(server: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Its clock is that of the packets, on every core: ten times the rate for a second, a tenth of it passes."""
    packets = [(1000 * i + 1, labelled(1, 255, udp_packet(ports=(i, 5), payload=bytes(1204)))) for i in range(1000)]
    done = exchange(tmp_path, LIMITED, packets, *options)
    assert len(done.came) == pytest.approx(1e6 / 8 / (1204 + 46), abs=2)
    entered = done.entered()
    assert entered["a"] + entered["b"] == len(done.came) and min(entered["a"], entered["b"]) > 30


def test_what_functions_hold_leaves_with_a_round(server: Path, tmp_path: Path) -> None:
    """Fragments wait for the others of their datagram; a flush lets them go before the round is answered."""
    chain = "scan: NIDS\nnsh 1 255 -> scan\nscan -> nsh 1 254\n"
    packets = [(i, labelled(1, 255, udp_packet(ports=(i, 80), payload=bytes(200)))) for i in range(500)]
    done = exchange(tmp_path, chain, packets, rounds=3)
    assert [label_of(message.data) for message in done.came] == [(1, 254)] * 500


def test_times_that_are_wrong_do_not_end_flows(server: Path, tmp_path: Path) -> None:
    """A packet is stamped 0, and a second later the clock is that of the packets again; each leaves with its time."""
    chain = 'scan: NIDS "timeout_s=60"\nnsh 1 255 -> scan\nscan -> nsh 1 254\n'
    times = [1_800_000_000_000_000 + 5000 * i for i in range(400)]
    times[200] = 0
    packets = [(at, labelled(1, 255, udp_packet(ports=(i % 7, 80), payload=b"a"))) for i, at in enumerate(times)]
    done = exchange(tmp_path, chain, packets)
    assert sorted(message.time_us for message in done.came) == sorted(times)
    assert done.report["functions"][0]["counters"]["aged"] == 0


def test_large_packets_are_whole(server: Path, tmp_path: Path) -> None:
    """A slot of a link holds 4,080 bytes; a packet that grows beyond is dropped and counted."""
    frames = [udp_packet(payload=random.Random(size).randbytes(size)) for size in (0, 2000, 3000, 4000 + 16)]
    packets = [(1, labelled(1, 255, frame)) for frame in frames]
    assert len(packets[-1][1]) == 4080
    done = exchange(
        tmp_path,
        "a: Tunnel\nb: Tunnel\nc: Null\nnsh 1 255 -> a\na -> b\nb -> nsh 1 9\nc -> out\nnsh 1 7 -> c\n",
        [*packets, (2, packets[-1][1][:21] + b"\x07" + frames[-1])],
    )
    assert [len(message.data) for message in done.came] == [len(one) + 8 + 22 for one in frames[:3]] + [len(frames[3])]
    assert done.losses() == {"too_long": 1}


def test_an_interrupt_reports_what_was_done(server: Path, tmp_path: Path) -> None:
    """Exit status 130; what was received before is processed and counted."""
    (tmp_path / "a.chain").write_text(REPLICAS)
    command = [str(PROGRAM), "--chain", "a.chain", "--link", "a.link", "--report", "a.json"]
    with subprocess.Popen(command, cwd=tmp_path) as process, Wire(tmp_path / "a.link") as wire:
        for i in range(100):
            assert wire.send(0, labelled(1, 255, udp_packet(ports=(i, 1))), i)
        deadline = time.monotonic() + 20
        while wire.receive() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    report = json.loads((tmp_path / "a.json").read_text())
    assert report["interrupted"] and report["received"] == {"link": 100}
    assert sum(one["sent"] for one in report["functions"]) == 100


def test_a_switch_that_dies_is_noticed(server: Path, tmp_path: Path) -> None:
    """Exit status 1, with the link's name; the report is there."""
    (tmp_path / "a.chain").write_text(REPLICAS)
    command = [str(PROGRAM), "--chain", "a.chain", "--link", "a.link", "--report", "a.json"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        with Wire(tmp_path / "a.link") as wire:
            assert wire.send(0, labelled(1, 255, udp_packet()), 1)
            deadline = time.monotonic() + 20
            while wire.receive() is None and time.monotonic() < deadline:
                time.sleep(0.001)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 1 and stderr.startswith("a.link: ")
    assert json.loads((tmp_path / "a.json").read_text())["sent"] == {"link": 1}


@pytest.mark.parametrize(
    ("chain", "options", "faults"),
    [
        ("a: Null\nnsh 1 2 -> a 1/2\n", (), ["a.chain:2: the shares of nsh 1 2 add up to 0.5, not to 1"]),
        ("a: Null\nnsh 1 2 -> a 1/2\nnsh 1 2 -> a 1/2\n", (), ["a.chain:3: this edge is there already"]),
        ("a: Null\nsplit a -1\n", (), ["a.chain:2: -1: a salt is a whole number from 0 to 4294967295"]),
        ("a: Null\nsplit nsh 1 2 3\n", (), ["a.chain:2: no edge enters by nsh 1 2"]),
        ("a: Null\nsplit a\n", (), ["a.chain:2: it is split NAME SALT, or split nsh PATH INDEX SALT"]),
        ("a: Null\nsplit b 3\n", (), ["a.chain:2: b: no function has this name"]),
        ("a: Null\na -> out 1/3\na -> out 1e-1\n", (), ["a.chain:3: 1e-1: a share is a number or fraction"]),
        ("a: Null\n", ("--cores", "0"), ['nf-server: --cores: "0" is not a whole number from 1 to 32']),
        ("a: Null\n", ("--pin", "0,1"), ['nf-server: --pin: "0,1" is not a list of 1 processors', "hint: such as 2"]),
        ("a: Null\nnsh 1 2 -> a\n", ("more",), ["nf-server: more: arguments are options"]),
        ("a: LB table=12\nnsh 1 2 -> a\n", (), ["LB: table 12 is neither a prime", "a.chain:1: a cannot be created"]),
    ],
)
def test_wrong_input_is_refused(
    server: Path, tmp_path: Path, chain: str, options: tuple[str, ...], faults: list[str]
) -> None:
    """Exit status 2, every fault with its line, nothing written."""
    (tmp_path / "a.chain").write_text(chain)
    command = [str(server), "--chain", "a.chain", "--link", "a.link", "--report", "a.json", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (2, "")
    for fault in faults:
        assert fault in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.chain"]


def test_what_is_missing_is_named(server: Path, tmp_path: Path) -> None:
    """Each option that is needed; --help lists them."""
    done = subprocess.run([str(server)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[:3] == [f"nf-server: --{one} is needed" for one in ("chain", "link", "report")]
    helped = subprocess.run([str(server), "--help"], capture_output=True, text=True, check=False)
    assert helped.returncode == 0 and all(f"--{one}" in helped.stdout for one in ("chain", "link", "report", "cores"))


def test_tables_are_read_beside_the_forwarding_thread_and_orders_are_answered_in_turn(
    server: Path, tmp_path: Path
) -> None:
    """On any processor, in another folder than that of the process; who ends the process does not wait for them."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor has no other beside it")
    chain = 'acl: ACL file="a.filters"\nnsh 1 255 -> acl\nacl -> nsh 1 254\n'
    (tmp_path / "next").mkdir()
    for folder, filters in ((tmp_path, 1), (tmp_path / "next", 20_000)):
        (folder / "server.chain").write_text(chain)
        text = "".join(f"deny udp 10.{at >> 8}.{at & 255}.0/24 any {at + 1}\n" for at in range(filters))
        (folder / "a.filters").write_text(text)
    processor = min(os.sched_getaffinity(0))
    ends = ("--chain", "server.chain", "--link", "a.link", "--report", "a.json", "--pin", str(processor))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    frame = udp_packet(ports=(4000, 99))
    with (
        subprocess.Popen([server, *ends, "--control"], cwd=tmp_path, text=True, bufsize=1, **pipes) as process,
        Wire(tmp_path / "a.link") as wire,
    ):
        assert process.stdin and process.stdout and process.stderr
        assert process.stdout.readline() == "ready\n"
        threads = Path(f"/proc/{process.pid}/task")
        before = set(threads.iterdir())
        process.stdin.write("prepare\nprepare\nreport\nswap\n")
        while not (added := set(threads.iterdir()) - before):
            assert process.poll() is None
        [thread] = added
        of_main, beside = processors(threads / str(process.pid)), [str(processor)]
        while beside == of_main:  # it has those of the main thread until it has chosen its own; ends without a status
            beside = processors(thread)
        assert of_main == [str(processor)] and beside
        assert wire.send(PACKET, labelled(1, 255, frame)) and label_of(wire.wait().data) == (1, 254)
        assert [process.stdout.readline() for _ in range(4)] == ["done\n"] * 4
        process.stdin.write("prepare\n")
        time.sleep(0.05)
        process.terminate()
        assert process.wait(10) == 130
        assert process.stderr.read() == ""
    report = json.loads((tmp_path / "a.json").read_text())
    assert [function["entered"] for function in report["functions"]] == [1]


def processors(thread: Path) -> list[str]:
    """Those on which the thread may run; nothing if it has ended."""
    try:
        return re.findall(r"Cpus_allowed_list:\s+(.*)", (thread / "status").read_text())
    except OSError:
        return []


def test_tables_that_cannot_be_read_are_refused_with_a_reason(server: Path, tmp_path: Path) -> None:
    """Each order gets its own answer, and the server goes on."""
    (tmp_path / "a.chain").write_text("tag: Tunnel vlan=10\nnsh 1 255 -> tag\ntag -> nsh 1 254\n")
    ends = ("--chain", "a.chain", "--link", "a.link", "--report", "a.json", "--control")
    with subprocess.Popen(
        [server, *ends], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        with Wire(tmp_path / "a.link") as wire:
            assert process.stdin and process.stdout and process.stdout.readline() == "ready\n"
            process.stdin.write("prepare\nswap\nreport\n")
            process.stdin.flush()
            assert [process.stdout.readline() for _ in range(3)] == ["failed\n", "failed\n", "done\n"]
            assert wire.send(END)
        assert process.communicate(timeout=20)[1] == "next/server.chain: No such file or directory\n"
