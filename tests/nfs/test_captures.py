"""Captures that nf-run reads: all link types and times of public traces, compressed or cut; and what it writes."""

import gzip
import json
import struct
import subprocess
from pathlib import Path

import pytest

from tests.nfs.builds import build_tested, require
from tests.nfs.captures import ETHERNET, GLOBAL_HEADER, PACKET_HEADER, read_frames, udp_packet

MICROSECONDS, NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D
RAW, SLL, SLL2 = 101, 113, 276
IPV4 = struct.pack("!H", 0x0800)
SLL_HEADER = struct.pack("!HHH8sH", 4, 1, 6, b"\2\0\0\0\0\7\0\0", 0x0800)
SLL2_HEADER = struct.pack("!HHIHBB8s", 0x0800, 0, 3, 772, 1, 6, b"\2\0\0\0\0\7\0\0")
Stamp = tuple[int, int]


@pytest.fixture(scope="module")
def nf_run() -> Path:
    """The program."""
    require("cc")
    return build_tested("run/nf-run") / "run" / "nf-run"


def capture_of(
    frames: list[bytes],
    stamps: list[Stamp] | None = None,
    magic: int = MICROSECONDS,
    link: int = ETHERNET,
    kept: int = 65535,
) -> bytes:
    """A capture of frames at given seconds and parts, or at 1 s, of which each has at most `kept` bytes."""
    head = GLOBAL_HEADER.pack(magic, 2, 4, 0, 0, kept, link)
    for frame, stamp in zip(frames, stamps or [(1, 0)] * len(frames), strict=True):
        head += PACKET_HEADER.pack(*stamp, len(frame[:kept]), len(frame)) + frame[:kept]
    return head


def passed(nf_run: Path, folder: Path, capture: bytes, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Give a capture to a function; what leaves is in `out.pcap`."""
    (folder / "in.pcap").write_bytes(capture)
    command = [str(nf_run), "--in", "in.pcap", "--out", "out.pcap", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def leaves_as_it_came(nf_run: Path, folder: Path, capture: bytes) -> bool:
    """Whether Null writes the same bytes."""
    done = passed(nf_run, folder, capture, "--nf", "Null")
    return (done.returncode, done.stderr) == (0, "") and (folder / "out.pcap").read_bytes() == capture


@pytest.mark.parametrize(
    ("magic", "stamps"),
    [
        (MICROSECONDS, [(2**31 - 1, 999_999), (2**31, 0), (2**32 - 1, 999_999)]),  # 2038 and 2106
        (NANOSECONDS, [(1, 1), (1, 2), (2**32 - 1, 999_999_999)]),
        (MICROSECONDS, [(9, 5), (7, 3), (8, 0), (0, 0)]),  # times that go back
    ],
)
def test_times_are_kept(nf_run: Path, tmp_path: Path, magic: int, stamps: list[Stamp]) -> None:
    """A capture leaves Null as it came, whenever it was made."""
    frames = [udp_packet(payload=bytes([at])) for at in range(len(stamps))]
    assert leaves_as_it_came(nf_run, tmp_path, capture_of(frames, stamps, magic))


@pytest.mark.parametrize(
    ("seconds", "left"),
    [
        ((100, 100, 98, 99, 100, 101), (100, 101)),  # back by seconds: the clock waits for 100
        ((9000, 9000, 5400, 5401, 5401, 5402), (9000, 5401, 5402)),  # by an hour: it goes on
        ((10, 2**32 - 1, 11, 12, 12), (10, 2**32 - 1, 12)),  # one stamp is wrong
        ((5, 2**32 - 1) * 4400 + (6, 7, 8), (5, 2**32 - 1, 7, 8)),  # they jump
    ],
)
def test_a_limiter_goes_on_where_times_go_back(
    nf_run: Path, tmp_path: Path, seconds: tuple[int, ...], left: tuple[int, ...]
) -> None:
    """It lets one packet a second pass by a clock that neither goes back nor stands still for long."""
    capture = capture_of([udp_packet(payload=b"a")] * len(seconds), [(second, 0) for second in seconds])
    rate = ("--set=rate_mbps=0", "--set=rate_kpps=0.001", "--set=burst_packets=1")
    done = passed(nf_run, tmp_path, capture, "--nf", "Limiter", *rate)
    assert done.returncode == 0, done.stderr
    assert tuple(time_us // 1_000_000 for time_us, _ in read_frames(tmp_path / "out.pcap")) == left


@pytest.mark.parametrize(
    ("link", "header"), [(RAW, b""), (SLL, SLL_HEADER), (SLL2, SLL2_HEADER)], ids=["raw", "SLL", "SLL2"]
)
def test_links_are_read_and_written(nf_run: Path, tmp_path: Path, link: int, header: bytes) -> None:
    """Frames of other links leave Null as they came, and NAT translates them."""
    capture = capture_of([header + udp_packet(payload=b"a")[14:]], link=link)
    assert leaves_as_it_came(nf_run, tmp_path, capture)
    done = passed(nf_run, tmp_path, capture, "--nf", "NAT")
    assert json.loads(done.stdout)["functions"][0]["counters"]["outward"] == 1
    written = (tmp_path / "out.pcap").read_bytes()
    assert len(written) == len(capture)
    assert written[: 40 + len(header)] == capture[: 40 + len(header)]


def test_frames_that_a_link_does_not_have_are_refused(nf_run: Path, tmp_path: Path) -> None:
    """A VLAN tag cannot be written into raw IP: exit status 1, why, and no output."""
    done = passed(nf_run, tmp_path, capture_of([udp_packet()[14:]], link=RAW), "--nf", "Tunnel")
    assert done.returncode == 1
    assert done.stderr == (
        "out.pcap: a frame of type 8100 is none of RAW\nhint: convert the input to Ethernet, or leave the output out\n"
    )
    assert not list(tmp_path.glob("out.pcap*"))


def test_compressed_captures_are_read(nf_run: Path, tmp_path: Path) -> None:
    """gzip is read; where compressed data ends early, nothing is written."""
    capture = capture_of([udp_packet(payload=bytes(100))] * 50)
    done = passed(nf_run, tmp_path, gzip.compress(capture), "--nf", "Null")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.pcap").read_bytes() == capture
    (tmp_path / "out.pcap").unlink()
    done = passed(nf_run, tmp_path, gzip.compress(capture)[:-12], "--nf", "Null")
    assert done.returncode == 2
    assert "hint: the file is damaged" in done.stderr
    assert not list(tmp_path.glob("out.pcap*"))


def test_cut_packets_are_judged_by_their_headers(nf_run: Path, tmp_path: Path) -> None:
    """With a snap length, headers are read and only captured bytes are written; cut headers are malformed."""
    frames = [udp_packet(payload=b"p" * 500), udp_packet(payload=b"q" * 4)]
    capture = capture_of(frames, kept=60)
    assert leaves_as_it_came(nf_run, tmp_path, capture)
    done = passed(nf_run, tmp_path, capture, "--nf", "NAT")
    assert json.loads(done.stdout)["functions"][0]["counters"]["outward"] == 2
    written = (tmp_path / "out.pcap").read_bytes()
    assert len(written) == len(capture)
    assert written[32:40] == capture[32:40] == struct.pack("<II", 60, 542)
    assert written[40 + 42 : 40 + 60] == b"p" * 18
    done = passed(nf_run, tmp_path, capture_of(frames, kept=40), "--nf", "NAT")
    assert json.loads(done.stdout)["functions"][0]["counters"]["malformed"] == 2
    assert leaves_as_it_came(nf_run, tmp_path, capture_of(frames, kept=40))


def test_cut_packets_may_be_larger_than_a_buffer(nf_run: Path, tmp_path: Path) -> None:
    """5,000 bytes of a packet of 9,000 leave Null as they came."""
    assert leaves_as_it_came(nf_run, tmp_path, capture_of([udp_packet(payload=bytes(8958))], kept=5000))


def test_the_snap_length_is_that_of_what_leaves(nf_run: Path, tmp_path: Path) -> None:
    """Readers cut packets above it, and a tunnel makes packets larger."""
    passed(nf_run, tmp_path, capture_of([udp_packet(payload=bytes(18))], kept=60), "--nf", "IPTunnel")
    written = (tmp_path / "out.pcap").read_bytes()
    assert struct.unpack_from("<I", written, 16) == struct.unpack_from("<I", written, 32) == (80,)


@pytest.mark.parametrize("nf", ["PacketFilter", "UrlFilter", "NIDS", "Dedup", "Encrypt"])
def test_functions_that_read_payloads_refuse_cut_packets(nf_run: Path, tmp_path: Path, nf: str) -> None:
    """What is not known of a packet is not guessed: each cut one is named."""
    done = passed(nf_run, tmp_path, capture_of([udp_packet(payload=bytes(100))] * 2, kept=60), "--nf", nf)
    assert done.returncode == 2
    assert done.stderr == (
        f"in.pcap: packet 1: 60 of 142 bytes were captured, and {nf} reads all\n"
        f"in.pcap: packet 2: 60 of 142 bytes were captured, and {nf} reads all\n"
        "hint: capture whole packets (tcpdump -s 0)\n"
    )


def test_times_of_no_capture_are_refused(nf_run: Path, tmp_path: Path) -> None:
    """A second has no million and first microsecond."""
    done = passed(nf_run, tmp_path, capture_of([udp_packet()], [(1, 1_000_000)]), "--nf", "Null")
    assert done.returncode == 2
    assert "packet 1: its time is no time of a capture: 1 s and 1000000 parts" in done.stderr


def test_fragments_that_complete_a_datagram_leave(nf_run: Path, tmp_path: Path) -> None:
    """With --each, the fragment that completes its datagram is out with it, and those before it were held."""
    whole = udp_packet(payload=bytes(range(100)), identification=9)
    fragments = []
    for begin, end, field in ((0, 48, 0x2000), (48, 108, 6)):
        header = bytearray(whole[14:34])
        header[2:4], header[6:8] = (20 + end - begin).to_bytes(2, "big"), field.to_bytes(2, "big")
        header[10:12] = b"\0\0"
        total = sum(int.from_bytes(header[at : at + 2], "big") for at in range(0, 20, 2))
        header[10:12] = (0xFFFF - (total + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
        fragments.append(whole[:14] + bytes(header) + whole[34 + begin : 34 + end])
    for order in (fragments, fragments[::-1]):
        done = passed(nf_run, tmp_path, capture_of(order), "--nf", "NAT", "--each")
        first, second, report = map(json.loads, done.stdout.splitlines())
        assert (first["fate"], second["fate"], second["out"], report["out"]) == ("held", "out", 2, 2)
