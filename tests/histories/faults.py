"""Clients, faults and the history of both: `python -m tests.histories.faults --operations 1000000 --faults 200`.

Clients arrive, depart, make dry runs of departures and look up instances that they share, each request with a key. The
service is killed and started again, stopped for a while, its disk is full for a while, and connections are cut after a
request was sent. A backup of what a kill leaves is restored over it. Only the last events are kept in the log. A client
sends a request again with its key until it is answered, or gives up. Some answered requests are sent once more: the
answer must be the same.

With `--fleet`, clients also change, join, cordon, drain and fail NICs, and send groups, priorities and constraints; the
log is kept whole, and decided on once more (`fleet.py`).

With `--agents N`, so many services decide on one PostgreSQL. Clients send each request to any of them, and again to any
other. The database is restarted as after a crash, and its connections to services are cut, too.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import resource
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from placer.fleet.state.backup import back_up, restore
from placer.testing.strategies import CORES_BY_NF, NF_PRESSURE, NF_SENSITIVITY
from tests.histories import fleet as whole_fleet
from tests.histories import toy_server
from tests.histories.toy_server import KINDS, serve_toy
from tests.postgres import Cluster, cluster

FORKING = multiprocessing.get_context("forkserver")  # a service starts in a moment, with all that it imports
FORKING.set_forkserver_preload([toy_server.__name__])
CLIENTS = 24
SHARED = 60  # instances that clients have in common at a time
LIFE = 20  # operations on an instance, after which others follow

GIVES_UP, CUTS, REPEATS = 0.01, 0.01, 0.02
"""Shares of requests that are given up after a failure, whose connection is cut, and that are sent once more."""

DRY_RUNS = 0.3  # the share of departures that are dry runs

MORE_KILLS = 4  # kills for each other fault of a whole fleet

SECONDS = 20.0

SHOWN = 3_000  # characters of what a service printed that ended by itself


@dataclass
class Study:
    folder: Path
    operations: int
    seed: int
    flaw: str = ""
    agents: int = 1
    cluster: Cluster | None = None
    of_fleet: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    different: int = 0
    state: str = ""
    processes: list[ForkServerProcess] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    ended: bool = False
    ends: list[str] = field(default_factory=list)

    def start_all(self) -> None:
        self.state = str(self.folder / "s.db") if self.cluster is None else self.cluster.database()
        for number in range(self.agents):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.ports.append(free.getsockname()[1])
            self.processes.append(self.start(number))

    def start(self, number: int) -> ForkServerProcess:
        arguments = self.state, str(self.ports[number]), "fleet" if self.of_fleet else "tenants", self.flaw
        process = FORKING.Process(target=serve_toy, args=(self.folder / f"agent-{number}.log", *arguments), daemon=True)
        process.start()
        return process

    def end_all(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()

    async def inject(self, count: int) -> None:
        """Harm the services so many times, spread over all operations."""
        draw = random.Random(self.seed)
        kinds = ["kill", "stop"]
        kinds += ["full", "restore"] if self.cluster is None else ["database", "connections"]
        kinds += ["kill"] * MORE_KILLS if self.of_fleet else []
        for number in range(1, count + 1):
            await self._until(number * self.operations / (count + 1))
            kind = draw.choice(kinds)
            self.faults.append(kind)
            await self._harm(kind, draw.randrange(self.agents), draw.random() * 0.5)
        await self._until(self.operations)
        self.ended = True

    async def _harm(self, kind: str, number: int, seconds: float) -> None:
        process = self.processes[number]
        if kind in ("kill", "restore"):
            process.kill()
            process.join()
            if kind == "restore":
                await asyncio.to_thread(self._restore)
        elif kind == "full":
            pid = process.pid or 0
            limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (Path(self.state).stat().st_size, limits[1]))
            await asyncio.sleep(seconds)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
        elif kind == "stop":
            os.kill(process.pid or 0, signal.SIGSTOP)
            await asyncio.sleep(seconds)
            os.kill(process.pid or 0, signal.SIGCONT)
        elif self.cluster is not None and kind == "database":
            await asyncio.to_thread(self.cluster.restart)
        elif self.cluster is not None:
            await asyncio.to_thread(self.cluster.cut, "placer")

    def _restore(self) -> None:
        """Restore what a killed service has left, from a copy of it."""
        state, copy = Path(self.state), Path(f"{self.state}.copy")
        for old in (*state.parent.glob(f"{state.name}.before-restore*"), *state.parent.glob(copy.name)):
            old.unlink()
        back_up(state, copy)
        restore(state, copy, whole_fleet.KINDS if self.of_fleet else KINDS, lambda workload: ())

    async def _until(self, operations: float) -> None:
        """Wait for so many operations."""
        while len(self.history) < operations:
            self._revive()
            await asyncio.sleep(0.01)

    def _revive(self) -> None:
        """Start services that ended; one that ended by itself is a fault of its own."""
        for number, process in enumerate(self.processes):
            code = process.exitcode
            if code is not None:
                printed = (self.folder / f"agent-{number}.log").read_text()[-SHOWN:]
                if code != -signal.SIGKILL and "cannot be opened" not in printed:  # the database was being restarted
                    self.ends.append(printed)
                self.processes[number] = self.start(number)

    async def client(self, number: int) -> None:
        draw = random.Random(self.seed * 1000 + number)
        connections = [Connection(port) for port in self.ports]
        for count in range(self.operations):
            if self.ended:
                break
            generation = len(self.history) // (SHARED * LIFE)
            if self.of_fleet:
                await self._send(connections, draw, number, f"{number}-{count}", whole_fleet.draw_event(draw))
                continue
            identity = f"{generation}-{draw.randrange(SHARED)}"
            event = {"event": draw.choice(("arrive", "arrive", "depart", "where")), "id": identity}
            if event["event"] == "depart" and draw.random() < DRY_RUNS:
                event["dry_run"] = True  # type: ignore[assignment]
            if event["event"] == "arrive":
                # a number that is the same in every process
                event |= {"nf": "abcd"[sum(map(ord, identity)) % 4], "sla_drop": 0.9}  # type: ignore[dict-item]
            await self._send(connections, draw, number, f"{number}-{count}", event)
        for connection in connections:
            connection.close()

    async def _send(
        self, connections: "Sequence[Connection]", draw: random.Random, number: int, key: str, event: dict[str, Any]
    ) -> None:
        row: dict[str, Any] = {"client": number, "call": time.monotonic_ns(), "return": None}
        dry = "dry_run" in event  # its answer is not kept by key
        row |= {"op": f"dry {event['event']}" if dry else event["event"], "id": event.get("id", "")}
        row |= {"event": event} if self.of_fleet else {}
        answer = None
        while answer is None and not self.ended:
            connection = connections[draw.randrange(len(connections))]
            try:
                answer = await connection.post(event, key, cut=draw.random() < CUTS)
            except ConnectionRefusedError:  # nothing was sent
                await asyncio.sleep(0.02)
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                connection.close()
                if draw.random() < GIVES_UP:
                    break
                await asyncio.sleep(0.02)
        if answer is not None:
            row |= {"return": time.monotonic_ns(), **status_of(event, answer)}
            row |= {"answer": answer} if self.of_fleet else {}
            if draw.random() < REPEATS and not dry:
                await self._repeat(connections[draw.randrange(len(connections))], event, key, answer)
        self.history.append(row)

    async def _repeat(self, connection: "Connection", event: dict[str, Any], key: str, before: dict[str, Any]) -> None:
        try:
            again = await connection.post(event, key, cut=False)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            connection.close()
            return
        self.different += again is not None and again != before


class Connection:
    """A connection that is made anew after a failure."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, event: dict[str, Any], key: str, *, cut: bool) -> dict[str, Any] | None:
        """The answer to an event; None where the service asks to come again. OSError where it is lost."""
        async with asyncio.timeout(SECONDS):
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = self._streams
            body = json.dumps(event).encode()
            lines = (
                "POST /v1/events HTTP/1.1", f"Host: 127.0.0.1:{self._port}", f"Idempotency-Key: {key}",
                "Content-Type: application/json", f"Content-Length: {len(body)}", "", "",
            )  # fmt: skip
            writer.write("\r\n".join(lines).encode() + body)
            if cut:
                await writer.drain()
                raise ConnectionResetError
            found = (await reader.readuntil(b"\r\n\r\n")).lower()
            at = found.index(b"content-length:") + 15
            text = await reader.readexactly(int(found[at:].split(b"\r\n", 1)[0]))
        if int(found[9:12]) in (429, 503):
            await asyncio.sleep(0.01)
            return None
        answer: dict[str, Any] = json.loads(text)
        return answer

    def close(self) -> None:
        """End it."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def status_of(event: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The answer in the words of the check."""
    if not answer["ok"]:
        return {"status": "refused", "nic": ""}
    return {"status": answer["status"], "nic": answer.get("nic") or ""}


def run(
    folder: Path, operations: int, faults: int, seed: int = 0, flaw: str = "", agents: int = 1,
    server: Cluster | None = None, *, of_fleet: bool = False,
) -> Study:  # fmt: skip
    """Play it, with the history in `folder / history.jsonl`; on a database where there is a server of them."""
    study = Study(folder, operations, seed, flaw, agents, server, of_fleet)
    study.start_all()
    try:
        asyncio.run(_play(study, faults))
    finally:
        study.end_all()
    with (folder / "history.jsonl").open("w") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in study.history)
    return study


async def _play(study: Study, faults: int) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(study.inject(faults))
        for number in range(CLIENTS):
            group.create_task(study.client(number))


def check(history: Path) -> tuple[bool, str]:
    """The verdict of the check, and what it printed."""
    with history.open() as file:
        found = subprocess.run(
            ["go", "run", "."], cwd=Path(__file__).parent, stdin=file, capture_output=True, text=True,
            env={**os.environ, "GOFLAGS": "-mod=mod"},
        )  # fmt: skip
    return found.returncode == 0, found.stdout + found.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flaw", default="")
    parser.add_argument("--agents", type=int, default=0, help="services on one PostgreSQL; 0 is one on a file")
    parser.add_argument("--fleet", action="store_true", help="events of NICs, groups, priorities and constraints, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, cluster() if given.agents else nullcontext() as server:
        begun = time.monotonic()
        settings = given.operations, given.faults, given.seed, given.flaw, max(given.agents, 1), server
        study = run(Path(folder), *settings, of_fleet=given.fleet)
        lost = sum(row["return"] is None for row in study.history)
        print(f"{len(study.history):,} operations, {len(study.faults)} faults, {lost} without an answer, "
              f"{study.different} answered otherwise when sent again, {time.monotonic() - begun:.0f} s")  # fmt: skip
        if given.fleet:
            wrong = whole_fleet.faults_of_fleet(study.state, study.history, Path(folder) / "replayed.db")
            kinds = Counter(f"{row['event']['event']} {row['status']}" for row in study.history if row["return"])
            print(
                dict(Counter(study.faults)),
                dict(sorted(kinds.items())),
                f"faults of the replay: {wrong[:5] or 'none'}",
                sep="\n",
            )
        else:
            print(check(Path(folder) / "history.jsonl")[1])
        if given.agents and not given.fleet:
            print(f"faults of the log: {faults_of_log(study.state)[:5] or 'none'}")
        print(f"services that ended by themselves: {len(study.ends)}", *study.ends, sep="\n")


CORES_OF_NIC = 8


def faults_of_log(address: str) -> list[str]:
    """Gaps, moves from where an instance is not, NICs that held too much, and tables that differ at the end."""
    import psycopg

    with psycopg.connect(address) as connection:
        log = connection.execute("SELECT number, event, answer FROM log ORDER BY number").fetchall()
        tables = dict(connection.execute("SELECT id, nic FROM tenants").fetchall())
        ((head,),) = connection.execute("SELECT number FROM head").fetchall()
        ((too_many,),) = connection.execute("SELECT count(*) FROM kinds WHERE used > count").fetchall()
    faults = [] if [row[0] for row in log] == list(range(1, head + 1)) else ["numbers have gaps"]
    faults += ["more NICs than there are"] * too_many
    where: dict[str, str] = {}
    loads: dict[str, dict[str, tuple[str, float]]] = defaultdict(dict)
    for number, event, answer in log:
        given = json.loads(event)
        for move in json.loads(answer)["moves"]:
            if where.pop(move["id"], None) != move["from"]:
                faults.append(f"event {number}: {move['id']} was not on {move['from']}")
            loads[move["from"]].pop(move["id"], None)
            if move["to"] is not None:
                where[move["id"]] = move["to"]
                loads[move["to"]][move["id"]] = given["nf"], given["sla_drop"]
                if not _fits(list(loads[move["to"]].values())):
                    faults.append(f"event {number}: {move['to']} holds too much")
    if where != tables:
        faults.append("the tables are not what the log leads to")
    return faults


def _fits(tenants: list[tuple[str, float]]) -> bool:
    pressure = sum(NF_PRESSURE[nf] for nf, _ in tenants)
    drops = [(NF_SENSITIVITY[nf] * (pressure - NF_PRESSURE[nf]), allowed) for nf, allowed in tenants]
    enough = sum(CORES_BY_NF[nf] for nf, _ in tenants) <= CORES_OF_NIC
    return enough and all(min(drop, 0.99) <= allowed + 1e-9 for drop, allowed in drops)


if __name__ == "__main__":
    main()
