"""`placer serve` as a process: it answers, stops as it should, goes on after a kill, and refuses what is unsafe."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from placer.service.http.tokens import read_tokens
from tests.postgres import Cluster

ARRIVAL = {"event": "arrive", "id": "a", "nf": "NAT", "sla_drop": 0.1}


@contextmanager
def serving(state: Path | str, *options: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A service with this state, and a client of it."""
    command = [sys.executable, "-m", "placer", "serve", "--state", str(state), "--listen", "127.0.0.1:0", "--quiet"]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            address = next(found[1] for line in process.stderr if (found := re.search(r'"address": "([^"]+)"', line)))
            with httpx.Client(base_url=address, timeout=30) as client:
                yield process, client
        finally:
            process.kill()


def refused(*options: str) -> str:
    """What is printed on stderr, and the status is 2."""
    command = [sys.executable, "-m", "placer", "serve", *options]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout) == (2, "")
    return found.stderr


def test_two_services_share_a_database_and_one_that_decides_otherwise_is_refused(postgres: Cluster) -> None:
    """What one has placed, the other lets depart; then both stop as they should."""
    address = postgres.database()
    with serving(address) as (one, client), serving(address) as (other, its_client):
        assert client.post("/v1/events", json=ARRIVAL).json()["status"] == "placed"
        assert its_client.post("/v1/events", json={"event": "depart", "id": "a"}).json()["version"] == 2
        assert "is used by an agent that decides otherwise" in refused("--state", address, "--rule", "best-fit")
        for process in (one, other):
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


def test_a_database_that_cannot_be_reached_is_refused_without_its_password() -> None:
    """Exit status 2, and the address without secrets."""
    printed = refused("--state", "postgresql://placer:hush@127.0.0.1:1/fleet")
    assert "--state: postgresql://placer@127.0.0.1:1/fleet cannot be opened" in printed
    assert "hush" not in printed


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_it_stops_when_it_is_asked_to_and_continues_where_it_was(tmp_path: Path, number: signal.Signals) -> None:
    """A question that waits for the log does not keep it from stopping; the status is 0."""
    with serving(tmp_path / "s.db") as (process, client):
        assert client.post("/v1/events", json=ARRIVAL).json()["status"] == "placed"
        with client.stream("GET", "/v1/log", params={"after": 1, "wait_s": 0}):
            process.send_signal(number)
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert json.loads(process.stderr.read().splitlines()[-1]) == {"log": "stopped", "version": 1}
    with serving(tmp_path / "s.db") as (process, client):
        assert client.get("/v1/tenants/a").json()["nic"] == "nic-1"
        process.kill()
        process.wait()
    with serving(tmp_path / "s.db") as (_, client):
        assert client.get("/v1/tenants/a").json()["version"] == 1


def test_a_new_token_is_shown_once_and_works(tmp_path: Path) -> None:
    """Its table goes to stdout, the token to stderr."""
    command = [sys.executable, "-m", "placer", "serve", "--new-token", "web", "--scopes", "ask"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    (tmp_path / "tokens.toml").write_text(made.stdout)
    token = made.stderr.split()[-1]
    assert read_tokens(tmp_path / "tokens.toml").scopes(f"Bearer {token}") == {"ask"}
    assert token not in made.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--state: is missing"),
        (["--state", "s.db", "--listen", "8080"], "--listen: '8080' is not HOST:PORT"),
        (["--state", "s.db", "--listen", "0.0.0.0:8080"], "there are no --tokens"),
        (["--state", "s.db", "--tls-key", "key.pem"], "--tls-certificate: is missing"),
        (["--state", "s.db", "--kubernetes", "cluster"], "--kubernetes: 'cluster' is no address"),
        (["--state", "s.db", "--kubernetes", "in-cluster"], "no pod with a service account"),
        (["--state", "s.db", "--tokens", "none.toml"], "none.toml"),
        (["--state", "typo/s.db"], "--state: there is no folder typo"),
        (["--new-token", "x", "--scopes", "root"], "'root' is no scope"),
    ],
)
def test_what_is_unsafe_or_wrong_is_refused(
    tmp_path: Path, options: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to do about it; nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert message in refused(*options)


def test_an_empty_fleet_begins_with_a_trace_and_another_is_continued(tmp_path: Path) -> None:
    """Two instances; the second start does not place them again."""
    trace = tmp_path / "trace.csv"
    trace.write_text("id,time,nf,sla_drop\nweb-nat,0,NAT,0.10\nedge-ids,12.5,NIDS,0.05\n")
    for _ in range(2):
        with serving(tmp_path / "s.db", "--arrivals", str(trace)) as (_, client):
            assert client.get("/v1/summary").json()["tenants"] == 2
            assert len(client.get("/v1/log").text.splitlines()) == 2


def test_an_address_in_use_is_refused(tmp_path: Path) -> None:
    """By the second service, whose state is another."""
    with serving(tmp_path / "s.db") as (_, client):
        address = f"{client.base_url.host}:{client.base_url.port}"
        assert "cannot be used" in refused("--state", str(tmp_path / "t.db"), "--listen", address)
