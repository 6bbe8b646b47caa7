"""How far a profiling is, told by its journal alone, also while it goes on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from profiler.contention import alone_runs
from profiler.journal import AGAIN, BENCHES, REFERENCE
from profiles import InputError, TestbedDescription

PAUSE_S = 600.0
"""A longer time between two records is not a run: the profiling was interrupted."""


@dataclass(frozen=True)
class Part:
    """The benches, or one NF.

    Parameters
    ----------
    name
        `benches`, or the NF.
    method
        The method that chooses its runs; empty for benches.
    recorded
        Runs in the journal.
    planned
        Runs there will be; None where the method has no quota.
    done
        Whether nothing is left.
    """

    name: str
    method: str
    recorded: int
    planned: int | None
    done: bool

    @property
    def left(self) -> int | None:
        """Runs that are still to be made; None where that is not known."""
        if self.done:
            return 0
        return None if self.planned is None else max(self.planned - self.recorded, 0)


@dataclass(frozen=True)
class Status:
    """How far a profiling is.

    Parameters
    ----------
    testbed
        Its name.
    parts
        The benches, then the NFs.
    again, reference
        Runs repeated in doubt, and readings of the reference run; they come on top of what is planned.
    run_s
        What one run takes, seconds: the mean of the testbed's own times, or of the times between records where it
        tells none.
    """

    testbed: str
    parts: tuple[Part, ...]
    again: int
    reference: int
    run_s: float

    @property
    def recorded(self) -> int:
        """All runs in the journal."""
        return sum(part.recorded for part in self.parts) + self.again + self.reference

    @property
    def left(self) -> int | None:
        """Runs left, those on top included as they came so far; None where that is not known."""
        lefts = [part.left for part in self.parts]
        if any(left is None for left in lefts):
            return None
        chosen = self.recorded - self.again - self.reference
        share = self.recorded / chosen if chosen else 1.0
        return round(share * sum(left for left in lefts if left is not None))

    @property
    def left_s(self) -> float | None:
        """Seconds left; None where that is not known."""
        return None if self.left is None else self.left * self.run_s


def read_status(journal: Path) -> Status:
    """How far the profiling of a journal is.

    Raises
    ------
    InputError
        When there is no journal, or it is none.
    """
    if not journal.is_file():
        raise InputError.of("--status", f"{journal} is not there", hint="nothing has been profiled into this --out")
    try:
        with closing(sqlite3.connect(f"{journal.resolve().as_uri()}?mode=ro", uri=True)) as database:
            origin = dict(database.execute("SELECT name, value FROM origin"))
            counts = dict(database.execute("SELECT purpose, count(*) FROM runs GROUP BY purpose"))
            plan = database.execute("SELECT nf, method, quota, done FROM plan ORDER BY rowid").fetchall()
            told = database.execute(
                "SELECT json_extract(answer, '$.elapsed_s'), measured_at FROM runs ORDER BY measured_at"
            ).fetchall()
    except sqlite3.DatabaseError as error:
        raise InputError.of(str(journal), f"is not a journal: {error}") from None
    if "testbed" not in origin:
        raise InputError.of(str(journal), "holds nothing yet: no testbed has described itself")
    description = TestbedDescription.model_validate(json.loads(origin["testbed"]))
    return Status(
        description.name,
        (
            _benches(description, counts, plan),
            *(Part(nf, method, counts.get(nf, 0), quota, bool(done)) for nf, method, quota, done in plan),
        ),
        counts.get(AGAIN, 0),
        counts.get(REFERENCE, 0),
        _run_s(told),
    )


def as_text(status: Status) -> str:
    """A line per part, then what is left."""
    widest = max(len(part.name) for part in status.parts)
    lines = [f"testbed {status.testbed}: {status.recorded:,} runs are recorded"]
    for part in status.parts:
        planned = "no limit" if part.planned is None else f"about {part.planned:,}"
        state = "done" if part.done else f"of {planned}"
        lines.append(f"  {part.name:<{widest}}  {part.recorded:>6,}  {state}  {part.method}".rstrip())
    lines.append(f"  {status.again:,} repeats of doubtful runs, {status.reference:,} readings of the reference run")
    if status.left is None or status.left_s is None:
        lines.append("left: not known, the method has no quota")
    elif status.left == 0:
        lines.append("left: nothing")
    else:
        lines.append(f"left: about {status.left:,} runs, {_shown(status.left_s)} at {status.run_s:.2g} s each")
    return "\n".join(lines) + "\n"


def _benches(description: TestbedDescription, counts: Mapping[str, int], plan: Sequence[object]) -> Part:
    """They come first, so they are done as soon as any NF has runs of its own."""
    started = any(counts.get(nf.name) for nf in description.nfs)
    return Part("benches", "", counts.get(BENCHES, 0), alone_runs(description), bool(plan) and started)


def _run_s(told: Sequence[tuple[float, float]]) -> float:
    elapsed = [seconds for seconds, _ in told]
    if sum(elapsed) > 0:
        return sum(elapsed) / len(elapsed)
    gaps = [later - earlier for (_, earlier), (_, later) in pairwise(told)]
    gaps = [gap for gap in gaps if gap < PAUSE_S]
    return sum(gaps) / len(gaps) if gaps else 0.0


def _shown(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
