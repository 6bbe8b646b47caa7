"""A state that keeps its last events, through millions of them: how large its file is, and how large a fresh copy.

It can be ended and started again with the same --folder.
"""

import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pandas as pd

from benches.bench import register, take_any
from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Depart, FleetEvent
from placer.fleet.state.backup import back_up
from placer.fleet.state.retention import STEP_EVENTS, Retention
from placer.fleet.state.store import State
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload

KINDS = catalogue((None, 1.0)).kinds
TENANTS = 1_000
EVENTS_PER_COMMIT = 64
COMMITS_PER_STEP = STEP_EVENTS // 2 // EVENTS_PER_COMMIT
"""A service takes a step each second, in which it decides at most half as many events."""

ROWS = 10


@register("kept-log")
def run(events: int = 10_000_000, kept: int = 10_000, folder: Path | None = None) -> pd.DataFrame:
    """After each tenth of the events: megabytes of the file and of a fresh copy, and the longest commit and step."""
    with tempfile.TemporaryDirectory() as temporary:
        path = (folder or Path(temporary)) / "fleet.db"
        rows = []
        with State(path, KINDS) as state:
            state.retention = Retention(events=kept)
            engine = Engine(state.fleet, [ToyOracle()], events=state.events)
            while engine.events < events:
                upto = (engine.events * ROWS // events + 1) * events // ROWS
                rows.append(_decide(state, engine, upto) | _sizes(path, Path(temporary) / f"{upto}.db"))
    return pd.DataFrame(rows)


def _decide(state: State, engine: Engine, upto: int) -> dict[str, float]:
    """Decide on arrivals and departures up to an event."""
    draw, present = random.Random(engine.events), [tenant.id for tenant in engine.fleet.all_tenants()]
    longest_commit = longest_step = 0.0
    commits, begun = 0, time.perf_counter()
    while engine.events < upto:
        for _ in range(EVENTS_PER_COMMIT):
            event: FleetEvent
            if len(present) < TENANTS:
                present.append(f"instance-{engine.events}")
                event = Arrive(Tenant(present[-1], Workload(draw.choice("abcd"), TOY_TRAFFIC), Sla(max_drop=0.9)))
            else:
                event = Depart(take_any(present, draw))
            state.record(event, engine.handle(event), engine.fleet)
        longest_commit = max(longest_commit, _seconds(state.commit))
        commits += 1
        if commits % COMMITS_PER_STEP == 0:
            longest_step = max(longest_step, _seconds(state.maintain))
    seconds = time.perf_counter() - begun
    return {
        "events": engine.events,
        "us_per_event": round(1e6 * seconds / (commits * EVENTS_PER_COMMIT), 1),
        "longest_commit_ms": round(1e3 * longest_commit, 1),
        "longest_step_ms": round(1e3 * longest_step, 1),
    }


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _sizes(path: Path, copy: Path) -> dict[str, float]:
    """Megabytes of the file, and of a fresh copy without free pages."""
    back_up(path, copy)
    with closing(sqlite3.connect(copy)) as file:
        file.execute("VACUUM")
    found = {"file_mb": path.stat().st_size / 1e6, "needed_mb": copy.stat().st_size / 1e6}
    copy.unlink()
    return {name: round(value, 2) for name, value in found.items()}
