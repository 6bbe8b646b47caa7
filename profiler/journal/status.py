"""How far a profiling is, from its journal alone, also while it runs."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from profiler.contention import alone_runs
from profiler.journal import records
from profiler.journal.records import journal_faults, of_co_locations
from profiles import InputError, TestbedDescription

SHOWN_PARTS = {
    records.TOGETHER_PART: "co-locations", records.CORES_PART: "further cores", records.LOADS_PART: "offered loads",
    records.CYCLES_PART: "cycles", records.CHAINS_PART: "chains", records.SWEEP_PART: "sweep",
    records.SHARING_PART: "sharers", records.LATENCY_PART: "latency",
}  # fmt: skip
SHOWN_ALONE = (records.CYCLES_PART, records.CHAINS_PART, records.SWEEP_PART, records.LATENCY_PART)
"""Parts that need no benches."""
PAUSE_S = 600.0  # a longer time between two records is no run: the profiling was interrupted


@dataclass(frozen=True)
class ProfilingPart:
    """The progress of the benches, of one NF, or of co-locations of several."""

    name: str  # `benches`, the NF, or `co-locations`
    method: str  # the method that chooses the runs of an NF; else empty
    recorded: int  # runs in the journal
    planned: int | None  # runs there will be; None where the method has no quota
    done: bool  # whether it is complete

    @property
    def left(self) -> int | None:
        """Runs still to be made; None where that is not known."""
        if self.done:
            return 0
        return None if self.planned is None else max(self.planned - self.recorded, 0)


@dataclass(frozen=True)
class ProfilingStatus:
    """How far a profiling is."""

    testbed: str  # its name
    parts: tuple[ProfilingPart, ...]  # the benches, then the NFs
    repeats: int  # of doubtful runs; not among the planned runs
    reference: int  # readings of the reference run; not among the planned runs
    run_s: float
    """Seconds per run: the mean of the testbed's own times, or of the times between records where it reports none."""

    @property
    def recorded(self) -> int:
        """All runs in the journal."""
        return sum(part.recorded for part in self.parts) + self.repeats + self.reference

    @property
    def left(self) -> int | None:
        """Runs left, with repeats and readings in proportion to those so far; None where that is not known."""
        lefts = [part.left for part in self.parts]
        if any(left is None for left in lefts):
            return None
        chosen = self.recorded - self.repeats - self.reference
        share = self.recorded / chosen if chosen else 1.0
        return round(share * sum(left for left in lefts if left is not None))

    @property
    def left_s(self) -> float | None:
        """Seconds left; None where that is not known."""
        return None if self.left is None else self.left * self.run_s


def read_status(journal: Path) -> ProfilingStatus:
    """How far the profiling of a journal is. Raises `InputError` when there is no journal, or the file is none. Raises
    `JournalError` when it cannot be read."""
    if not journal.is_file():
        raise InputError.of("--status", f"{journal} does not exist", hint="nothing has been profiled into this --out")
    uri = f"{journal.resolve().as_uri()}?mode=ro"
    with journal_faults(journal), closing(sqlite3.connect(uri, uri=True)) as database:
        origin = dict(database.execute("SELECT name, value FROM origin"))
        counts = dict(database.execute("SELECT purpose, count(*) FROM runs GROUP BY purpose"))
        plan = database.execute("SELECT nf, method, quota, done FROM plan ORDER BY rowid").fetchall()
        times = database.execute(
            "SELECT json_extract(answer, '$.elapsed_s'), measured_at FROM runs ORDER BY measured_at"
        ).fetchall()
    if "testbed" not in origin:
        raise InputError.of(str(journal), "holds nothing yet: no testbed has described itself")
    try:
        description = TestbedDescription.model_validate_json(origin["testbed"])
    except ValueError:
        raise InputError.of(str(journal), "journal is damaged: its testbed is not described") from None
    return ProfilingStatus(
        description.name,
        (
            *([_benches(description, counts, plan)] if _has_benches(description, plan) else []),
            *(
                ProfilingPart(
                    _format_part(part), "" if of_co_locations(part) else method, counts.get(part, 0), quota, bool(done)
                )
                for part, method, quota, done in sorted(plan, key=lambda row: of_co_locations(str(row[0])))
            ),
        ),
        sum(runs for purpose, runs in counts.items() if purpose.endswith(records.REPEATS_PART)),
        sum(runs for purpose, runs in counts.items() if purpose.endswith(records.REFERENCE_PART)),
        _run_s(times),
    )


def as_text(status: ProfilingStatus) -> str:
    """A line per part, then what is left."""
    widest = max(len(part.name) for part in status.parts)
    lines = [f"testbed {status.testbed}: {status.recorded:,} runs are recorded"]
    for part in status.parts:
        planned = "no limit" if part.planned is None else f"about {part.planned:,}"
        state = "done" if part.done else f"of {planned}"
        lines.append(f"  {part.name:<{widest}}  {part.recorded:>6,}  {state}  {part.method}".rstrip())
    lines.append(f"  {status.repeats:,} repeats of doubtful runs, {status.reference:,} readings of the reference run")
    if status.left is None or status.left_s is None:
        lines.append("left: not known, the method has no quota")
    elif status.left == 0:
        lines.append("left: nothing")
    else:
        lines.append(f"left: about {status.left:,} runs, {_format_seconds(status.left_s)} at {status.run_s:.2g} s each")
    return "\n".join(lines) + "\n"


def _has_benches(description: TestbedDescription, plan: Sequence[Sequence[object]]) -> bool:
    return description.nic.kind != "gpu" and any(row[0] not in SHOWN_ALONE for row in plan)


def _benches(description: TestbedDescription, counts: Mapping[str, int], plan: Sequence[object]) -> ProfilingPart:
    """Benches come first, so they are done as soon as an NF has runs of its own."""
    started = any(counts.get(nf.name) for nf in description.nfs)
    return ProfilingPart(
        "benches", "", counts.get(records.BENCHES_PART, 0), alone_runs(description), bool(plan) and started
    )


def _format_part(part: str) -> str:
    return SHOWN_PARTS.get(part) or part.replace(f"{records.FURTHER_PART}-", "for arrivals ")


def _run_s(times: Sequence[tuple[float, float]]) -> float:
    elapsed = [seconds for seconds, _ in times]
    if sum(elapsed) > 0:
        return sum(elapsed) / len(elapsed)
    gaps = [later - earlier for (_, earlier), (_, later) in pairwise(times)]
    gaps = [gap for gap in gaps if gap < PAUSE_S]
    return sum(gaps) / len(gaps) if gaps else 0.0


def _format_seconds(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
