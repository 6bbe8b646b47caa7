"""Cycles per packet of a generated program of the switch, beside one for the same chain that is written by hand."""

import io
import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from benches.bench import register
from placer.rack.chain import Chain, ChainEdge, ChainNf, Slo
from placer.rack.compiler.compile import CompiledRack, compile_rack
from placer.rack.compiler.routing import Label
from placer.rack.compiler.switch.headers import NSH_BASE, NSH_TYPE
from placer.rack.compiler.swx.spec import entries_text, spec_text
from placer.rack.files.plan_file import PlanFile
from placer.rack.rack import CoreCost, NfCosts, Rack, Server, Switch
from placer.rack.replanning.moves import PlacedNf
from profiles import InputError

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "nfs" / "rack" / "nf-switch-bench"
BY_HAND = ROOT / "nfs" / "rack" / "bench" / "edge.spec"
NFS = {"ACL": "switch", "Monitor": "s0", "LB": "switch", "IPv4Fwd": "switch"}
"""Where the NFs of the chain run, in order."""
TABLES = {"edge__acl_rules": "acl", "edge__lb_backends": "backends", "edge__ipv4fwd_routes": "routes"}
"""What the hand-written program calls the tables of the generated one; it needs no table for one label."""
FLOWS = 1000
TCP, UDP = 6, 17
MACS = bytes.fromhex("020000000a01020000000b02")
ROUNDS = 2001


@register("metacompiler-switch")
def run(rounds: int = ROUNDS) -> pd.DataFrame:
    """Per packets in the pipeline at a time: cycles of both, and their ratio, with quartiles; empty if not built. The
    programs are sent the same packets first, and must do the same with each. Raises `InputError` when they do not, or
    cannot be measured."""
    if not PROGRAM.exists():
        print("metacompiler-switch: nf-switch-bench is not built; `make deps nfs` builds it", file=sys.stderr)
        return pd.DataFrame()
    rack = edge_rack()
    with TemporaryDirectory() as folder:
        write_programs(rack, Path(folder))
        return pd.concat([_measured(Path(folder), in_flight, rounds) for in_flight in (16, 1)])


def edge_rack() -> CompiledRack:
    """The chain ACL -> Monitor -> LB -> IPv4Fwd, with Monitor on a server."""
    names = list(NFS)
    chain = Chain(
        "edge",
        1500,
        Slo(Fraction(1), Fraction(100_000)),
        tuple(ChainNf(name.lower(), name) for name in names),
        tuple(ChainEdge(at, at + 1, Fraction(1)) for at in range(len(names) - 1)),
    )
    costs = {name: NfCosts(CoreCost(Fraction(100)), None, 1) for name in names}
    rack = Rack(Switch(), (Server("s0", 16, Fraction(2000), Fraction(40_000)),), Fraction(6), costs)
    places = {name.lower(): PlacedNf(name, place) for name, place in NFS.items()}
    return compile_rack(PlanFile((chain,), rack, {"edge": places}), "edge")


def write_programs(rack: CompiledRack, folder: Path) -> None:
    """Write both programs, their entries, and packets for them."""
    assert rack.switch is not None
    entries = entries_text(rack.switch)
    (folder / "generated.spec").write_text(spec_text(rack.switch), encoding="utf-8")
    (folder / "generated.entries").write_text(entries, encoding="utf-8")
    (folder / "by-hand.spec").write_text(BY_HAND.read_text(encoding="utf-8"), encoding="utf-8")
    rows = [line.split(" ", 1) for line in entries.splitlines()]
    text = "".join(f"{TABLES[table]} {rest}\n" for table, rest in rows if table in TABLES)
    (folder / "by-hand.entries").write_text(text, encoding="utf-8")
    back = next(label for nf, label in rack.routing.labels.items() if rack.routing.graph.nfs[nf].kind == "LB")
    frames = list(_frames())
    write_capture(folder / "in.pcap", [*frames, *(_labelled(frame, back) for frame in frames)])


def _frames() -> Iterator[bytes]:
    """UDP and TCP of random flows; one packet in 16 has a VLAN tag, or is a fragment."""
    rng = random.Random(1)
    for at in range(FLOWS):
        protocol = TCP if at % 3 == 0 else UDP
        tag = struct.pack("!HH", 0x8100, rng.randrange(4096)) if at % 16 == 1 else b""
        fragment = rng.choice((0x2000, 0x00B9)) if at % 16 == 2 else 0
        ports = rng.randrange(1024, 65536), rng.choice((53, 80, 443, rng.randrange(65536)))
        segment = _segment(protocol, ports, rng.randbytes(6 + rng.randrange(200)))
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), at, fragment, 64, protocol, 0)
        head += struct.pack("!II", 0x0A000000 | rng.getrandbits(24), rng.choice((0xC6120000, 0xC0000200)) | at % 256)
        checksum = -sum(struct.unpack("!10H", head)) % 0xFFFF  # RFC 1071
        head = head[:10] + struct.pack("!H", checksum) + head[12:]
        yield MACS + tag + struct.pack("!H", 0x0800) + head + segment


def _segment(protocol: int, ports: tuple[int, int], payload: bytes) -> bytes:
    """Its checksum is any number: programs only update it."""
    if protocol == UDP:
        return struct.pack("!HHHH", *ports, 8 + len(payload), 1 + sum(payload) % 0xFFFE) + payload
    return struct.pack("!HHIIBBHHH", *ports, 1, 2, 0x50, 0x18, 8192, sum(payload) % 0xFFFF, 0) + payload


def _labelled(frame: bytes, label: Label) -> bytes:
    return frame[:12] + struct.pack("!HII", NSH_TYPE, NSH_BASE, label.word) + frame


def write_capture(path: Path, frames: list[bytes]) -> None:
    """Write frames as a capture (pcap), a microsecond apart."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for at, frame in enumerate(frames):
            file.write(struct.pack("<IIII", 0, at, len(frame), len(frame)) + frame)


def _measured(folder: Path, in_flight: int, rounds: int) -> pd.DataFrame:
    programs = [f"{name}.spec,{name}.entries" for name in ("generated", "by-hand")]
    arguments = ["--in", "in.pcap", *(word for one in programs for word in ("--program", one))]
    arguments += ["--in-flight", str(in_flight), "--rounds", str(rounds)]
    ended = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise InputError.of("nf-switch-bench", ended.stderr.strip())
    return pd.read_csv(io.StringIO(ended.stdout))
