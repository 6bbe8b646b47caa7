"""`placer serve` as a process: it answers, stops as it should, goes on after a kill, and refuses what is unsafe."""

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from placer.fleet.service.http.opening_port import OpeningProgress, open_behind_port
from placer.fleet.service.http.server import ServerSettings, bind_socket
from placer.fleet.service.http.tokens import AccessToken, read_tokens
from tests.placer.commands.conftest import Placer, refuse
from tests.postgres import Cluster

ARRIVAL = {"event": "arrive", "id": "a", "nf": "plain", "sla_drop": 0.1}
ANY_PORT = ("--listen", "127.0.0.1:0")


@contextmanager
def serving(
    state: Path | str, *options: str, said: list[str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A service that is ready, and a client; `said`: gets the lines on stderr until then."""
    command = [sys.executable, "-m", "placer", "serve", "--state", str(state), *ANY_PORT]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if said is not None:
                    said.append(line)
                if found := re.search(r'"address": "([^"]+)"', line):
                    break
            assert found is not None
            address = found[1]
            with httpx.Client(base_url=address, timeout=30) as client:
                yield process, client
        finally:
            process.kill()


@pytest.fixture
def given(made_up_models: Path) -> tuple[str, ...]:
    """Options that save time: small models, and no risk to choose."""
    return ("--models", str(made_up_models), "--risk", "0.22")


@pytest.mark.long
def test_two_services_share_a_database_and_one_that_decides_otherwise_is_refused(
    postgres: Cluster, given: tuple[str, ...]
) -> None:
    """What one has placed, the other lets depart; then both stop as they should."""
    address = postgres.database()
    with serving(address, *given) as (one, client), serving(address, *given) as (other, its_client):
        assert client.post("/v1/events", json=ARRIVAL).json()["status"] == "placed"
        assert its_client.post("/v1/events", json={"event": "depart", "id": "a"}).json()["version"] == 2
        assert "is used by an agent that decides otherwise" in refuse(
            "serve", "--state", address, "--rule", "best-fit", *given
        )
        for process in (one, other):
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


def test_a_database_that_cannot_be_reached_is_refused_without_its_password() -> None:
    """Exit status 2, and the address without secrets."""
    printed = refuse("serve", "--state", "postgresql://placer:hush@127.0.0.1:1/fleet", *ANY_PORT)
    assert "--state: postgresql://placer@127.0.0.1:1/fleet cannot be opened" in printed and "hush" not in printed


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
@pytest.mark.long
def test_it_stops_when_it_is_asked_to_and_continues_where_it_was(
    placer: Placer, tmp_path: Path, number: signal.Signals, given: tuple[str, ...]
) -> None:
    """An empty fleet begins with a trace, which is placed once; an address in use is refused. A question that waits for
    the log does not keep the service from stopping; the status is 0. What was placed is there after it was stopped and
    after it was killed."""
    trace, state = tmp_path / "trace.csv", tmp_path / "s.db"
    trace.write_text("id,time,nf,sla_drop\nweb-nat,0,plain,0.10\nedge-vpn,12.5,crypto-pipeline,0.05\n")
    with serving(state, "--arrivals", str(trace), *given) as (process, client):
        assert client.get("/v1/summary").json()["tenants"] == 2
        assert len(client.get("/v1/log").text.splitlines()) == 2
        placed = client.get("/v1/tenants/web-nat").json()
        address = f"{client.base_url.host}:{client.base_url.port}"
        assert "cannot be used" in refuse("serve", "--state", str(tmp_path / "t.db"), "--listen", address, *given)
        with client.stream("GET", "/v1/log", params={"after": 2, "wait_s": 0}):
            process.send_signal(number)
        assert process.wait(20) == 0 and process.stderr is not None
        last = json.loads(process.stderr.read().splitlines()[-1])
        assert (last["log"], last["version"]) == ("stopped", 2)
    with serving(state, "--arrivals", str(trace), *given) as (process, client):
        assert client.get("/v1/tenants/web-nat").json() == placed
        assert client.get("/v1/summary").json()["tenants"] == 2
        assert len(client.get("/v1/log").text.splitlines()) == 2
        process.kill()
        process.wait()
    asked = "".join(json.dumps({"event": "where", "id": tenant}) + "\n" for tenant in ("web-nat", "edge-vpn"))
    web, edge = map(json.loads, placer("online", "--state", state, "--quiet", *given, stdin=asked).stdout.splitlines())
    assert web["nic"] == placed["nic"] and edge["nic"] is not None


def place_until_killed(state: Path, given: tuple[str, ...], *identities: str) -> None:
    with serving(state, *given) as (process, client):
        for identity in identities:
            assert client.post("/v1/events", json={**ARRIVAL, "id": identity}).json()["status"] == "placed"
        process.kill()
        process.wait()


def placed(state: Path, *options: str) -> list[str]:
    with serving(state, *options) as (_, client):
        return [tenant["id"] for nic in client.get("/v1/nics").json()["nics"] for tenant in nic["tenants"]]


@pytest.mark.long
def test_a_backup_of_a_running_service_is_restored_at_a_start(
    placer: Placer, tmp_path: Path, given: tuple[str, ...]
) -> None:
    """The former state is kept; a second restore, and one of a state in use, are refused. A restart goes on."""
    state, copy = tmp_path / "s.db", tmp_path / "copies" / "c.db"
    with serving(state, *given) as (_, client):
        client.post("/v1/events", json=ARRIVAL)
        assert placer("serve", "--state", str(state), "--backup", str(copy)).status == 0
        client.post("/v1/events", json={**ARRIVAL, "id": "b"})
        assert "in use by another process" in refuse("serve", "--state", state, "--restore", copy, *ANY_PORT, *given)
    assert placed(state, "--restore", str(copy), *given) == ["a"]
    assert "before-restore is kept" in refuse("serve", "--state", state, "--restore", copy, *ANY_PORT, *given)
    place_until_killed(state, given, "c")
    assert placed(state, "--existing", *given) == ["a", "c"]
    assert placed(tmp_path / "s.db.before-restore", *given) == ["a", "b"]


@pytest.mark.long
def test_a_start_says_what_it_begins_with(tmp_path: Path, given: tuple[str, ...]) -> None:
    """A new and empty fleet, or what is continued; with --existing, a state that is missing is refused."""
    state = tmp_path / "s.db"
    missing = refuse("serve", "--state", str(state), "--existing", *ANY_PORT, *given)
    assert "s.db does not exist" in missing and not list(tmp_path.glob("s.db*"))
    for first, said in (
        (True, "s.db is new: the fleet is empty"),
        (False, "continued after event 2: 2 instances on 2"),
    ):
        lines: list[str] = []
        with serving(state, *given, said=lines) as (_, client):
            if first:
                client.post("/v1/events", json=ARRIVAL)
                client.post("/v1/events", json={**ARRIVAL, "id": "b", "sla_drop": 0})
        assert said in "".join(lines)


def test_the_port_answers_while_the_state_is_opened(tmp_path: Path) -> None:
    """With 503 and what it waits for, but that it is alive; then with what was opened. A failure is raised."""
    settings, progress, asked = ServerSettings(port=0), OpeningProgress(quiet=True), threading.Event()
    found: list[tuple[int, str, str | None]] = []

    def look(port: int) -> None:
        for path in ("/healthz", "/readyz", "/v1/summary"):
            answer = httpx.get(f"http://127.0.0.1:{port}{path}", timeout=30)
            found.append((answer.status_code, answer.json().get("error", ""), answer.headers.get("Retry-After")))
        asked.set()

    def opening() -> str:
        with progress.task("reading tenants of the state") as counted:
            counted(4_000, 10_000)
            threading.Thread(target=look, args=(listening.getsockname()[1],)).start()
            assert asked.wait(30)
        return "opened"

    with bind_socket(settings) as listening:
        assert open_behind_port(listening, settings, progress, opening) == "opened"
        waits = "the service is starting: reading tenants of the state: 4,000 of 10,000"
        assert found == [(200, "", None), (503, waits, "1"), (503, waits, "1")]
        with pytest.raises(ZeroDivisionError):
            open_behind_port(listening, settings, progress, lambda: 1 // 0)


def test_a_new_token_is_shown_once_and_works(placer: Placer, tmp_path: Path) -> None:
    """Its table goes to stdout, the token to stderr."""
    made = placer("serve", "--new-token", "web", "--scopes", "ask")
    assert made.status == 0
    (tmp_path / "tokens.toml").write_text(made.stdout)
    token = made.stderr.split()[-1]
    assert read_tokens(tmp_path / "tokens.toml").find(f"Bearer {token}") == AccessToken("web", frozenset({"ask"}))
    assert token not in made.stdout


@pytest.mark.long
def test_curl_asks_for_another_protocol_and_is_answered_under_every_name_of_the_service(
    tmp_path: Path, given: tuple[str, ...]
) -> None:
    """By `curl --http2 --json`; under any other name it is refused."""
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("there is no curl")
    with serving(tmp_path / "s.db", "--host", "placer.example", *given) as (_, client):
        port = client.base_url.port

        def status(address: str, *options: str) -> str:
            command = [curl, "-s", "-o", "/dev/null", "-w", "%{http_code}", f"http://{address}/v1/ask", *options]
            question = ["--json", '{"nf": "plain", "sla_drop": 0.1}']
            return subprocess.run([*command, *question], capture_output=True, text=True, timeout=30).stdout

        assert status(f"127.0.0.1:{port}", "--http2") == status(f"localhost:{port}", "-4") == "200"
        for name, expected in (("placer.example", "200"), ("placer.example:1", "200"), ("evil.example", "421")):
            assert status(f"127.0.0.1:{port}", "-H", f"Host: {name}") == expected


@pytest.mark.long
def test_an_empty_fleet_begins_with_a_plan_and_is_continued_after_a_kill(tmp_path: Path) -> None:
    """Both are on nic-7, where no rule would begin; an arrival that needs a NIC of its own gets nic-8."""
    (tmp_path / "trace.csv").write_text("id,time,nf,sla_drop\nweb-nat,0,NAT,0.10\nedge-ids,12.5,NIDS,0.5\n")
    plan = "strategy,predictor,id,nic,nic_model\nours,,web-nat,nic-7,bluefield-2\nours,,edge-ids,nic-7,bluefield-2\n"
    (tmp_path / "plan.csv").write_text(plan)
    options = ("--arrivals", str(tmp_path / "trace.csv"), "--plan", str(tmp_path / "plan.csv"), "--risk", "0.22")
    with serving(tmp_path / "s.db", *options) as (_, client):
        assert client.get("/v1/nics/nic-7").json()["version"] == 2
    with serving(tmp_path / "s.db", *options) as (_, client):
        assert [tenant["id"] for tenant in client.get("/v1/nics/nic-7").json()["tenants"]] == ["web-nat", "edge-ids"]
        alone = {"event": "arrive", "id": "alone", "nf": "NIDS", "sla_drop": 0}
        assert client.post("/v1/events", json=alone).json()["nic"] == "nic-8"
