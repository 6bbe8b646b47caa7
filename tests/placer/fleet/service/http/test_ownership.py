"""Tokens: without one nothing is answered, and none does more than its scopes. Those of owners place, change and remove
their instances alone, and no owner has more than its quota."""

import base64
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from placer.fleet.engine import Engine
from placer.fleet.events import FleetEvent
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import QUEUE
from placer.fleet.service.http.ownership import Quotas
from placer.fleet.service.http.routes import log_line
from placer.fleet.service.http.tokens import OwnerTable, Tokens, new_token, read_tokens
from placer.model.fleet import Fleet
from placer.policy.rules import FIRST_FIT
from placer.testing.strategies import TOY_TRAFFIC
from profiles import InputError
from tests.placer.fleet.loaded_oracle import LoadedOracle, loaded_kind
from tests.placer.fleet.service.http.toy_http import Service, service
from tests.postgres import Cluster

ARRIVAL = {"nf": "a", "sla_drop": 0.9}
TWO_INSTANCES = '[[owner]]\nname = "alice"\nmax_instances = 2\n'


def make_tokens(folder: Path, quotas: str = "") -> tuple[Tokens, dict[str, str]]:
    """A token of alice and carol, one of everything, and their headers."""
    text, headers = quotas, {}
    for name, owners in (("alice", ["alice", "carol"]), ("all", None)):
        token, table = new_token(name, ["admin"])
        text += table + (f"owners = {json.dumps(owners)}\n" if owners else "")
        headers[name] = f"Bearer {token}"
    (folder / "tokens.toml").write_text(text)
    return read_tokens(folder / "tokens.toml"), headers


def send(one: Service, authorization: str, event: str, **more: Any) -> tuple[int, dict[str, Any]]:
    answer = one.event({"Authorization": authorization}, event=event, **more)
    return answer.status_code, answer.json()


def test_a_token_of_owners_decides_on_their_instances_alone(tmp_path: Path) -> None:
    tokens, headers = make_tokens(tmp_path)
    with service(tmp_path / "s.db", tokens=tokens) as one:
        mine, everything = headers["alice"], headers["all"]
        for identity, owner in (("hers", "alice"), ("his", "bob"), ("nobodys", "")):
            owned = {"owner": owner} if owner else {}
            assert send(one, everything, "arrive", id=identity, **ARRIVAL, **owned)[0] == 200
        group = [{"id": "g1", **ARRIVAL, "owner": "alice"}, {"id": "g2", **ARRIVAL, "owner": "bob"}]
        measured = [{"id": "his", "throughput_kpps": 1}]
        refused = [
            send(one, mine, "arrive", id="x", **ARRIVAL, owner="bob"),
            send(one, mine, "reserve", id="x", ttl_s=60, **ARRIVAL),
            send(one, mine, "group", id="g", arrivals=group),
            send(one, mine, "change", id="his", sla_drop=0.8),
            send(one, mine, "depart", id="nobodys"),
            send(one, mine, "depart", id="his", dry_run=True),
            send(one, mine, "measured", nic="nic-1", window_s=1, instances=measured),
        ]
        assert {status for status, _ in refused} == {403} and one.engine.events == 3
        assert [answer["error"].partition(";")[0] for _, answer in refused] == [
            "'x' is of owner 'bob'", "'x' has no owner", "'g2' is of owner 'bob'", "'his' is of owner 'bob'",
            "'nobodys' has no owner", "'his' is of owner 'bob'", "'his' is of owner 'bob'",
        ]  # fmt: skip
        assert refused[0][1]["error"].endswith("the token is for instances of 'alice' or 'carol'")
        allowed = [
            send(one, mine, "arrive", id="x", **ARRIVAL, owner="carol"),
            send(one, mine, "change", id="hers", sla_drop=0.8),
            send(one, mine, "depart", id="hers"),
            send(one, mine, "where", id="his"),
            send(one, mine, "drain", nic="nic-1"),
        ]
        assert {status for status, _ in allowed} == {200}
        assert send(one, mine, "depart", id="unknown")[0] == 409


@pytest.mark.parametrize("in_database", [False, True])
def test_each_token_has_idempotency_keys_of_its_own(tmp_path: Path, postgres: Cluster, in_database: bool) -> None:
    """Of alice's request, another token learns nothing by her key; her own key still answers after a restart."""
    tokens, headers = make_tokens(tmp_path)
    key = {"Idempotency-Key": "k"}
    alice, everything = ({**key, "Authorization": headers[name]} for name in ("alice", "all"))
    where = postgres.database() if in_database else tmp_path / "s.db"
    arrival = {"event": "arrive", "id": "x", **ARRIVAL, "owner": "alice"}
    with service(where, tokens=tokens) as one:
        first = one.event(alice, **arrival)
        assert one.event(everything, **arrival).json()["moves"] == [] != first.json()["moves"]
        assert one.event(everything, event="depart", id="x").status_code == 422
        assert one.event({"Authorization": headers["all"]}, event="depart", id="x").status_code == 200
    with service(where, tokens=tokens) as one:
        assert one.event(alice, **arrival).text == first.text
        assert one.engine.fleet.tenants == 0


def test_the_log_has_the_time_and_the_token_of_each_event(tmp_path: Path) -> None:
    """Webhooks post the same lines; of what no token sent, and of an earlier version, they have less."""
    tokens, headers = make_tokens(tmp_path)
    with service(tmp_path / "s.db", tokens=tokens) as one:
        begun = datetime.now(UTC)
        send(one, headers["alice"], "arrive", id="x", **ARRIVAL, owner="alice")
        send(one, headers["all"], "rebalance", budget=3)
        send(one, headers["all"], "depart", id="x")
        rows = one.client.get("/v1/log", headers={"Authorization": headers["all"]}).text.splitlines()
        found = [json.loads(row) for row in rows]
        assert [(row["number"], row["actor"]) for row in found] == [(1, "alice"), (2, "all")]
        times = [datetime.fromisoformat(row["time"]) for row in found]
        assert begun - timedelta(seconds=0.001) <= times[0] <= times[1] <= datetime.now(UTC)
    assert log_line(7, "{}", "{}", 1.5, None) == (
        '{"number": 7, "time": "1970-01-01T00:00:01.500Z", "event": {}, "answer": {}}'
    )
    assert log_line(7, "{}", "{}", None, None) == '{"number": 7, "event": {}, "answer": {}}'


@pytest.mark.parametrize("in_database", [False, True])
def test_a_state_of_the_former_version_has_neither_times_nor_actors_before(
    tmp_path: Path, postgres: Cluster, in_database: bool
) -> None:
    where = postgres.database() if in_database else tmp_path / "s.db"
    with service(where) as one:
        one.arrive("x", "a")
    if in_database:
        with psycopg.connect(str(where), autocommit=True) as connection:
            for column in ("time", "actor"):
                connection.execute(f"ALTER TABLE log DROP COLUMN {column}".encode())
            connection.execute("UPDATE head SET layout = '4'")
            connection.execute("DELETE FROM agents")
    else:
        with closing(sqlite3.connect(where, isolation_level=None)) as file:
            for column in ("time", "actor"):
                file.execute(f"ALTER TABLE log DROP COLUMN {column}")
    with service(where) as one:
        one.arrive("y", "a")
        assert [("time" in row, "actor" in row) for row in one.log()] == [(False, False), (True, False)]


def test_an_owner_has_at_most_as_many_instances_as_its_quota(tmp_path: Path) -> None:
    """Reservations count, groups as a whole; taking a reserved place adds none, and a dry run is refused alike."""
    tokens, headers = make_tokens(tmp_path, TWO_INSTANCES)
    with service(tmp_path / "s.db", tokens=tokens) as one:
        of_all, alice = headers["all"], {**ARRIVAL, "owner": "alice"}
        group = [{"id": f"g{at}", **alice} for at in range(3)]
        assert send(one, of_all, "group", id="g", arrivals=group) == (
            409, {"ok": False, "error": "owner 'alice' has 0 of at most 2 instances", "cause": "quota"},
        )  # fmt: skip
        assert send(one, of_all, "reserve", id="r", ttl_s=60, **alice)[0] == 200
        assert send(one, of_all, "arrive", id="x", **alice)[0] == 200
        for more in ({}, {"dry_run": True}):
            status, answer = send(one, of_all, "arrive", id="y", **alice, **more)
            assert (status, answer["cause"]) == (409, "quota")
        for identity in "rx":
            assert send(one, of_all, "arrive", id=identity, **alice)[1]["status"] == "placed"
        assert send(one, of_all, "arrive", id="y", **ARRIVAL, owner="bob")[0] == 200
        assert send(one, of_all, "depart", id="x")[0] == 200
        assert send(one, of_all, "arrive", id="z", **alice)[0] == 200 and one.engine.fleet.owned["alice"][0] == 2


def test_agents_that_share_a_database_keep_quotas(postgres: Cluster, tmp_path: Path) -> None:
    """An arrival at one agent counts for the next one at another, which has not heard of it."""
    tokens, headers = make_tokens(tmp_path, TWO_INSTANCES)
    address, alice = postgres.database(), {**ARRIVAL, "owner": "alice"}
    with service(address, tokens=tokens) as one, service(address, tokens=tokens) as other:
        statuses = [send(agent, headers["alice"], "arrive", id=f"x{at}", **alice)[0]
                    for at, agent in enumerate((one, other, one, other))]  # fmt: skip
        assert statuses == [200, 200, 409, 409]


def test_an_agent_refuses_no_token_by_what_another_has_changed_since(postgres: Cluster, tmp_path: Path) -> None:
    """An instance of bob has left, and is alice's now, of which the first agent has not heard."""
    tokens, headers = make_tokens(tmp_path)
    address = postgres.database()
    with service(address, tokens=tokens) as one, service(address, tokens=tokens) as other:
        assert send(one, headers["all"], "arrive", id="x", **ARRIVAL, owner="bob")[0] == 200
        assert send(other, headers["all"], "depart", id="x")[0] == 200
        assert send(other, headers["all"], "arrive", id="x", **ARRIVAL, owner="alice")[0] == 200
        assert send(one, headers["alice"], "depart", id="x")[0] == 200


class Limited:
    """NICs of eight cores on which `a` gets one, two or four, and 100 kpps with each; alice has so many."""

    def __init__(self, max_cores: int, count: int = 2) -> None:
        self.engine = Engine(Fleet([loaded_kind(count=count)]), [LoadedOracle()], FIRST_FIT, when_full=QUEUE)
        self.quotas = Quotas({"alice": OwnerTable(name="alice", max_cores=max_cores)})

    def send(self, **event: Any) -> str | None:
        """What the quota has against an event; without that, it is decided on."""
        read: FleetEvent = Reader(TOY_TRAFFIC, lambda workload: (), self.engine.workload_of).read(json.dumps(event))
        fault = self.quotas.fault(self.engine, read)
        if fault is None:
            self.engine.handle(read)
        return fault

    def arrive(self, identity: str, kpps: float, **more: Any) -> str | None:
        return self.send(event="arrive", id=identity, nf="a", rate_kpps=kpps, owner="alice", **more)


def test_an_owner_takes_at_most_as_many_cores_as_its_quota() -> None:
    """Also where the number depends on the NIC, and after a change; what takes no more than before is allowed."""
    fleet = Limited(5)
    assert fleet.arrive("x", 150.0) is None and fleet.engine.fleet.owned["alice"] == (1, 2)
    assert fleet.arrive("y", 390.0) == "owner 'alice' takes 2 of at most 5 cores, and would take 6"
    assert fleet.arrive("y", 90.0, cores=4) == "owner 'alice' takes 2 of at most 5 cores, and would take 6"
    assert fleet.arrive("y", 150.0) is None and fleet.engine.fleet.owned["alice"] == (2, 4)
    assert fleet.send(event="change", id="x", rate_kpps=390) == (
        "owner 'alice' takes 4 of at most 5 cores, and would take 6"
    )
    assert fleet.send(event="change", id="x", rate_kpps=90) is None
    fleet.quotas = Quotas({"alice": OwnerTable(name="alice", max_cores=1)})
    assert fleet.send(event="change", id="y", sla_drop=0.1) is None
    assert fleet.send(event="depart", id="x") is None


def test_a_queued_instance_counts_with_the_most_cores_that_it_may_get() -> None:
    fleet = Limited(8, count=1)
    assert fleet.arrive("x", 390.0) is None and fleet.arrive("waits", 150.0) is None
    assert fleet.engine.fleet.owned["alice"] == (1, 4) and "waits" in fleet.engine.waiting
    assert fleet.arrive("too many", 50.0) == "owner 'alice' takes 8 of at most 8 cores, and would take 9"


def test_a_token_file_is_refused_with_every_fault_of_tokens_and_owners(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(
        '[[token]]\nname = "a"\nsha256 = "12"\nscopes = ["ask"]\nowners = []\n'
        '[[owner]]\nname = "x"\nmax_cores = -1\n[[owner]]\nname = "x"\nmax_instances = 1\n'
        '[[owner]]\nname = "x"\nmax_instances = 2\n[[owner]]\nname = "y"\nmost = 3\n[other]\n'
    )
    with pytest.raises(InputError) as error:
        read_tokens(path)
    assert [(fault.line, fault.column) for fault in error.value.faults] == [
        (3, "sha256"), (5, "owners"), (8, "max_cores"), (13, "name"), (17, "most"), (None, "other"),
    ]  # fmt: skip
    path.write_text('[owner]\nname = "x"\n')
    with pytest.raises(InputError) as error:
        read_tokens(path)
    assert [fault.column for fault in error.value.faults] == ["token", "owner"]
    path.write_text('[[owner]]\nname = "x"\n' + new_token("a", ["ask"])[1])
    with pytest.raises(InputError, match="limits nothing: give max_instances or max_cores"):
        read_tokens(path)


ARRIVAL_OF_D = {"event": "arrive", "id": "a", "nf": "d", "sla_drop": 0.5}


def test_each_scope_allows_what_it_says_and_no_more(tmp_path: Path) -> None:
    """Asking, deciding on tenants, deciding on NICs."""
    made = {scope: new_token(scope, [scope]) for scope in ("ask", "decide", "admin")}
    (tmp_path / "tokens.toml").write_text("".join(table for _, table in made.values()))
    tokens = read_tokens(tmp_path / "tokens.toml")
    question, join = {"nf": "d", "sla_drop": 0.5}, {"event": "join", "nic": "r", "nic_model": "toy-0"}
    with service(tmp_path / "s.db", tokens=tokens) as one:
        found = {}
        for scope, (token, _) in made.items():
            headers = {"Authorization": f"Bearer {token}"}
            found[scope] = [
                one.client.post("/v1/ask", json=question, headers=headers).status_code,
                one.client.post("/v1/events", json=ARRIVAL_OF_D, headers=headers).status_code,
                one.client.post("/v1/events", json=join, headers=headers).status_code,
            ]
        assert found == {"ask": [200, 403, 403], "decide": [200, 200, 403], "admin": [200, 200, 200]}
        basic = base64.b64encode(f"any:{made['decide'][0]}".encode()).decode()
        assert one.client.get("/v1/nics", headers={"Authorization": f"Basic {basic}"}).status_code == 200


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer x", "Basic ???", "Basic eDp5", "Token x", "Bearer \x80"])
def test_without_a_known_token_nothing_is_answered_and_nothing_changes(tmp_path: Path, header: str | None) -> None:
    """Only health and the page are open."""
    _, table = new_token("x", ["admin"])
    (tmp_path / "tokens.toml").write_text(table)
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    with service(tmp_path / "s.db", tokens=read_tokens(tmp_path / "tokens.toml")) as one:
        for method, path in (("POST", "/v1/events"), ("POST", "/v1/ask"), ("GET", "/v1/nics"), ("GET", "/metrics")):
            answer = one.client.request(method, path, json=ARRIVAL_OF_D, headers=headers)  # type: ignore[arg-type]
            assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
        assert one.client.get("/healthz").status_code == 200 and one.engine.events == 0


def test_a_token_file_holds_no_token_and_its_faults_are_named(tmp_path: Path) -> None:
    token, table = new_token("web", ["ask", "decide"])
    assert token not in table
    path = tmp_path / "tokens.toml"
    path.write_text('[[token]]\nname = "a"\nsha256 = "12"\nscopes = ["root"]\nweight = 0\n')
    with pytest.raises(InputError) as error:
        read_tokens(path)
    assert [(fault.line, fault.column) for fault in error.value.faults] == [(3, "sha256"), (4, "scopes"), (5, "weight")]
    for text, weight in (("", 1.0), ("weight = 3\n", 3.0), ("weight = 0.5\n", 0.5)):
        path.write_text(table + text)
        found = read_tokens(path).find(f"Bearer {token}")
        assert found is not None
        assert found.weight == weight
    path.write_text(table + table.replace('"web"', '"other"'))
    with pytest.raises(InputError, match="is the token of web, too"):
        read_tokens(path)
    path.write_text("")
    with pytest.raises(InputError, match="no \\[\\[token\\]\\] table"):
        read_tokens(path)
    with pytest.raises(InputError, match="no scope"):
        new_token("x", ["root"])
