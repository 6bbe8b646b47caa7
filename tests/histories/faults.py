"""Clients, faults and the history of both: `python -m tests.histories.faults --operations 1000000 --faults 200`.

Clients arrive, depart and look up instances that they share, each request with a key. The service is killed and
started again, stopped for a while, and connections are cut after a request was sent. A client sends it again with
its key until it is answered, or gives up. Some answered requests are sent once more: the answer must be the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPO = Path(__file__).parents[2]
CLIENTS = 24
SHARED = 60
"""Instances that clients have in common at a time."""

LIFE = 20
"""Operations on an instance, after which others follow."""

GIVES_UP, CUTS, REPEATS = 0.01, 0.01, 0.02
"""Shares of requests that are given up after a failure, whose connection is cut, and that are sent once more."""

SECONDS = 20.0


@dataclass
class Study:
    """What happened."""

    folder: Path
    operations: int
    seed: int
    flaw: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    different: int = 0
    process: subprocess.Popen[bytes] | None = None
    port: int = 0
    ended: bool = False

    def start(self) -> None:
        """Start the service."""
        command = [sys.executable, "-m", "tests.histories.toy_server", str(self.folder / "s.db"), str(self.port)]
        arguments = [*command, *([self.flaw] if self.flaw else [])]
        self.process = subprocess.Popen(arguments, cwd=REPO, stderr=subprocess.DEVNULL)

    async def inject(self, count: int) -> None:
        """Kill or stop the service so many times, spread over all operations."""
        draw = random.Random(self.seed)
        for number in range(1, count + 1):
            while len(self.history) < number * self.operations / (count + 1):
                await asyncio.sleep(0.01)
            assert self.process is not None
            kind = draw.choice(("kill", "kill", "stop"))
            self.faults.append(kind)
            if kind == "kill":
                self.process.kill()
                self.process.wait()
                self.start()
            else:
                self.process.send_signal(signal.SIGSTOP)
                await asyncio.sleep(draw.random() * 0.5)
                self.process.send_signal(signal.SIGCONT)
        while len(self.history) < self.operations:
            await asyncio.sleep(0.01)
        self.ended = True

    async def client(self, number: int) -> None:
        """Send requests until there are enough."""
        draw = random.Random(self.seed * 1000 + number)
        connection = Connection(self.port)
        for count in range(self.operations):
            if self.ended:
                break
            generation = len(self.history) // (SHARED * LIFE)
            identity = f"{generation}-{draw.randrange(SHARED)}"
            event = {"event": draw.choice(("arrive", "arrive", "depart", "where")), "id": identity}
            if event["event"] == "arrive":
                event |= {"nf": "abcd"[hash_of(identity) % 4], "sla_drop": 0.9}  # type: ignore[dict-item]
            await self._send(connection, draw, number, f"{number}-{count}", event)
        connection.close()

    async def _send(
        self, connection: Connection, draw: random.Random, number: int, key: str, event: dict[str, Any]
    ) -> None:
        row: dict[str, Any] = {"client": number, "call": time.monotonic_ns(), "return": None}
        row |= {"op": event["event"], "id": event["id"]}
        answer = None
        while answer is None and not self.ended:
            try:
                answer = await connection.post(event, key, cut=draw.random() < CUTS)
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                connection.close()
                if draw.random() < GIVES_UP:
                    break
                await asyncio.sleep(0.02)
        if answer is not None:
            row |= {"return": time.monotonic_ns(), **status_of(event, answer)}
            if draw.random() < REPEATS:
                await self._repeat(connection, event, key, answer)
        self.history.append(row)

    async def _repeat(self, connection: Connection, event: dict[str, Any], key: str, before: dict[str, Any]) -> None:
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
            head = (
                f"POST /v1/events HTTP/1.1\r\nHost: x\r\nIdempotency-Key: {key}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
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


def hash_of(text: str) -> int:
    """A number that is the same in every process."""
    return sum(map(ord, text))


def run(folder: Path, operations: int, faults: int, seed: int = 0, flaw: str = "") -> Study:
    """Play it, with the history in `folder / history.jsonl`."""
    study = Study(folder, operations, seed, flaw)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        study.port = free.getsockname()[1]
    study.start()
    try:
        asyncio.run(_play(study, faults))
    finally:
        if study.process is not None:
            study.process.kill()
            study.process.wait()
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
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flaw", default="")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        study = run(Path(folder), given.operations, given.faults, given.seed, given.flaw)
        lost = sum(row["return"] is None for row in study.history)
        print(f"{len(study.history):,} operations, {len(study.faults)} faults, {lost} without an answer, "
              f"{study.different} answered otherwise when sent again, {time.monotonic() - begun:.0f} s")  # fmt: skip
        print(check(Path(folder) / "history.jsonl")[1])


if __name__ == "__main__":
    main()
