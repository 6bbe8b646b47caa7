"""Three times as many events as the HTTP service can decide: how many it decides, and how soon others are answered.

Clients are connections that send an event each when the one before was answered, at the latest when their schedule says
so. Beside it stands the least that turning a request away takes on this machine (`turn_away.c`): with capacity C and r
seconds for each, a service that is offered 3 C decides at most (1 - 3Cr) / (1 - Cr) of C on one core, however it is
written.
"""

import asyncio
import itertools
import os
import subprocess
import tempfile
from pathlib import Path

import pandas as pd

from benches.bench import register
from benches.http_load import Load, load
from benches.service import CONNECTIONS, NICS, arrivals, as_fast_as_they_go, churn, fill, server

TIMES = 3
SOURCE = Path(__file__).with_name("turn_away.c")


@register("overload")
def run(nics: int = NICS, seconds: float = 3, repeats: int = 5) -> pd.DataFrame:
    """Per number of connections: events per second and what became of them (medians), and what the floor allows."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "turn_away"
        subprocess.run(["cc", "-O2", "-o", program, SOURCE], check=True)
        with server(Path(folder)) as port:
            fill(port, nics)
            rows = [
                _row(port, program, connections, seconds, f"{connections}-{repeat}-")
                for connections in (4 * CONNECTIONS, 8 * CONNECTIONS, 16 * CONNECTIONS)
                for repeat in range(repeats)
            ]
    return pd.DataFrame(rows).groupby("connections").median().reset_index()


def _row(port: int, program: Path, connections: int, seconds: float, prefix: str) -> dict[str, float]:
    capacity = as_fast_as_they_go(port, churn(f"{prefix}a"), seconds).rate()
    found = overloaded(port, capacity, connections, seconds, f"{prefix}b")
    turning_away = floor_s(program, connections, seconds)
    busy = capacity * turning_away
    return {
        "connections": connections,
        "capacity_per_s": round(capacity),
        "sent_per_s": round(sum(found.statuses.values()) / found.seconds),
        "decided_per_s": round(found.rate()),
        "of_capacity": round(found.rate() / capacity, 2),
        "floor_us": round(turning_away * 1e6, 1),
        "at_most": round((1 - TIMES * busy) / (1 - busy), 2),
        "turned_away_p99_ms": round(found.percentile_ms(99, 429), 1),
    }


def overloaded(port: int, capacity: float, connections: int, seconds: float, prefix: str) -> Load:
    """What comes of three times as many events as that."""
    rate = TIMES * capacity
    requests = itertools.islice(arrivals(prefix), int(rate * seconds))
    return asyncio.run(load(port, requests, connections, rate, since_sent=True))


def floor_s(program: Path, connections: int, seconds: float) -> float:
    """Seconds of CPU per request of a program that only turns them away."""
    cores = sorted(os.sched_getaffinity(0))
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        os.sched_setaffinity(process.pid, cores[:1])
        os.sched_setaffinity(0, cores[-1:])
        try:
            found = as_fast_as_they_go(int(process.stdout.readline()), arrivals("x"), seconds, connections)
        finally:
            os.sched_setaffinity(0, cores)
        used, _ = process.communicate()
    return float(used) / sum(found.statuses.values())
