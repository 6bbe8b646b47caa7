"""The HTTP service: durable events, questions and the Kubernetes extender, with 10,000 NICs (`overload.py`: too many).

The server runs on one core, the client on the other (where the machine has two), over loopback; the state is a file in
the folder for temporary files. `floor` is what a Starlette route that answers at once takes in the same run.
"""

import asyncio
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd

from benches.bench import register
from benches.http_load import Load, load, request

NICS = 10_000
NODES = 1_000
CONNECTIONS = 64
SECONDS = 8
NFS = ("ACL", "FlowClassifier", "FlowMonitor", "FlowStats", "FlowTracker", "IPRouter", "IPTunnel", "NAT", "NIDS")
DROPS = (0.05, 0.1, 0.15, 0.2)

FLOOR = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
async def answer(request):
    await request.body()
    return Response(b'{"ok": true}', media_type="application/json")
app = Starlette(routes=[Route("/v1/events", answer, methods=["POST"])])
print('{"address": "http://127.0.0.1:%s"}' % sys.argv[1], file=sys.stderr, flush=True)
uvicorn.run(app, port=int(sys.argv[1]), log_level="critical")
"""


@register("service")
def run(nics: int = NICS, seconds: float = SECONDS) -> pd.DataFrame:
    """Per kind of request: answers per second, and the median and 99th percentile of the latency (ms)."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        with floor() as port:
            rows.append(_row("floor: a route that answers at once", as_fast_as_they_go(port, arrivals("f"), seconds)))
        with server(Path(folder)) as port:
            rows.append(fill(port, nics))
            rows.append(_row("single events, as fast as they go", as_fast_as_they_go(port, churn("a"), seconds)))
            rows.append(_row("single events, 2,500/s", _open(port, churn("b"), seconds, 2500)))
            rows.append(_row("ask, as fast as they go", as_fast_as_they_go(port, questions(), seconds)))
            rows.append(_row("ask, 4,000/s", _open(port, questions(), seconds, 4000)))
        names = [f"node-{number}" for number in range(NODES)]
        with api_server(names) as address, server(Path(folder) / "cluster", "--kubernetes", address) as port:
            # Fill NICs as pods would, each on the node that a random number names, where it fits.
            draws = itertools.islice(_draws(5), 4 * len(names))
            events = [
                {"event": "arrive", "id": f"x{number}", "nf": draw.choice(NFS), "sla_drop": draw.choice(DROPS),
                 "nic": draw.choice(names)}
                for number, draw in draws
            ]  # fmt: skip
            body = b"\n".join(json.dumps(event).encode() for event in events)
            asyncio.run(load(port, iter([request("/v1/events:batch", body)]), 1))
            rows += [
                _row(f"{verb} of {NODES:,} nodes", as_fast_as_they_go(port, extender(verb, names), seconds, 1))
                for verb in ("filter", "prioritize")
            ]
    return pd.DataFrame(rows).fillna("")


def arrivals(prefix: str, seed: int = 0) -> Iterator[bytes]:
    """Requests that place one more instance each, without end."""
    return (request("/v1/events", arrival(f"{prefix}{number}", draw)) for number, draw in _draws(seed))


def churn(prefix: str, seed: int = 1) -> Iterator[bytes]:
    """An arrival, then its departure when 500 more have come, without end."""
    for number, draw in _draws(seed):
        yield request("/v1/events", arrival(f"{prefix}{number}", draw))
        if number >= 500:
            yield request("/v1/events", json.dumps({"event": "depart", "id": f"{prefix}{number - 500}"}).encode())


def questions(seed: int = 2) -> Iterator[bytes]:
    """Questions, without end."""
    for _, draw in _draws(seed):
        yield request("/v1/ask", json.dumps({"nf": draw.choice(NFS), "sla_drop": draw.choice(DROPS)}).encode())


def extender(verb: str, names: list[str], seed: int = 3) -> Iterator[bytes]:
    """Requests of kube-scheduler for one pod after the other, with all names."""
    for number, draw in _draws(seed):
        annotations = {"nf-placer.io/nf": draw.choice(NFS), "nf-placer.io/sla-drop": str(draw.choice(DROPS))}
        metadata = {"name": f"p{number}", "namespace": "default", "uid": f"{verb}-{number}", "annotations": annotations}
        yield request(f"/k8s/v1/{verb}", json.dumps({"Pod": {"metadata": metadata}, "NodeNames": names}).encode())


def arrival(identity: str, draw: random.Random) -> bytes:
    """An arrival of a random NF at default traffic."""
    return json.dumps(
        {"event": "arrive", "id": identity, "nf": draw.choice(NFS), "sla_drop": draw.choice(DROPS)}
    ).encode()


def serve(state: str, *options: str) -> list[str]:
    """The command of a service on this machine, at any port."""
    command = [sys.executable, "-m", "placer", "serve", "--state", state, "--listen", "127.0.0.1:0"]
    return [*command, "--host", "127.0.0.1", "--quiet", *options]


@contextmanager
def server(folder: Path, *options: str) -> Iterator[int]:
    """`placer serve` on a core of its own; yields its port."""
    folder.mkdir(exist_ok=True)
    with _on_a_core(serve(str(folder / "fleet.db"), *options)) as port:
        yield port


@contextmanager
def api_server(names: list[str]) -> Iterator[str]:
    """An API server with these nodes and no pods, in which nothing changes; yields its address."""
    nodes = [{"metadata": {"name": name, "labels": {"nf-placer.io/nic-model": "bluefield-2"}}} for name in names]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if "watch=1" in self.path:
                time.sleep(600)
                return
            items = nodes if "nodes" in self.path else []
            body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as stub:
        stub.daemon_threads = True
        threading.Thread(target=stub.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{stub.server_port}"
        stub.shutdown()


@contextmanager
def floor() -> Iterator[int]:
    """A server that answers at once."""
    with _on_a_core([sys.executable, "-c", FLOOR, "18099"]) as port:
        yield port


@contextmanager
def _on_a_core(command: list[str]) -> Iterator[int]:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:1])  # of the server, which inherits it
    try:
        with started(command) as (_, port):
            os.sched_setaffinity(0, cores[-1:])
            yield port
    finally:
        os.sched_setaffinity(0, cores)


@contextmanager
def started(command: list[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server that answers: its process, and its port."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                found = re.search(r'"address": "http://127.0.0.1:(\d+)"', line)
                if found:
                    break
            else:
                raise RuntimeError("the server did not start")
            _wait_for(int(found[1]))
            yield process, int(found[1])
        finally:
            process.send_signal(signal.SIGTERM)


def _wait_for(port: int) -> None:
    async def wait() -> None:
        for _ in range(200):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            except OSError:
                await asyncio.sleep(0.05)

    asyncio.run(wait())


def fill(port: int, nics: int) -> dict[str, object]:
    """Place instances over NDJSON until this many NICs are in use."""
    draws, total, seconds = _draws(7), 0, 0.0
    while total < 12 * nics:
        body = b"\n".join(arrival(f"fill{number}", draw) for number, draw in itertools.islice(draws, 2000))
        found = asyncio.run(load(port, iter([request("/v1/events:batch", body)]), 1))
        total, seconds = total + 2000, seconds + found.seconds
        if total >= 3 * nics and summary(port)["nics"] >= nics:
            break
    return {"requests": "NDJSON, 2,000 lines each", "per_s": round(total / seconds)}


def summary(port: int) -> dict[str, int]:
    """The fleet of a service in numbers."""
    import httpx

    found = httpx.get(f"http://127.0.0.1:{port}/v1/summary", timeout=60).json()
    return {"tenants": found["tenants"], "nics": sum(model["in_use"] for model in found["by_model"])}


def as_fast_as_they_go(port: int, requests: Iterator[bytes], seconds: float, connections: int = CONNECTIONS) -> Load:
    """What comes of requests from connections that each send the next one when the last one was answered."""
    return asyncio.run(load(port, _until(requests, seconds), connections))


def _open(port: int, requests: Iterator[bytes], seconds: float, rate: float) -> Load:
    found = load(port, itertools.islice(requests, int(rate * seconds)), CONNECTIONS, rate)
    return asyncio.run(found)


def _until(requests: Iterator[bytes], seconds: float) -> Iterator[bytes]:
    end = time.perf_counter() + seconds
    return itertools.takewhile(lambda _: time.perf_counter() < end, requests)


def _draws(seed: int) -> Iterator[tuple[int, random.Random]]:
    draw = random.Random(seed)
    return ((number, draw) for number in itertools.count())


def _row(name: str, found: Load) -> dict[str, object]:
    failed = {status: count for status, count in found.statuses.items() if status != 200}
    return {
        "requests": name,
        "per_s": round(found.rate()),
        "p50_ms": round(found.percentile_ms(50), 2),
        "p99_ms": round(found.percentile_ms(99), 2),
        "other_statuses": failed or "",
    }
