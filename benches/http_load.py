"""A client that loads an HTTP server on this machine from many connections, by itself or at a fixed rate."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Load:
    """What came back."""

    latencies: dict[int, list[float]] = field(default_factory=dict)  # seconds, by HTTP status
    seconds: float = 0.0  # from the first request to the last answer

    @property
    def statuses(self) -> Counter[int]:
        """Answers by status."""
        return Counter({status: len(found) for status, found in self.latencies.items()})

    def rate(self, status: int = 200) -> float:
        """Answers of this status per second."""
        return len(self.latencies.get(status, ())) / self.seconds

    def percentile_ms(self, percent: float, status: int = 200) -> float:
        """This percentile of the latency (ms) of answers of this status."""
        found = self.latencies.get(status)
        return float(np.percentile(found, percent)) * 1000 if found else float("nan")


class Connection(asyncio.Protocol):
    """One connection that sends a request when it got the answer to the one before."""

    def __init__(
        self, requests: Iterator[bytes], load: Load, gap_s: float, done: asyncio.Future[None], *, since_sent: bool
    ) -> None:
        self._since_sent = since_sent
        self._requests = requests
        self._load = load
        self._gap = gap_s
        self._done = done
        self._buffer = b""
        self._due = self._sent = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._due = transport, time.perf_counter()
        self._send()

    def data_received(self, data: bytes) -> None:
        """Note the answer once it is whole, and send the next request when that is due."""
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        at = head.lower().index(b"content-length:") + 15
        if len(body) < int(head[at:].split(b"\r\n", 1)[0]):
            return
        self._buffer = b""
        now = time.perf_counter()
        begun = self._sent if self._since_sent else self._due
        self._load.latencies.setdefault(int(head[9:12]), []).append(now - begun)
        if not self._gap:
            self._due = now
            self._send()
            return
        self._due += self._gap
        wait = self._due - now
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._send)
        else:
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        """The end."""
        if not self._done.done():
            self._done.set_result(None)

    def _send(self) -> None:
        assert self._transport is not None
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
        else:
            self._sent = time.perf_counter()
            self._transport.write(request)


async def load(
    port: int, requests: Iterator[bytes], connections: int, rate: float = 0.0, *, since_sent: bool = False
) -> Load:
    """Send all requests over so many connections; at `rate` per second in all, or as fast as answers come. At a rate,
    latency counts from when a request was due, so that a slow server cannot hide behind its client; with `since_sent`,
    from when it was sent, which is what a client sees that sends no more than is answered."""
    loop, found = asyncio.get_running_loop(), Load()
    waiting = []
    begun = time.perf_counter()
    for number in range(connections):
        done: asyncio.Future[None] = loop.create_future()
        waiting.append(done)
        gap = connections / rate if rate else 0.0

        def connect(gap: float = gap, done: asyncio.Future[None] = done) -> Connection:
            return Connection(requests, found, gap, done, since_sent=since_sent)

        await loop.create_connection(connect, "127.0.0.1", port)
        if rate:
            await asyncio.sleep(max(begun + (number + 1) / rate - time.perf_counter(), 0))
    await asyncio.gather(*waiting)
    found.seconds = time.perf_counter() - begun
    return found


def request(path: str, body: bytes, *headers: str) -> bytes:
    """A POST request of JSON as bytes, for any port of 127.0.0.1: `placer serve --host 127.0.0.1`."""
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    return "\r\n".join((*lines, f"Content-Length: {len(body)}", *headers, "", "")).encode() + body
