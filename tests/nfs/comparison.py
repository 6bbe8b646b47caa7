"""Compares what functions in C make of captures with what their models state: `python -m tests.nfs.comparison`."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from filecmp import cmp
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.nfs.captures import read_frames, write_frames
from tests.reference.nfs import nf_models
from tests.reference.nfs.model import FunctionModel
from tests.reference.nfs.traffic import Sent

BUILD = Path(__file__).resolve().parents[2] / "build"
PROGRAM = BUILD / "nfs" / "run" / "nf-run"
SANITIZED = BUILD / "nfs-sanitized-fuzz" / "run" / "nf-run"
MEMORY_MB = 2048
SHOWN = 20


@dataclass(frozen=True, slots=True)
class NfRunResult:
    """What nf-run wrote: its report, and the captures of both ends."""

    report: dict[str, Any]
    out: Path
    back: Path

    def counters(self) -> dict[str, int]:
        """Those of the first function."""
        found: dict[str, int] = self.report["functions"][0]["counters"]
        return found


@dataclass(frozen=True, slots=True)
class NfRun:
    """The program nf-run with one function, or with a chain that begins with it."""

    program: Path
    nf: str
    settings: dict[str, str]
    folder: Path
    chain: str = ""

    def __call__(self, sent: Iterable[Sent], name: str) -> NfRunResult:
        """Give frames to the function; files in the folder begin with `name`."""
        ends = [self.folder / f"{name}-{side}.pcap" for side in ("inside", "outside")]
        write_ends(ends, list(sent))
        out, back = (self.folder / f"{name}-{end}.pcap" for end in ("out", "back"))
        command = [self.program, *self._function(), "--memory-mb", MEMORY_MB]
        command += ["--in", ends[0], "--outside", ends[1], "--out", out, "--back", back]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"nf-run: exit status {done.returncode}: {done.stderr}")
        return NfRunResult(json.loads(done.stdout), out, back)

    def first(self, sent: Iterable[Sent]) -> Iterator[tuple[int, bytes]]:
        """What leaves outside, with its time: for traffic that depends on what the function chooses."""
        return read_frames(self(sent, "first").out)

    def _function(self) -> list[object]:
        if not self.chain:
            return ["--nf", self.nf, *(f"--set={key}={value}" for key, value in self.settings.items())]
        quoted = " ".join(f'"{key}={value}"' for key, value in self.settings.items())
        path = self.folder / "chain"
        path.write_text(self.chain.format(settings=quoted), encoding="utf-8")
        return ["--chain", path]


def write_ends(ends: Sequence[Path], sent: Sequence[Sent]) -> None:
    """Write frames to the capture of their side."""
    for side, path in enumerate(ends):
        write_frames(path, ((arrival.time_us, arrival.frame) for arrival in sent if arrival.side == side))


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many packets a function got, what it did otherwise than its model, and how long both took."""

    packets: int
    left: int
    disagreements: int
    shown: list[str]
    nf_run_s: float
    model_s: float
    sent: list[Sent]
    result: NfRunResult


class FramesByTime:
    """The frames of a capture by their time, which grows."""

    def __init__(self, path: Path) -> None:
        self.frames: Iterator[tuple[int, bytes]] = read_frames(path)
        self.next = next(self.frames, None)
        self.read = 0

    def until(self, time_us: int) -> list[bytes]:
        """Those up to a time that were not read yet."""
        found = []
        while self.next is not None and self.next[0] <= time_us:
            found.append(self.next[1])
            self.next = next(self.frames, None)
        self.read += len(found)
        return found


def model_of(nf: str, variant: int, folder: Path) -> FunctionModel:
    """The model of a function with one of the settings to compare, whose files are written to a folder."""
    kind = nf_models()[nf]
    files = {str(folder / name): text for name, text in kind.made_files().items()}
    for path, text in files.items():
        Path(path).write_text(text, encoding="utf-8")
    return kind({key: value.replace("{folder}", str(folder)) for key, value in kind.variants[variant].items()}, files)


def does_the_same(first: Comparison, model: FunctionModel, program: Path, folder: Path) -> Comparison | None:
    """What one program did with its frames, if another one does the same with them: so what the model said holds."""
    texts, begin = texts_of(folder), time.perf_counter()
    again = NfRun(program, model.nf, dict(model.settings), folder, model.chain)(first.sent, "again")
    nf_run_s = time.perf_counter() - begin
    ends = zip((first.result.out, first.result.back), (again.out, again.back), strict=True)
    same = all(cmp(*pair, shallow=False) for pair in ends) and first.result.counters() == again.counters()
    return replace(first, nf_run_s=nf_run_s, model_s=0.0) if same and texts == texts_of(folder) else None


def texts_of(folder: Path) -> dict[Path, bytes]:
    """What a folder has besides captures, such as reports of a function."""
    return {path: path.read_bytes() for path in folder.iterdir() if path.suffix != ".pcap"}


def compare(model: FunctionModel, program: Path, folder: Path, seed: int, n: int, nf: str = "") -> Comparison:
    """Give `n` frames to the function of a model, or to another one, and to the model."""
    run = NfRun(program, nf or model.nf, dict(model.settings), folder, model.chain)
    sent = list(model.traffic(seed, n, run.first))
    begin = time.perf_counter()
    left = run(sent, "compared")
    nf_run_s = time.perf_counter() - begin
    begin = time.process_time()
    ends = FramesByTime(left.out), FramesByTime(left.back)
    faults = 0
    shown: list[str] = []
    for number, burst in bursts_of(sent):
        found = model.judge(burst, ends[0].until(burst[0].time_us), ends[1].until(burst[0].time_us))
        faults += len(found)
        if len(shown) < SHOWN:
            shown += [f"packets {number} to {number + len(burst) - 1}: {fault}" for fault in found]
    for end, name in zip(ends, ("out", "back"), strict=True):
        late = end.until(1 << 62)
        faults += len(late)
        shown += [f"{name}: {frame.hex()} after all others" for frame in late[:SHOWN]]
    wrong = differing_counters(model, left.counters()) + model.finish()
    if left.report["received"] != len(sent):
        wrong.append(f"nf-run received {left.report['received']} of {len(sent)} packets")
    return Comparison(
        packets=len(sent),
        left=ends[0].read + ends[1].read,
        disagreements=faults + len(wrong),
        shown=wrong + shown,
        nf_run_s=nf_run_s,
        model_s=time.process_time() - begin,
        sent=sent,
        result=left,
    )


def bursts_of(sent: list[Sent]) -> Iterator[tuple[int, list[Sent]]]:
    """Frames of one time and side, and the number of the first one, in the order in which nf-run takes them."""
    number = 0
    for _, group in groupby(sent, key=lambda arrival: (arrival.time_us, arrival.side)):
        burst = list(group)
        yield number, burst
        number += len(burst)


def differing_counters(model: FunctionModel, got: dict[str, int]) -> list[str]:
    """A line for each counter that is not what the model states."""
    wrong = []
    for name, expected in model.counters().items():
        least, most = expected if isinstance(expected, tuple) else (expected, expected)
        if not least <= got[name] <= most:
            wrong.append(f"counter {name}: {got[name]}, expected {expected}")
    return wrong


def main() -> int:
    """Compare functions with their models and print a line for each; exit status 0 if all agree, 1 otherwise."""
    known = nf_models()
    parser = argparse.ArgumentParser(prog="python -m tests.nfs.comparison", description=__doc__)
    parser.add_argument("nf", nargs="*", help=f"functions; default: all of {', '.join(known)}")
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", type=Path, nargs="+", help="nf-run; default: as built, also with sanitizers if so")
    parser.add_argument("--variant", type=int, default=0, help="which of the model's settings")
    chosen = parser.parse_args()
    unknown = [nf for nf in chosen.nf if nf not in known]
    if unknown:
        parser.error(f"{', '.join(unknown)}: no model")
    print(f"{'function':<16}{'packets':>9}{'left':>9}{'disagree':>9}{'nf-run s':>9}{'Python s':>9}")
    agreed = True
    for nf in chosen.nf or known:
        with tempfile.TemporaryDirectory() as name:
            folder, result = Path(name), None
            for program in chosen.program or [PROGRAM, *([SANITIZED] if SANITIZED.exists() else [])]:
                model = model_of(nf, chosen.variant, folder)
                result = (result and does_the_same(result, model, program, folder)) or compare(
                    model, program, folder, chosen.seed, chosen.packets
                )
                numbers = f"{result.packets:>9}{result.left:>9}{result.disagreements:>9}"
                print(f"{nf:<16}{numbers}{result.nf_run_s:>9.1f}{result.model_s:>9.1f}", flush=True)
                for line in result.shown[:SHOWN]:
                    print(f"  {line[:400]}", file=sys.stderr)
                agreed = agreed and result.disagreements == 0
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
