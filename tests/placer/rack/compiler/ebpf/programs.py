"""Programs of SmartNICs for tests: one NF alone, and random ones, with what they should do to frames."""

import ctypes
import os
import random
import shutil
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

from placer.rack.compiler.ebpf.functions import NIC_FUNCTIONS
from placer.rack.compiler.ebpf.limits import CLANG
from placer.rack.compiler.ebpf.program import NicEdge, NicEntry, NicExit, NicPassing, NicProgram, NicSide, NicStep
from placer.rack.compiler.ebpf.source import hash_limits
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.rack.compiler.routing import Label
from placer.rack.compiler.traffic.entries import parse
from tests.placer.rack.compiler.library.frames import random_frames
from tests.reference.interpret import model_of
from tests.reference.nfs.headers import read_headers, split_value
from tests.reference.nfs.model import FunctionModel
from tests.reference.peel import fields_of, holds

IN, OUT = Label(1, 255), Label(1, 250)
TX, PASS, DROP = 3, 2, 1
ACTIONS = {NicSide.SWITCH: TX, NicSide.HOST: PASS}
LEAST_BYTES = 14
MATCHES = (
    "udp",
    "tcp port 80",
    "src net 10.0.0.0/8",
    "vlan",
    "vlan 7 or icmp",
    "not ip",
    "dst portrange 1-1023",
    "any",
)
KINDS: tuple[tuple[str, dict[str, float]], ...] = (
    ("ACL", {"rules": 8, "seed": 3}),
    ("Detunnel", {}),
    ("IPv4Fwd", {"routes": 8}),
    ("LB", {"backends": 5, "table": 16, "seed": 9}),
    ("Match", {}),
    ("Tunnel", {"vlan": 7}),
    ("Tunnel", {"vlan": 300}),
)


class Handled(NamedTuple):
    """What becomes of a frame: the action, and the frame if it is not dropped."""

    action: int
    frame: bytes


def labelled(frame: bytes, label: Label | None) -> bytes:
    """A frame behind a network service header, byte by byte as RFC 8300 says; without one for no label."""
    if label is None:
        return frame
    return frame[:12] + bytes.fromhex("894f 0fc2 02 03") + label.word.to_bytes(4, "big") + frame


def frames(seed: int, n: int) -> list[bytes]:
    """Random frames and strays that are at least an Ethernet header long."""
    return [frame for frame in random_frames(seed, n) if len(frame) >= LEAST_BYTES]


def instance(kind: str, given: Mapping[str, float]) -> tuple[Any, FunctionModel]:
    """An NF on the card, and its model."""
    parameters = NF_KINDS[kind].completed(given, kind)
    return NIC_FUNCTIONS[kind](parameters, NF_KINDS[kind].data(parameters)), model_of(kind, given, kind)


def alone(kind: str, given: Mapping[str, float]) -> NicProgram:
    """A program of one NF, from the label `IN` to `OUT` on the switch."""
    function, _ = instance(kind, given)
    step = NicStep(f"c0/{kind}", function, (NicEdge(NicExit(NicSide.SWITCH, OUT)),))
    return NicProgram("n0", (step,), (NicEntry(IN, 0),))


class RandomProgram:
    """A program of several steps, with branches and merges, and a model of it."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.models: list[FunctionModel] = []
        steps = []
        count = rng.randrange(2, 6)
        exits = [NicExit(rng.choice(list(NicSide)), rng.choice((Label(9, 200 + at), None))) for at in range(3)]
        for at in range(count):
            function, model = instance(*rng.choice(KINDS))
            self.models.append(model)
            steps.append(NicStep(f"c0/f{at}", function, _random_edges(rng, at, count, exits)))
        entries = tuple(NicEntry(Label(at + 1, 255), at) for at in range(count) if at == 0 or rng.random() < 0.4)
        passing = (NicPassing(Label(99, 1), NicSide.HOST), NicPassing(None, NicSide.SWITCH))
        self.program = NicProgram(f"n{seed}", tuple(steps), entries, passing)
        self.entered, self.sent = [0] * count, [0] * count
        self.unmatched = self.unknown = 0

    def packets(self, seed: int, n: int) -> list[bytes]:
        """Frames with labels that the program knows, without one, and with others."""
        rng = random.Random(seed)
        labels = [*(entry.label for entry in self.program.entries * 3), Label(99, 1), Label(77, 7), None]
        return [labelled(frame, rng.choice(labels)) for frame in frames(seed, n)]

    def process(self, packet: bytes) -> Handled:
        """What should become of a packet."""
        label = Label(0, 0)
        if len(packet) >= 36 and packet[12:18] == bytes.fromhex("894f 0fc2 02 03"):
            word = int.from_bytes(packet[18:22], "big")
            label = Label(word >> 8, word & 0xFF)
        for entry in self.program.entries:
            if entry.label == label:
                return self._run(entry.step, packet[22:])
        if label == Label(99, 1):
            return Handled(PASS, packet)
        if packet[12:14] != b"\x89\x4f":
            return Handled(TX, packet)
        self.unknown += 1
        return Handled(DROP, b"")

    def _run(self, at: int, frame: bytes) -> Handled:
        self.entered[at] += 1
        sent = self.models[at].process(frame, 0)
        if not sent:
            return Handled(DROP, b"")
        self.sent[at] += 1
        to = _way(self.program.steps[at], sent[0])
        if to is None:
            self.unmatched += 1
            return Handled(DROP, b"")
        if isinstance(to, int):
            return self._run(to, sent[0])
        return Handled(ACTIONS[to.to], labelled(sent[0], to.label))

    def counters(self) -> list[int]:
        """The counters that the program should have."""
        pairs = [number for pair in zip(self.entered, self.sent, strict=True) for number in pair]
        return [*pairs, self.unknown, self.unmatched, 0]


def _random_edges(rng: random.Random, at: int, count: int, exits: Sequence[NicExit]) -> tuple[NicEdge, ...]:
    def target() -> int | NicExit:
        return rng.choice([*range(at + 1, count), rng.choice(exits)])

    matched = [NicEdge(target(), parse(rng.choice(MATCHES))) for _ in range(rng.choice((0, 0, 1, 2)))]
    shared = [NicEdge(target(), share=Fraction(rng.randrange(1, 9), 7)) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    return (*matched, *shared) or (NicEdge(target()),)


def _way(step: NicStep, frame: bytes) -> int | NicExit | None:
    """The first edge whose match holds; else one by the split hash."""
    fields, headers = fields_of(frame), read_headers(frame)
    for edge in step.edges:
        if edge.match is not None and holds(edge.match, fields):
            return edge.to
    shared = [edge for edge in step.edges if edge.match is None]
    value = split_value(frame, headers, _salt(step.name))
    return next((edge.to for edge, limit in zip(shared, hash_limits(shared), strict=True) if value < limit), None)


def _salt(name: str) -> int:
    """CRC-32, bit by bit."""
    value = 0xFFFFFFFF
    for byte in name.encode():
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


LIBRARY = "libbpf.so.1"
MOST_BYTES = 4096


class TestRun(ctypes.Structure):
    """`struct bpf_test_run_opts`."""

    __test__ = False
    _fields_ = [
        ("sz", ctypes.c_size_t),
        *((name, ctypes.c_void_p) for name in ("data_in", "data_out")),
        *((name, ctypes.c_uint32) for name in ("data_size_in", "data_size_out")),
        *((name, ctypes.c_void_p) for name in ("ctx_in", "ctx_out")),
        *((name, ctypes.c_uint32) for name in ("ctx_size_in", "ctx_size_out", "retval")),
        ("repeat", ctypes.c_int),
        *((name, ctypes.c_uint32) for name in ("duration", "flags", "cpu", "batch_size")),
    ]


def require_clang() -> None:
    """Skip the test without clang."""
    if shutil.which(CLANG) is None:
        pytest.skip("clang not installed: `make deps` installs it")


def require_kernel() -> ctypes.CDLL:
    """libbpf; skip the test without it, or without the right to load programs."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        pytest.skip(f"{LIBRARY} not installed: `make deps` installs it")
    if os.geteuid() != 0:
        pytest.skip("the kernel loads BPF programs for root only")
    library.bpf_object__open_mem.restype = ctypes.c_void_p
    for name in ("bpf_object__next_program", "bpf_object__next_map"):
        getattr(library, name).restype = ctypes.c_void_p
    library.bpf_map__name.restype = ctypes.c_char_p
    return library


class KernelProgram:
    """A program in the kernel."""

    def __init__(self, data: bytes) -> None:
        self.library = library = require_kernel()
        silent = library.libbpf_set_print
        silent(None)
        self.object = ctypes.c_void_p(library.bpf_object__open_mem(data, ctypes.c_size_t(len(data)), None))
        assert self.object
        assert library.bpf_object__load(self.object) == 0, "the kernel refuses the program"
        program = ctypes.c_void_p(library.bpf_object__next_program(self.object, None))
        self.program = library.bpf_program__fd(program)
        self.map, size = self._counters()
        self.values = (ctypes.c_uint64 * (size // 8))()

    def _counters(self) -> tuple[int, int]:
        place = None
        while place := self.library.bpf_object__next_map(self.object, ctypes.c_void_p(place)):
            found = ctypes.c_void_p(place)
            if self.library.bpf_map__name(found).endswith(b".bss"):
                return self.library.bpf_map__fd(found), self.library.bpf_map__value_size(found)
        raise AssertionError("no counters")

    def run(self, packet: bytes) -> tuple[int, bytes]:
        """The action for a packet, and the packet as the program leaves it."""
        out = ctypes.create_string_buffer(MOST_BYTES)
        given = ctypes.create_string_buffer(packet, len(packet))
        options = TestRun(
            ctypes.sizeof(TestRun), ctypes.addressof(given), ctypes.addressof(out), len(packet), MOST_BYTES
        )
        options.repeat = 1
        assert self.library.bpf_prog_test_run_opts(self.program, ctypes.byref(options)) == 0
        return options.retval, out.raw[: options.data_size_out]

    def counters(self) -> list[int]:
        key = ctypes.c_uint32(0)
        assert self.library.bpf_map_lookup_elem(self.map, ctypes.byref(key), ctypes.byref(self.values)) == 0
        return list(self.values)

    def close(self) -> None:
        """Take the program out of the kernel."""
        self.library.bpf_object__close(self.object)
