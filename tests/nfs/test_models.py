"""Each function in C against its model in Python, packet by packet: 1,000 here, a million where marked slow."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.nfs.captures import write_capture
from tests.nfs.comparison import PROGRAM, FramesByTime, compare, model_of
from tests.reference.nfs import nf_models
from tests.reference.nfs.headers import internet_checksum, ipv4_header, read_headers, update_checksum
from tests.reference.nfs.lb import SipHash
from tests.reference.nfs.model import Bounds, FirstRun, FunctionModel, Left
from tests.reference.nfs.scans import find_matches, rules
from tests.reference.nfs.traffic import Mix, Sent, mixed_frames

MILLION = 1_000_000

VARIANTS = [
    pytest.param(nf, variant, id=f"{nf}-{variant}")
    for nf, kind in nf_models().items()
    for variant in range(len(kind.variants))
]


@pytest.fixture(scope="module")
def nf_run() -> Path:
    """The program of the normal build."""
    if not PROGRAM.exists():
        pytest.skip("nf-run is not built, so that no function is compared with its model: `make nfs` builds it")
    return PROGRAM


def agree(program: Path, nf: str, variant: int, n: int, folder: Path) -> None:
    """Fail with the first disagreements, if there are any."""
    result = compare(model_of(nf, variant, folder), program, folder, seed=variant + 1, n=n)
    print(f"{nf}: {result.packets} packets, nf-run {result.nf_run_s:.1f} s, model {result.model_s:.1f} s")
    assert result.packets == n
    assert result.disagreements == 0, "\n".join(line[:500] for line in result.shown)


@pytest.mark.parametrize(("nf", "variant"), VARIANTS)
def test_a_function_agrees_with_its_model(nf_run: Path, tmp_path: Path, nf: str, variant: int) -> None:
    """Of 2,000 mixed packets every one leaves as the model states, and the counters are its own."""
    agree(nf_run, nf, variant, 1000, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("nf", nf_models())
def test_a_million_packets_agree(nf_run: Path, tmp_path: Path, nf: str) -> None:
    """So it is for a million: `pytest -m slow tests/nfs/test_models.py -k NAT -s` shows packets and seconds."""
    agree(nf_run, nf, 0, MILLION, tmp_path)


def test_every_function_has_a_model(nf_run: Path) -> None:
    """A function that is added without a model is noticed."""
    done = subprocess.run([nf_run, "--list"], capture_output=True, text=True, check=True)
    assert {line.split()[0] for line in done.stdout.splitlines()} <= set(nf_models())


class ForgetfulModel(FunctionModel):
    """A wrong model of Null: it expects a packet in a hundred to be lost, and counts it nevertheless."""

    def prepare(self) -> None:
        self.seen = 0

    def take(self, sent: Sent) -> Left:
        self.seen += 1
        return [sent.frame] if self.seen % 100 else [], []

    def counters(self) -> dict[str, int | Bounds]:
        return {"passed": (self.seen - 5, self.seen - 1)}

    def traffic(self, seed: int, n: int, run: FirstRun) -> Iterator[Sent]:
        return mixed_frames(seed, n, Mix(odd=0))


def test_disagreements_are_found(nf_run: Path, tmp_path: Path) -> None:
    """Each packet that leaves otherwise counts, and each counter out of its bounds."""
    result = compare(ForgetfulModel({}, {}), nf_run, tmp_path, 1, 1000, nf="Null")
    assert (result.packets, result.left, result.disagreements) == (1000, 1000, 11)
    assert result.shown[0] == "counter passed: 1000, expected (995, 999)"
    assert "not expected" in result.shown[1]


def test_frames_are_read_by_time(tmp_path: Path) -> None:
    """Frames of a capture come out up to a time, each once."""
    left = FramesByTime(write_capture(tmp_path / "a.pcap", [b"a", b"bb", b"ccc"], gap_us=10))
    assert left.until(999_999) == []
    assert left.until(1_000_010) == [b"a", b"bb"]
    assert left.until(1 << 40) == [b"ccc"]


def test_traffic_is_of_its_seed() -> None:
    """The same seed gives the same frames; bursts are of one side and grow in time."""
    first, again = (list(mixed_frames(3, 3000, Mix())) for _ in range(2))
    assert first == again != list(mixed_frames(4, 3000, Mix()))
    assert {read_headers(sent.frame).kind for sent in first} == {"ipv4", "ipv6", "arp", "other", "malformed"}
    assert [sent.time_us for sent in first] == sorted(sent.time_us for sent in first)


def test_checksums_are_those_of_the_rfcs() -> None:
    """The example of RFC 1071, section 3, and that of RFC 1624, section 4, whose result is not negative zero."""
    assert internet_checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0x220D
    assert update_checksum(0xDD2F, bytes.fromhex("5555"), bytes.fromhex("3285")) == 0x0000
    assert internet_checksum(ipv4_header(b"\x0a\0\0\1", b"\x0a\0\0\2", 17, 8)) == 0


def test_siphash_is_that_of_the_paper() -> None:
    """The test vector of appendix A."""
    siphash = SipHash(0)
    siphash.key = [np.uint64(int.from_bytes(bytes(range(at, at + 8)), "little")) for at in (0, 8)]
    assert siphash(bytes(range(15))) == 0xA129CA6149BE45E5


def test_each_rule_matches_its_witness_alone() -> None:
    """All rules are read, and found by literals and expression as documented."""
    assert len(rules()) >= 76
    assert all([found.name for found in find_matches(rule.witness)] == [rule.name] for rule in rules())
