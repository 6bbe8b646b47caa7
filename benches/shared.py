"""Agents on one PostgreSQL: conflicts, the CPU of a decision, and how many NICs are in use, against one agent.

10,000 NICs are filled first; then instances arrive and depart at random, each request at any agent, at a rate that the
machine can bear. PostgreSQL and the client run on this machine, too.
"""

import asyncio
import itertools
import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benches.bench import register, take_any
from benches.http_load import Load, load, request
from benches.service import arrival, serve, started, summary

NICS = 10_000
CASES = ((1, 150.0), (1, 600.0), (4, 600.0), (1, 0.0), (4, 0.0))
"""Agents, and events per second in all, half of them departures; 0 is as fast as they go. Four agents at 600/s each get
as much as the first one: small batches cost more per decision, however many agents there are."""

SECONDS = 25.0

CONNECTIONS = 16  # per agent


@dataclass
class Running:
    """An agent that runs: its process and its port."""

    process: subprocess.Popen[str]
    port: int

    def metrics(self) -> dict[str, float]:
        """What it counts."""
        import httpx

        text = httpx.get(f"http://127.0.0.1:{self.port}/metrics", timeout=60).text
        rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in rows}

    def cpu_s(self) -> float:
        """Seconds of CPU that it has taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@register("shared")
def run(nics: int = NICS, seconds: float = SECONDS, cases: int = len(CASES)) -> pd.DataFrame:
    """Per number of agents and rate: conflicts, CPU of agents per decision (us), NICs; of the last so many cases."""
    from tests.postgres import cluster

    rows = []
    for agents, rate in CASES[-cases:]:
        with cluster() as server, ExitStack() as stack:
            address = server.database()
            running = [Running(*stack.enter_context(started(serve(address)))) for _ in range(agents)]
            fill(running, nics)
            rows.append({"agents": agents, "rate": rate or "", **measured(running, seconds, rate)})
    return pd.DataFrame(rows)


def fill(running: list[Running], nics: int) -> None:
    """Place instances, each batch at another agent, until so many NICs are in use."""
    draw = random.Random(7)
    number = 0
    while summary(running[0].port)["nics"] < nics:
        for one in running:
            body = b"\n".join(arrival(f"fill{number + at}", draw) for at in range(1000))
            number += 1000
            asyncio.run(load(one.port, iter([request("/v1/events:batch", body)]), 1))


def measured(running: list[Running], seconds: float, rate: float) -> dict[str, object]:
    """What random churn leads to."""
    filled = summary(running[0].port)
    asyncio.run(_churn(running, 5.0, rate, "warm"))
    before = [(one.cpu_s(), one.metrics()) for one in running]
    begun = time.perf_counter()
    loads = asyncio.run(_churn(running, seconds, rate, "churn"))
    took = time.perf_counter() - begun
    after = [(one.cpu_s(), one.metrics()) for one in running]
    decided = sum(found.statuses[200] for found in loads)

    def counted(name: str) -> float:
        return sum(now.get(name, 0.0) - then.get(name, 0.0) for (_, then), (_, now) in zip(before, after, strict=True))

    now_in_use = summary(running[0].port)
    cpu = sum(now - then for (then, _), (now, _) in zip(before, after, strict=True))
    latencies = Load({200: [one for found in loads for one in found.latencies.get(200, [])]})
    return {
        "per_s": round(decided / took),
        "cpu_us_per_decision": round(1e6 * cpu / decided),
        "conflicts_pct": round(100 * counted("placer_conflicts_total") / decided, 2),
        "decided_again_pct": round(100 * counted("placer_decided_again_total") / decided, 2),
        "followed": int(counted("placer_followed_total")),
        "p50_ms": round(latencies.percentile_ms(50), 1),
        "p99_ms": round(latencies.percentile_ms(99), 1),
        "other_statuses": sum(sum(found.statuses.values()) for found in loads) - decided,
        "nics_per_tenant_filled": round(filled["nics"] / filled["tenants"], 4),
        "nics_per_tenant": round(now_in_use["nics"] / now_in_use["tenants"], 4),
    }


async def _churn(running: list[Running], seconds: float, rate: float, prefix: str) -> list[Load]:
    """Arrivals and departures at random agents; an instance departs some seconds after it arrived."""
    each, end = rate / len(running), time.perf_counter() + seconds
    events = itertools.takewhile(lambda _: time.perf_counter() < end, _events(prefix, int(rate * seconds)))
    return await asyncio.gather(*(load(one.port, events, CONNECTIONS, each) for one in running))


def _events(prefix: str, count: int) -> Iterator[bytes]:
    """Arrivals and departures in random order, the latter of instances that came at least 300 arrivals before. The
    order is random so that no agent gets all arrivals, where agents take turns."""
    draw = random.Random(11)
    first, last = (0, 10_000) if prefix == "warm" else (10_000, 30_000)
    settled, recent = [f"fill{number}" for number in range(first, last)], list[str]()
    for number in range(count or 1_000_000_000):
        if draw.random() < 0.5:
            yield request("/v1/events", arrival(f"{prefix}{number}", draw))
            recent.append(f"{prefix}{number}")
            if len(recent) > 300:
                settled.append(recent.pop(0))
        else:
            yield request("/v1/events", json.dumps({"event": "depart", "id": take_any(settled, draw)}).encode())
