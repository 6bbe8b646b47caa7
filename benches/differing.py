"""The HTTP service where traffic differs from instance to instance: single events, batches and questions at once.

Of the events, 30 % have flows of their own. Latency counts from when a request was due. Beside it stands what a route
that answers at once takes in the same run (`floor` of `service.py`), under the same single requests. The last rows
are an engine without HTTP: all arrivals differ in flows, packet size and matches. It fills 10,000 NICs; then one leaves
before each arrival.
"""

import asyncio
import itertools
import json
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pandas as pd

from benches.bench import register
from benches.http_load import Load, load, request
from benches.service import DROPS, NFS, arrivals, fill, floor, server
from placer.fleet.engine import Engine
from placer.fleet.protocol import Reader
from placer.fleet.service.http.server import short_searches
from placer.fleet.service.opening import OnlineSettings, open_engine
from placer.inputs.catalogue import Cards, open_online
from placer.policy.rules import LOOK_AHEAD
from placer.progress import Progress

NICS, SECONDS, RATE = 5_000, 60, 2_500
CONNECTIONS = 100
SHARE = 0.3  # of arrivals that have traffic of their own

RISK = 0.05


@register("differing")
def run(nics: int = NICS, seconds: float = SECONDS, rate: float = RATE, arriving: int = 34_000) -> pd.DataFrame:
    """Per kind of request: answers per second, percentiles of the latency (ms), and other statuses than 200."""
    with tempfile.TemporaryDirectory() as folder:
        with floor() as port:
            rows = [_row("floor, single events", asyncio.run(load(port, _first(arrivals("f"), rate * 10), 100, rate)))]
        with server(Path(folder), "--risk", f"{RISK}") as port:
            fill(port, nics)
            found = asyncio.run(_all_at_once(port, seconds, rate))
            rows += [_row(name, one) for name, one in found.items()]
    return pd.DataFrame([*rows, *_engine_alone(arriving)]).fillna("")


async def _all_at_once(port: int, seconds: float, rate: float) -> dict[str, Load]:
    asked = {
        "single events": load(port, _first(_singles(), rate * seconds), CONNECTIONS, rate),
        "batches of 100": load(port, _first(_batches(), 2 * seconds), 1, 2),
        "ask for 100 places": load(port, _first(_questions(), seconds), 1, 1),
        "healthz": load(port, _first(itertools.repeat(_healthz()), 100 * seconds), 4, 100),
    }
    return dict(zip(asked, await asyncio.gather(*asked.values()), strict=True))


def _first(requests: Iterator[bytes], count: float) -> Iterator[bytes]:
    return itertools.islice(requests, int(count))


def _event(identity: str, draw: random.Random, share: float = SHARE, *, all_differ: bool = False) -> dict[str, object]:
    event = {"event": "arrive", "id": identity, "nf": draw.choice(NFS), "sla_drop": draw.choice(DROPS)}
    if all_differ:
        traffic = {"packet_size": draw.randrange(64, 1_500), "mtbr": round(draw.uniform(0, 900), 1)}
        return {**event, "traffic": {"flows": draw.randrange(1_000, 400_000), **traffic}}
    return event if draw.random() > share else {**event, "traffic": {"flows": draw.randrange(1_000, 400_000)}}


def _singles() -> Iterator[bytes]:
    """Arrivals; from the 500th on each is followed by the departure of the one 500 before."""
    draw = random.Random(1)
    for number in itertools.count():
        yield request("/v1/events", json.dumps(_event(f"s{number}", draw)).encode())
        if number >= 500:
            yield request("/v1/events", json.dumps({"event": "depart", "id": f"s{number - 500}"}).encode())


def _batches() -> Iterator[bytes]:
    """100 arrivals; then their departures."""
    draw = random.Random(2)
    for number in itertools.count():
        ids = [f"b{number}-{line}" for line in range(100)]
        for events in ([_event(name, draw) for name in ids], [{"event": "depart", "id": name} for name in ids]):
            yield request("/v1/events:batch", b"\n".join(json.dumps(event).encode() for event in events))


def _questions() -> Iterator[bytes]:
    draw = random.Random(3)
    for _ in itertools.count():
        event = _event("", draw, 1.0)
        yield request(
            "/v1/ask", json.dumps({**{key: event[key] for key in ("nf", "sla_drop", "traffic")}, "count": 100}).encode()
        )


def _healthz() -> bytes:
    return b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def _engine_alone(arriving: int) -> list[dict[str, object]]:
    """An engine that places so many arrivals, then a tenth as many, before each of which one leaves. Processor time."""
    draw = random.Random(4)
    with short_searches(), ExitStack() as stack:
        catalogue = open_online(Cards(risk=RISK), stack, lambda message: None)
        settings = OnlineSettings("tomur", LOOK_AHEAD, "reject", risk=RISK)
        engine = open_engine(catalogue, settings, None, (), stack, Progress(quiet=True), lambda risk, arrivals: None)
        reader = Reader(catalogue.default_traffic, catalogue.check, engine.workload_of)
        filling, present, rows = list[float](), list[str](), list[dict[str, object]]()
        changing, leaving = list[float](), list[float]()
        for number in range(arriving + arriving // 10):
            if number >= arriving:
                gone = present.pop(draw.randrange(len(present)))
                leaving.append(_handle(engine, reader, json.dumps({"event": "depart", "id": gone})))
            line = json.dumps(_event(f"{number}", draw, all_differ=True))
            (changing if number >= arriving else filling).append(_handle(engine, reader, line))
            present.append(f"{number}")
            if number + 1 in (arriving, arriving + arriving // 10):
                seconds = changing or filling
                row = _row("engine alone, all traffic different", Load({200: seconds}, sum(seconds)))
                rows.append({**row, "leave": len(leaving), "nics": len(engine.fleet.nics)})
        both = [*changing, *leaving]
        return [
            *rows,
            _row("engine alone, departures", Load({200: leaving}, sum(leaving))),
            _row("engine alone, departures and arrivals in turn", Load({200: both}, sum(both))),
        ]


def _handle(engine: Engine, reader: Reader, line: str) -> float:
    """The processor time (s) of the event of this line, which is read before."""
    event = reader.read(line)
    begun = time.thread_time()
    engine.handle(event)
    return time.thread_time() - begun


def _row(name: str, found: Load) -> dict[str, object]:
    failed = {status: count for status, count in found.statuses.items() if status != 200}
    latencies = {f"p{percent:g}_ms": round(found.percentile_ms(percent), 2) for percent in (50, 99, 99.9, 100)}
    return {"requests": name, "per_s": round(found.rate()), **latencies, "other_statuses": failed or ""}
