"""A client of `placer serve`.

    from placer import Client

    with Client("http://127.0.0.1:8080", token="...") as fleet:
        answer = fleet.arrive("web-nat", "NAT", sla_drop=0.1)
        print(answer["nic"])

An event that was sent is sent again where the answer was lost or the service was busy; its idempotency key makes sure
that it is decided on once.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote

import httpx

MAX_TRIES = 6
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
"""Seconds between two tries; doubled each time, unless the service says how long."""

ANSWER_SECONDS = 30.0
STATUSES_TO_RETRY = (429, 502, 503, 504)
Answer = dict[str, Any]


class ServiceError(Exception):
    """The service refused a request.

    `status`: the HTTP status: 409 where an event cannot happen, 412 where a NIC has changed, 422 where it makes no
    sense.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """A connection to a service; close it, or use it in `with`.

    `token`: a bearer token, where the service asks for one.
    """

    def __init__(self, address: str, token: str | None = None, *, seconds: float = ANSWER_SECONDS) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=address, headers=headers, timeout=seconds)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._http.close()

    def send(self, event: Mapping[str, Any], *, key: str | None = None, if_version: int | None = None) -> Answer:
        """Decide on an event as of `placer online`; returns its answer with the `version`.

        `key`: the idempotency key; a new one by default. `if_version`: of an arrival that names its NIC: refuse it
        (412) where the NIC has changed since.

        Raises ServiceError when it is refused. Raises httpx.TransportError when no answer came after all tries; whether
        it was decided on is shown by sending it with the same key.
        """
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        if if_version is not None:
            headers["If-Version"] = str(if_version)
        return self._json("POST", "/v1/events", json=dict(event), headers=headers)

    def arrive(self, id: str, nf: str, **more: Any) -> Answer:
        """Place an instance; `more` is `traffic`, `rate_kpps`, `cores`, `sla_drop` or `sla_min_kpps`, `sla_latency_us`,
        `priority`, `preempt`, `spread`, `apart`, `together`, `pool`, `most_per_nic`, `most_per_domain`, `exclusive`,
        `owner`, `labels`, and `nic` for a certain NIC."""
        return self.send({"event": "arrive", "id": id, "nf": nf, **more})

    def reserve(self, id: str, nf: str, ttl_s: float, **more: Any) -> Answer:
        """Hold a place for an instance for so many seconds; an `arrive` with this id that asks for the same takes it.

        `more` as for `arrive`, without `preempt`. The answer has its NIC, and in `until` when it ends (s since 1970).
        """
        return self.send({"event": "reserve", "id": id, "nf": nf, "ttl_s": ttl_s, **more})

    def change(self, id: str, **more: Any) -> Answer:
        """Change an instance; `more` as for `arrive`, with `rate_kpps=None` for more than it can carry."""
        return self.send({"event": "change", "id": id, **more})

    def depart(self, id: str) -> Answer:
        """Take an instance off its NIC."""
        return self.send({"event": "depart", "id": id})

    def drain(self, *nics: str) -> Answer:
        """Empty NICs, of which none takes tenants of another one."""
        return self.send({"event": "drain", "nics": list(nics)})

    def ask(self, nf: str, **more: Any) -> Answer:
        """Where instances would go; `more` as for `arrive`, and `count`, `top`, `explain`. Nothing changes."""
        return self._json("POST", "/v1/ask", json={"nf": nf, **more})

    def tenant(self, id: str) -> Answer | None:
        """An instance and its NIC; None where it is not placed or queued."""
        return self._find(f"/v1/tenants/{_quote(id)}")

    def nic(self, nic: str) -> Answer | None:
        """A NIC and its tenants; None where it was never in use or has left."""
        return self._find(f"/v1/nics/{_quote(nic)}")

    def nics(self, **filters: str) -> Iterator[Answer]:
        """Every NIC in the order of ids; `filters` are `service`, `model` and `pool`."""
        return self._pages("nics", filters)

    def tenants(self, **filters: str) -> Iterator[Answer]:
        """Every instance in the order of ids; `filters` are `nf`, `nic`, `owner` and `state`, `placed` or `queued`."""
        return self._pages("tenants", filters)

    def _pages(self, name: str, filters: Mapping[str, str]) -> Iterator[Answer]:
        options: dict[str, Any] = {**filters, "limit": 1000}
        while True:
            page = self._json("GET", f"/v1/{name}", params=options)
            yield from page[name]
            if page["cursor"] is None:
                return
            options["cursor"] = page["cursor"]

    def log(self, after: int = 0, *, wait_s: float = 20.0) -> Iterator[Answer]:
        """Every event after one with its answer, for ever: waits for the next when all are read."""
        while True:
            answer = self._request(
                "GET", "/v1/log", params={"after": after, "wait_s": wait_s}, timeout=wait_s + ANSWER_SECONDS
            )
            for line in answer.text.splitlines():
                row = json.loads(line)
                after = row["number"]
                yield row

    def _find(self, path: str) -> Answer | None:
        try:
            return self._json("GET", path)
        except ServiceError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise

    def _json(self, method: str, path: str, **options: Any) -> Answer:
        found: Answer = self._request(method, path, **options).json()
        return found

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        pause = FIRST_PAUSE_S
        for left in reversed(range(MAX_TRIES)):
            try:
                answer = self._http.request(method, path, **options)
            except httpx.TransportError:
                if not left:
                    raise
            else:
                if answer.is_success:
                    return answer
                if answer.status_code not in STATUSES_TO_RETRY or not left:
                    raise ServiceError(answer.status_code, _message(answer))
                pause = max(pause, _retry_after(answer))
            time.sleep(min(pause, LONGEST_PAUSE_S))
            pause *= 2
        raise AssertionError


def _quote(name: str) -> str:
    return quote(name, safe="")


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:300]


def _retry_after(answer: httpx.Response) -> float:
    try:
        return float(answer.headers.get("retry-after", 0))
    except ValueError:
        return 0.0
