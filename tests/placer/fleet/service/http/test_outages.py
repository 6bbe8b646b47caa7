"""A state that cannot be written or reached for a while: reads go on, nothing that was answered is lost."""

import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from placer.fleet.service.http import writer
from placer.fleet.state.saved import Unwritable
from placer.fleet.state.store import State
from placer.testing.strategies import catalogue
from tests.placer.fleet.service.http.toy_http import Service, service
from tests.postgres import Cluster, cluster, needs_postgres

ARRIVAL = {"event": "arrive", "nf": "d", "sla_drop": 0.9}
KINDS = catalogue((None, 1.0)).kinds


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that tries again and gives up soon."""
    for name, seconds in (("RETRY_SECONDS", 0.02), ("PATIENCE_SECONDS", 0.1), ("MAINTAINED_EVERY_S", 0.02)):
        monkeypatch.setattr(writer, name, seconds)


def eventually(one: Service, path: str, status: int) -> dict[str, object]:
    for _ in range(600):
        found = one.client.get(path)
        if found.status_code == status:
            return dict(found.json())
        time.sleep(0.05)
    raise AssertionError(f"{path} is not answered with {status}")


def fill(one: Service, pages: int) -> None:
    """Let the disk have room for so many more pages of the state."""
    file = one.writer.state._file  # type: ignore[attr-defined]
    ((used,),) = file.execute("PRAGMA page_count")
    file.execute(f"PRAGMA max_page_count = {used + pages}")


def arrive_until_full(one: Service) -> list[str]:
    """Instances that were answered as placed, before one was not answered with 200."""
    answered: list[str] = []
    for number in range(2_000):
        identity = f"{number}-{'x' * 200}"
        found = one.event({"Idempotency-Key": identity[:100]}, **ARRIVAL, id=identity)
        if found.status_code != 200:
            assert (found.status_code, found.headers["Retry-After"]) == (503, "1")
            assert "is full" in found.json()["error"]
            assert "not known whether it was decided" in found.json()["error"]
            return answered
        answered.append(identity)
    raise AssertionError("the disk is never full")


def test_a_full_disk_stops_decisions_only_and_they_go_on_by_themselves(tmp_path: Path, hasty: None) -> None:
    """What was sent into the full disk is decided once, by its key; every answer is in the state."""
    with service(tmp_path / "s.db", count=None) as one:
        fill(one, pages=4)
        answered = arrive_until_full(one)
        unknown = f"{len(answered)}-{'x' * 200}"
        refused = one.event(**ARRIVAL, id="other")
        assert (refused.status_code, "not known" in refused.json()["error"]) == (503, False)
        assert eventually(one, "/readyz", 503)["ok"] is False
        assert one.client.get("/healthz").status_code == 200
        read = one.client.get(f"/v1/tenants/{answered[0]}")
        assert (read.status_code, read.headers["Age"].isdigit()) == (200, True)
        assert len(one.log()) == len(answered)
        assert "placer_state_outages_total 1.0" in one.client.get("/metrics").text
        one.writer.state._file.execute("PRAGMA max_page_count = 1000000000")
        eventually(one, "/readyz", 200)
        assert "Age" not in one.client.get("/v1/summary").headers
        again = one.event({"Idempotency-Key": unknown[:100]}, **ARRIVAL, id=unknown)
        assert (again.status_code, again.json()["version"]) == (200, len(answered) + 1)
        assert one.arrive("last")["version"] == len(answered) + 2
    with State(tmp_path / "s.db", KINDS) as state:
        assert sorted([tenant.id for tenant in state.fleet.all_tenants()]) == sorted([*answered, unknown, "last"])
        assert [json.loads(event)["id"] for event, _ in state.log()] == [*answered, unknown, "last"]


def test_a_service_that_ends_while_the_disk_is_full_keeps_what_it_has_answered(tmp_path: Path, hasty: None) -> None:
    """What it has not answered may be lost."""
    with pytest.raises(Unwritable, match="is full"), service(tmp_path / "s.db", count=None) as one:
        fill(one, pages=4)
        answered = arrive_until_full(one)
    with State(tmp_path / "s.db", KINDS) as state:
        assert sorted(tenant.id for tenant in state.fleet.all_tenants()) == sorted(answered)


@pytest.mark.parametrize("by", ["deleted", "replaced"])
def test_a_state_file_that_is_gone_is_noticed_and_one_that_is_back_is_used(
    tmp_path: Path, hasty: None, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    """Without an event, too; nothing is written into a file that nobody will find."""
    path, aside = tmp_path / "s.db", tmp_path / "aside.db"
    State(tmp_path / "other.db", KINDS).close()
    with service(path, count=None) as one:
        one.arrive("a")
        path.rename(aside)
        if by == "replaced":
            (tmp_path / "other.db").rename(path)
        why = eventually(one, "/readyz", 503)["error"]
        assert why == f"{path} is now another file" if by == "replaced" else f"{path} is no longer there" in str(why)
        assert one.event(**ARRIVAL, id="b").status_code == 503
        assert one.client.get("/v1/tenants/a").status_code == 200
        aside.rename(path)
        eventually(one, "/readyz", 200)
        assert one.arrive("b")["status"] == "placed"
    logged = [json.loads(line)["log"] for line in capsys.readouterr().err.splitlines()]
    assert [line for line in logged if line != "request"] == ["the state is away", "the state is back"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.long
def test_a_file_system_that_is_full_and_has_room_again(small_disk: Path, hasty: None) -> None:
    """Another file takes the room, as a log does that nobody rotates."""
    with service(small_disk / "s.db", count=None) as one:
        answered = arrive_until_full(one)
        assert one.event(**ARRIVAL, id="x").status_code == 503
        subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
        eventually(one, "/readyz", 200)
        assert one.arrive("last")["version"] == len(answered) + 2
    with State(small_disk / "s.db", KINDS) as state:
        assert len(list(state.fleet.all_tenants())) == len(answered) + 2


@pytest.mark.long
@needs_postgres
def test_a_database_that_is_stopped_or_hangs_holds_up_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    """Events are answered with 503 within seconds, those under way, too; reads come from memory, with their age."""
    with cluster() as server, service(server.database()) as one, ThreadPoolExecutor(8) as pool:
        one.arrive("a")
        hangs = (partial(pause, server, "STOP"), partial(pause, server, "CONT"))
        for stop, start in ((server.stop, server.start), hangs):
            sent = [pool.submit(timed, one, f"{number}") for number in range(4)]
            stop()
            sent += [pool.submit(timed, one, f"late-{number}") for number in range(4)]
            statuses, seconds = zip(*(future.result() for future in sent), strict=True)
            assert set(statuses) <= {200, 503} and max(seconds) < 2 * writer.PATIENCE_SECONDS + 5
            eventually(one, "/readyz", 503)
            begun = time.monotonic()
            read = one.client.get("/v1/tenants/a")
            assert (read.status_code, int(read.headers["Age"]) >= 0) == (200, True)
            assert one.client.post("/v1/ask", json={"nf": "a", "sla_drop": 0.9}).status_code == 200
            assert one.client.get("/v1/log").status_code == 503
            assert one.event(**ARRIVAL, id="z").status_code == 503
            assert time.monotonic() - begun < 2 * writer.PATIENCE_SECONDS + 5
            start()
            eventually(one, "/readyz", 200)
            assert one.event(event="where", id="a").json()["status"] == "placed"
        assert "placer_state_outages_total 2.0" in one.client.get("/metrics").text
    logged = map(json.loads, capsys.readouterr().err.splitlines())
    # a line of a request, or the count of those that were left out
    shown = [line["log"] for line in logged if line.get("of", line["log"]) != "request"]
    assert shown == ["the state is away", "the state is back"] * 2


def timed(one: Service, identity: str) -> tuple[int, float]:
    """The status of an event, and the seconds until it was answered."""
    begun = time.monotonic()
    return one.event({"Idempotency-Key": identity}, **ARRIVAL, id=identity).status_code, time.monotonic() - begun


def pause(server: Cluster, signal: str) -> None:
    """Stop all processes of a server, or let them go on: a database that accepts and does not answer."""
    leader = (server.folder / "data" / "postmaster.pid").read_text().splitlines()[0]
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", leader], capture_output=True, text=True, check=True)
    subprocess.run(["kill", f"-{signal}", leader, *children.stdout.split()], check=True)
