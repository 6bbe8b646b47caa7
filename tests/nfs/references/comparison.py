"""Compares what nf-run makes of a capture with what a reference states."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tests.nfs.references.nf_run import NfRun, read_frames
from tests.nfs.references.reference import Reference
from tests.nfs.references.traffic import Sent

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many packets a function got, what it did otherwise than its reference, and how long both took."""

    packets: int
    left: int
    disagreements: int
    shown: list[str]
    nf_run_s: float
    reference_s: float


class OfTime:
    """The frames of a capture by their time, which grows."""

    def __init__(self, path: Path) -> None:
        self.frames: Iterator[tuple[int, bytes]] = read_frames(path)
        self.next = next(self.frames, None)
        self.read = 0

    def at(self, time_us: int) -> list[bytes]:
        """Those up to a time that were not read yet."""
        found = []
        while self.next is not None and self.next[0] <= time_us:
            found.append(self.next[1])
            self.next = next(self.frames, None)
        self.read += len(found)
        return found


def compare(reference: Reference, program: Path, seed: int, n: int) -> Comparison:
    """Give `n` frames to the function and to its reference."""
    run = NfRun(program, reference.nf, reference.settings, reference.folder, reference.chain)
    sent = list(reference.traffic(seed, n, run))
    begin = time.perf_counter()
    left = run(sent, "compared")
    nf_run_s = time.perf_counter() - begin
    begin = time.process_time()
    ends = OfTime(left.out), OfTime(left.back)
    faults = 0
    shown: list[str] = []
    for number, burst in bursts(sent):
        found = reference.judge(burst, ends[0].at(burst[0].time_us), ends[1].at(burst[0].time_us))
        faults += len(found)
        if len(shown) < SHOWN:
            shown += [f"packets {number} to {number + len(burst) - 1}: {fault}" for fault in found]
    for end, name in zip(ends, ("out", "back"), strict=True):
        late = end.at(1 << 62)
        faults += len(late)
        shown += [f"{name}: {frame.hex()} after all others" for frame in late[:SHOWN]]
    wrong = differing_counters(reference, left.counters()) + reference.finish()
    if left.report["received"] != len(sent):
        wrong.append(f"nf-run received {left.report['received']} of {len(sent)} packets")
    return Comparison(
        packets=len(sent),
        left=ends[0].read + ends[1].read,
        disagreements=faults + len(wrong),
        shown=wrong + shown,
        nf_run_s=nf_run_s,
        reference_s=time.process_time() - begin,
    )


def bursts(sent: list[Sent]) -> Iterator[tuple[int, list[Sent]]]:
    """Frames of one time and side, and the number of the first one, in the order in which nf-run takes them."""
    number = 0
    for _, group in groupby(sent, key=lambda one: (one.time_us, one.side)):
        burst = list(group)
        yield number, burst
        number += len(burst)


def differing_counters(reference: Reference, got: dict[str, int]) -> list[str]:
    """A line for each counter that is not what the reference states."""
    wrong = []
    for name, expected in reference.counters().items():
        least, most = expected if isinstance(expected, tuple) else (expected, expected)
        if not least <= got[name] <= most:
            wrong.append(f"counter {name}: {got[name]}, expected {expected}")
    return wrong
