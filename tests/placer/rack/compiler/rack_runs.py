"""Runs of the programs of racks, by their interpreters or by processes, beside the reference; and what they cover."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import pytest

from placer.rack.compiler.compile import CompiledRack, compile_rack
from placer.rack.compiler.ebpf.limits import compile_source
from placer.rack.compiler.execute import NfCounts
from placer.rack.compiler.routing import Routing
from placer.rack.files.plan_file import PlanFile
from profiles import InputError
from tests.placer.rack.compiler.rack_packets import timed
from tests.reference.compare import RackOutcome, ReferenceRun
from tests.reference.emulate import Emulation, RackTexts, emulated

ETHERNET, ANY_MASK, SNAPSHOT = 1, 0xFFFFFFFF, 65535


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint), ("instructions", ctypes.c_void_p)]


@cache
def _libpcap() -> ctypes.CDLL | None:
    name = ctypes.util.find_library("pcap")
    if name is None:
        return None
    library = ctypes.CDLL(name)
    library.pcap_open_dead.restype = ctypes.c_void_p
    library.pcap_compile.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint32)
    library.bpf_filter.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint)
    return library


def require_libpcap() -> None:
    """Skip the test without libpcap."""
    if _libpcap() is None:
        pytest.skip("libpcap not installed: `make deps` installs it")


@cache
def _filter(text: str) -> _Program:
    library = _libpcap()
    assert library
    program = _Program()
    handle = ctypes.c_void_p(library.pcap_open_dead(ETHERNET, SNAPSHOT))
    assert library.pcap_compile(handle, ctypes.byref(program), text.encode(), 1, ANY_MASK) == 0, text
    library.pcap_close(handle)
    return program


def sorted_by_libpcap(filters: Sequence[str], frame: bytes) -> int | None:
    """The number of the first filter that matches a frame."""
    library = _libpcap()
    assert library
    for at, text in enumerate(filters):
        if library.bpf_filter(_filter(text).instructions, frame, len(frame), len(frame)):
            return at
    return None


def emulated_outcome(rack: CompiledRack, frames: Sequence[bytes], texts: RackTexts | None = None) -> RackOutcome:
    """What the interpreters of the programs of a rack do."""
    return outcome_of(emulated(rack, timed(frames), compile_source, sorted_by_libpcap, texts))


def outcome_of(emulation: Emulation) -> RackOutcome:
    """An emulation as the comparison takes it."""
    entered, sent = emulation.entered, emulation.sent
    counts = {name: NfCounts(entered[name], sent[name], entered[name] - sent[name]) for name in entered}
    return RackOutcome([frame for _, frame in emulation.outputs], counts, emulation.dropped)


@dataclass
class Coverage:
    """What runs of racks covered."""

    pairs: int = 0
    chains: int = 0
    branches: int = 0
    merges: int = 0
    replicated: int = 0
    crossings: int = 0
    packets: int = 0
    idle: int = 0  # NFs that no packet entered
    refused: int = 0  # placements that a device has no room for
    nfs: Counter[tuple[str, str]] = field(default_factory=Counter)
    platforms: Counter[str] = field(default_factory=Counter)

    def add(self, routing: Routing, reference: ReferenceRun) -> None:
        """Count one rack."""
        graph = routing.graph
        self.pairs += 1
        self.chains += len(graph.entries)
        self.branches += sum(nf.branches for nf in graph.nfs)
        self.merges += sum(len(before) > 1 for before in graph.before)
        self.replicated += sum(group.cores > 1 for groups in graph.cores.values() for _, group in groups)
        self.crossings += len(routing.entered)
        self.packets += reference.expected.entered
        self.idle += sum(not counts.entered for counts in reference.expected.counts.values())
        self.nfs.update((nf.kind, nf.place.kind.value) for nf in graph.nfs)
        self.platforms["+".join(sorted({nf.place.kind.value for nf in graph.nfs}))] += 1

    def merge(self, other: Coverage) -> None:
        """Count all that another one counted."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(mine, Counter):
                mine.update(value)
            else:
                setattr(self, name, mine + value)

    def text(self) -> str:
        """The figures, some lines."""
        kinds = sorted({kind for kind, _ in self.nfs})
        devices = sorted({device for _, device in self.nfs})
        shown = [
            f"{kind}: "
            + ", ".join(f"{self.nfs[kind, device]} {device}" for device in devices if self.nfs[kind, device])
            for kind in kinds
        ]
        return "\n".join(
            [
                f"{self.pairs} pairs of chains and placements, {self.refused} refused; {self.chains} chains, "
                f"{sum(self.nfs.values())} NFs ({self.idle} without packets), {self.branches} branches, "
                f"{self.merges} merges, {self.replicated} replicated subgroups, {self.crossings} labels, "
                f"{self.packets} packets",
                *shown,
                ", ".join(f"{count} {name}" for name, count in self.platforms.most_common()),
            ]
        )


def compiled_or_none(plan: PlanFile, coverage: Coverage, *, shares: bool = False) -> CompiledRack | None:
    """The programs of a plan; None, and counted, where a device has no room for its NFs."""
    try:
        return compile_rack(plan, "plan", shares=shares)
    except InputError:
        coverage.refused += 1
        return None
