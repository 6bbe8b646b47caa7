"""Events over HTTP: one answer for each, kept by key, and nothing that is decided on old knowledge. Questions over HTTP
change nothing and say why."""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from placer.fleet.state.store import State
from placer.testing.strategies import catalogue
from tests.placer.fleet.service.http.toy_http import service

ARRIVAL = {"event": "arrive", "id": "a", "nf": "d", "sla_drop": 0.5}


def test_an_event_is_answered_as_a_line_is_with_its_version(place: Path | str) -> None:
    """The first event is version 1, and it is on disk when it is answered."""
    with service(place) as one:
        answer = one.event(**ARRIVAL)
        assert answer.status_code == 200
        assert answer.json() == {
            "ok": True, "event": "arrive", "id": "a", "status": "placed", "nic": "nic-1",
            "moves": [{"id": "a", "from": None, "to": "nic-1"}], "version": 1,
        }  # fmt: skip
        assert [row["number"] for row in one.log()] == [1]


def test_an_arrival_over_http_preempts_by_priority_only_if_it_asks_for_it(place: Path | str) -> None:
    """What would be and what is are one answer; instances are shown with their priority."""
    vip = ARRIVAL | {"id": "vip", "priority": 7}
    with service(place, count=1) as one:
        assert [one.event(**ARRIVAL | {"id": name}).json()["status"] for name in "ab"] == ["placed", "placed"]
        (reason, *_) = one.event(**vip).json()["reasons"]
        assert (reason["cause"], reason["with"]) == ("priority", ["a"])
        expected = one.event(**vip, preempt=True, dry_run=True).json()
        answer = one.event(**vip, preempt=True).json()
        assert expected | {"version": 3} == answer | {"version": 3}
        assert (answer["nic"], answer["queued"]) == ("nic-1", ["a"])
        shown = one.client.get("/v1/tenants").json()["tenants"]
        assert [(here["id"], here["status"], here.get("priority")) for here in shown] == [
            ("a", "queued", None), ("b", "placed", None), ("vip", "placed", 7),
        ]  # fmt: skip


def test_a_dry_run_is_answered_as_its_event_then_is_and_changes_nothing(place: Path | str) -> None:
    """Also a refusal; it is not in the log, and its key is free for the event itself."""
    arrivals = [ARRIVAL | {"id": f"{nf}{number}", "nf": nf} for nf in "dab" for number in range(4)]
    events: list[dict[str, object]] = [
        *arrivals[:4], {"event": "depart", "id": "d1"}, {"event": "depart", "id": "d1"},
        {"event": "depart", "id": "d3"}, {"event": "rebalance", "budget": 3}, *arrivals[4:],
        {"event": "change", "id": "a0", "sla_drop": 0.1}, {"event": "change", "id": "x", "sla_drop": 0.1},
        ARRIVAL | {"nf": "x"}, ARRIVAL | {"sla_drop": 7},
        {"event": "cordon", "nic": "nic-1"}, {"event": "uncordon", "nic": "nic-1"}, {"event": "drain", "nic": "nic-2"},
        {"event": "return", "nic": "nic-2"}, {"event": "fail", "nic": "nic-1"}, {"event": "leave", "nic": "nic-1"},
        {"event": "leave", "nic": "nic-2"}, {"event": "join", "nic": "nic-1", "nic_model": "toy-0"},
    ]  # fmt: skip
    with service(place, count=3) as one:
        for number, event in enumerate(events):
            version, key = one.engine.events, {"Idempotency-Key": str(number)}
            expected = one.client.post("/v1/events", json=event | {"dry_run": True}, headers=key)
            assert one.engine.events == version and len(one.log()) == version
            answer = one.client.post("/v1/events", json=event, headers=key)
            assert (expected.status_code, expected.json() | {"version": 0}) == (
                answer.status_code, answer.json() | {"version": 0}
            )  # fmt: skip
        assert {row["event"]["event"] for row in one.log()} == {str(event["event"]) for event in events}


EVENT, BATCH, ASK = "/v1/events", "/v1/events:batch", "/v1/ask"
REFUSED: list[tuple[str, str, int, str]] = [
    *((EVENT, body, 409, message) for body, message in (
        ('{"event": "arrive", "id": "a", "nf": "x", "sla_drop": 0.1}', "'x' is not profiled"),
        ('{"event": "depart", "id": "a"}', "'a' is not placed or queued"),
        ('{"event": "change", "id": "a", "sla_drop": 0.2}', "'a' is not placed or queued"),
        ('{"event": "fail", "nic": "nic-1"}', "never in use"),
    )),
    *((EVENT, body, 422, message) for body, message in (
        ('{"event": "where", "id": "a", "dry_run": true}', "dry_run: unknown key"),
        ('{"event": "fail", "nic": "a", "dry_run": 1}', "dry_run: "),
        ("{", "is not JSON"),
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"event": "arrive", "id": "a", "nf": "d"}', "no SLA"),
        ('{"event": "arrive", "id": "a", "nf": "x", "sla_drop": 7}', "'x' is not profiled"),
        ('{"event": "arrive", "id": "", "nf": "d", "sla_drop": 7}', "sla_drop: "),
        ('{"event": "arrive", "id": "a", "nf": "d", "sla_drop": NaN}', "sla_drop: "),
        ('{"event": "arrive", "id": "a", "nf": "d", "sla_drop": 1e999}', "sla_drop: "),
    )),
    (ASK, '{"nf": "x", "sla_drop": 0.1}', 409, "'x' is not profiled"),
    *((ASK, body, 422, message) for body, message in (
        ("{}", "nf"),
        ('{"nf": "d"}', "no SLA"),
        ('{"nf": "d", "sla_drop": 0.1, "count": 0}', "count"),
        ('{"nf": "d", "sla_drop": 0.1, "count": 2, "top": 2}', "one of the two"),
        ('{"nf": "d", "sla_drop": 0.1, "traffic": {"flow": 1}}', "flow"),
        ('{"nf": "d", "sla_drop": 0.1, "sla_drop": 0.9}', "sla_drop: is given twice"),
        ('{"nf": "d", "sla_drop": 0.5, "traffic": {"flows": 1000, "flows": 2000}}', "flows: is given twice"),
        ('{"nf": "d", "\\u006ef": "a", "sla_drop": 0.5}', "nf: is given twice"),
    )),
    *((path, body, 422, f"{key}: is given twice") for path in (EVENT, BATCH) for body, key in (
        ('{"event": "arrive", "id": "a", "id": "b", "nf": "d", "sla_drop": 0.1}', "id"),
        ('{"event": "depart", "event": "where", "id": "a"}', "event"),
        ('{"event": "change", "id": "a", "sla_drop": 0.1, "sla_drop": 0.2}', "sla_drop"),
        ('{"event": "fail", "nic": "nic-1", "nic": "nic-2"}', "nic"),
        ('{"event": "join", "nic": "x", "nic_model": "toy-0", "nic_model": "toy-0"}', "nic_model"),
        ('{"event": "rebalance", "budget": 1, "budget": 2}', "budget"),
        ('{"event": "measured", "nic": "nic-1", "window_s": 1, "instances": '
         '[{"id": "a", "throughput_kpps": 1, "throughput_kpps": 2}]}', "throughput_kpps"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "status", "message"), REFUSED, ids=[row[0] + row[1][:60] for row in REFUSED])
def test_what_is_malformed_is_422_and_what_is_impossible_409(
    place: Path | str, path: str, body: str, status: int, message: str
) -> None:
    """Events of every kind, lines of a batch and questions; the answer names the key, and nothing changes."""
    with service(place) as one:
        answer = one.client.post(path, content=body)
        assert path == BATCH or answer.status_code == status
        assert answer.json()["ok"] is False and message in answer.json()["error"] and one.engine.events == 0


def test_the_same_key_and_request_get_the_same_answer_also_after_a_restart(place: Path | str) -> None:
    """Refusals are kept, too; another request with the key is refused."""
    with service(place) as one:
        first = one.event({"Idempotency-Key": "k"}, **ARRIVAL)
        refused = one.event({"Idempotency-Key": "r"}, event="depart", id="b")
        one.arrive("b")
        assert one.event({"Idempotency-Key": "k"}, **ARRIVAL).text == first.text
    with service(place) as one:
        assert one.event({"Idempotency-Key": "k"}, **ARRIVAL).text == first.text
        again = one.event({"Idempotency-Key": "r"}, event="depart", id="b")
        assert (again.status_code, again.text) == (409, refused.text)
        other = one.event({"Idempotency-Key": "k"}, **{**ARRIVAL, "id": "c"})
        assert other.status_code == 422 and "another request" in other.json()["error"]
        assert one.engine.events == 2


def test_many_clients_with_one_key_are_decided_once(place: Path | str) -> None:
    """Sixteen threads send the same."""
    with service(place) as one, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: one.event({"Idempotency-Key": "k"}, **ARRIVAL).text, range(16)))
        assert len(set(answers)) == 1 and one.engine.events == 1


def test_a_batch_is_answered_line_by_line_in_order(place: Path | str) -> None:
    """A line that is refused does not keep the others off."""
    lines = [{**ARRIVAL, "id": str(number)} for number in range(300)] + [{"event": "depart", "id": "x"}]
    body = "\n".join(map(json.dumps, lines))
    with service(place, count=None) as one:
        first = one.client.post("/v1/events:batch", content=body, headers={"Idempotency-Key": "b"})
        answers = [json.loads(line) for line in first.text.splitlines()]
        assert [answer.get("id") for answer in answers] == [*map(str, range(300)), None]
        assert [answer.get("version") for answer in answers[:300]] == list(range(1, 301))
        again = one.client.post("/v1/events:batch", content=body, headers={"Idempotency-Key": "b"})
        assert again.text == first.text


def test_an_arrival_on_a_nic_that_changed_since_the_version_is_412(place: Path | str) -> None:
    """Changes of another NIC do not matter."""
    with service(place) as one:
        one.arrive("a")
        version = one.ask(nf="a", sla_drop=0.5)["version"]
        one.event(event="join", nic="rack-1", nic_model="toy-0")
        pinned = {"event": "arrive", "nf": "a", "sla_drop": 0.9, "nic": "nic-1"}
        assert one.event({"If-Version": str(version)}, id="b", **pinned).status_code == 200
        assert one.event({"If-Version": str(version)}, id="c", **pinned).status_code == 412
        assert one.event({"If-Version": str(one.engine.events)}, id="c", **pinned).status_code == 200
        assert one.event({"If-Version": "x"}, id="d", **pinned).status_code == 422


def test_a_version_that_would_not_be_looked_at_is_refused(place: Path | str) -> None:
    """A client that sends it relies on it. With another version, a request with its key is another request."""
    with service(place) as one:
        one.arrive("a")
        for event in ({"event": "depart", "id": "a"}, {**ARRIVAL, "id": "b"}):
            assert one.event({"If-Version": "0"}, **event).status_code == 422
        pinned, old = {**ARRIVAL, "id": "b", "nic": "nic-1"}, {"If-Version": "0"}
        assert one.client.post("/v1/events:batch", content=json.dumps(pinned), headers=old).status_code == 422
        given = [one.event({"Idempotency-Key": "k", "If-Version": text}, **pinned).status_code for text in "0010"]
        assert given == [412, 412, 422, 412] and one.engine.events == 1


def test_a_key_is_of_one_event_or_of_several_and_no_key_is_that_of_a_line(place: Path | str) -> None:
    """What was sent with it before is not sent again by a request of the other form."""
    first, second = ({**ARRIVAL, "id": text} for text in "xy")

    def send(key: str, *events: dict[str, Any]) -> list[Any]:
        body = "\n".join(map(json.dumps, events))
        given = one.client.post("/v1/events:batch", content=body, headers={"Idempotency-Key": key})
        return [json.loads(line)["ok"] for line in given.text.splitlines()]

    with service(place, count=None) as one:
        assert send("one", first) == [True] and send("one", first, second) == [False, False]
        assert send("two", second, first) == [True, True] and send("two", second) == [False]
        assert send("two#1", {"event": "depart", "id": "x"}) == send("two#1", {"event": "depart", "id": "x"}) == [True]
        assert send("two", second, first) == [True, True] and one.engine.events == 3


def test_the_log_waits_for_the_next_event(place: Path | str) -> None:
    """A question that waits is answered when the event is committed, long before its time is over."""
    with service(place) as one, ThreadPoolExecutor(2) as pool:
        one.arrive("a")
        waiting = pool.submit(one.log, 1, 30)
        one.arrive("b")
        assert [(row["number"], row["event"]["id"]) for row in waiting.result(10)] == [(2, "b")]
        assert [row["number"] for row in one.log()] == [1, 2] and one.log(2) == []


def test_a_state_that_cannot_be_written_ends_the_service_and_nothing_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit fails as on a full disk."""
    with service(tmp_path / "s.db") as one:
        one.arrive("a")

        def full() -> None:
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(one.writer.state, "commit", full)
        assert one.event(**{**ARRIVAL, "id": "b"}).status_code == 503
        assert one.client.get("/healthz").status_code == 503
        assert one.client.get("/v1/tenants/b").status_code == 503
        monkeypatch.undo()
    with State(tmp_path / "s.db", catalogue((3, 1.0)).kinds) as state:
        assert [tenant.id for tenant in state.fleet.all_tenants()] in (["a"], ["a", "b"])


def test_more_requests_than_may_wait_are_turned_away(place: Path | str) -> None:
    """With room for none, every event is 429 and says when to retry."""
    with service(place) as one:
        one.writer._most_waiting = 0
        answer = one.event(**ARRIVAL)
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
        assert one.client.post("/v1/events:batch", content=json.dumps(ARRIVAL)).status_code == 429
        assert "placer_overload_total 2.0" in one.client.get("/metrics").text and one.engine.events == 0


def test_a_request_of_too_many_or_too_large_events_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole: the events before the limit are not taken either."""
    line = json.dumps(ARRIVAL).encode()
    with service(tmp_path / "s.db") as one:
        monkeypatch.setattr("placer.fleet.service.http.routes.MOST_EVENTS", 2)
        large = json.dumps({**ARRIVAL, "id": "x" * 1_000_001}).encode()
        for body in (b"\n".join([line] * 3), b"\n".join([line, large])):
            assert one.client.post("/v1/events:batch", content=body).status_code == 413
        assert one.client.post("/v1/events", content=large).status_code == 413
        assert one.client.post("/v1/events", content=b" " * 16 * 1024 * 1024 + line).status_code == 413
        assert one.engine.events == 0
        assert one.client.post("/v1/events:batch", content=b"\n".join([line] * 2)).status_code == 200


def test_every_refusal_is_counted_by_its_status(tmp_path: Path) -> None:
    """Also those that never reach the engine; one that is repeated by its key is counted once."""
    with service(tmp_path / "s.db") as one:
        one.arrive("a")
        pinned = {"event": "arrive", "id": "b", "nf": "a", "sla_drop": 0.9, "nic": "nic-1"}
        assert one.event({"If-Version": "0"}, **pinned).status_code == 412
        for _ in range(2):
            assert one.event({"Idempotency-Key": "k"}, event="depart", id="x").status_code == 409
        assert one.event({"Idempotency-Key": "k"}, event="depart", id="y").status_code == 422
        shown = one.client.get("/metrics").text
        for status in (409, 412, 422):
            assert f'placer_refused_total{{status="{status}"}} 1.0' in shown


def test_who_reads_does_not_wait_until_no_event_waits(place: Path | str) -> None:
    """Reads between the batches of a long request see what was committed until then."""
    total = 3_000
    body = "\n".join(json.dumps({**ARRIVAL, "id": f"a{number}"}) for number in range(total))
    with service(place) as one, ThreadPoolExecutor(1) as pool:
        deciding = pool.submit(one.client.post, "/v1/events:batch", content=body)
        seen = {one.client.get("/v1/nics").json()["version"]}
        while not deciding.done():
            seen.add(one.client.get("/v1/nics").json()["version"])
    assert any(0 < version < total for version in seen)


def test_a_long_request_lets_others_through(place: Path | str) -> None:
    """An event that comes while 3,000 lines are decided is not behind all of them."""
    total = 3_000
    body = "\n".join(json.dumps({**ARRIVAL, "id": f"a{number}"}) for number in range(total))
    with service(place) as one, ThreadPoolExecutor(1) as pool:
        deciding = pool.submit(one.client.post, "/v1/events:batch", content=body)
        while not one.engine.events:
            pass
        assert one.arrive("b")["version"] <= total
        answers = deciding.result().text.splitlines()
    assert [json.loads(answer)["id"] for answer in answers] == [f"a{number}" for number in range(total)]


def test_ask_names_places_and_says_why_there_are_no_more(place: Path | str) -> None:
    """`d` takes three of eight cores: three NICs hold six."""
    with service(place) as one:
        one.arrive("1")
        found = one.ask(nf="d", sla_drop=0.9, count=6)
        assert [place["nic"] for place in found["places"]] == ["nic-1", "nic-2", "nic-2", "nic-3", "nic-3"]
        assert found["verdicts"] == []
        for number in range(2, 7):
            one.arrive(str(number))
        full = one.ask(nf="d", sla_drop=0.9)
        assert full == {
            "version": 6,
            "places": [],
            "verdicts": [{"nic_model": "toy-0", "company": ["d", "d"], "nics": 3, "cause": "too few free cores"}],
        }


def test_nics_are_filtered_by_their_service(tmp_path: Path) -> None:
    """In pages, too."""
    with service(tmp_path / "s.db", count=0) as one:
        for number in range(6):
            one.event(event="join", nic=f"rack-{number}", nic_model="toy-0")
        for name, event in (("rack-1", "fail"), ("rack-2", "drain"), ("rack-3", "cordon"), ("rack-4", "fail")):
            assert one.event(event=event, nic=name).status_code == 200

        def names(**parameters: str) -> list[str]:
            return [nic["nic"] for nic in one.client.get("/v1/nics", params=parameters).json()["nics"]]

        assert names(service="failed") == ["rack-1", "rack-4"] and names(service="draining") == ["rack-2"]
        assert names(service="up") == ["rack-0", "rack-5"] and names(service="cordoned") == ["rack-3"]
        (model, *_) = one.client.get("/v1/summary").json()["by_model"]
        assert [model[service] for service in ("idle", "cordoned", "draining", "failed")] == [2, 1, 1, 2]
        first = one.client.get("/v1/nics?service=failed&limit=1").json()
        assert names(service="failed", cursor=first["cursor"]) == ["rack-4"]
        answer = one.client.get("/v1/nics?service=broken")
        assert (answer.status_code, answer.json()["error"]) == (
            422,
            "service: give one of up, cordoned, draining, failed",
        )


def test_parameters_that_are_unknown_or_given_twice_are_422_on_every_route(tmp_path: Path) -> None:
    """A filter with a mistake in its name would answer with everything."""
    with service(tmp_path / "s.db") as one:
        one.arrive("x")
        document = one.client.get("/openapi.json").json()
        for path, methods in document["paths"].items():
            for method in methods:
                address = path.replace("{nic}", "nic-1").replace("{id}", "x")
                answer = one.client.request(
                    method, f"{address}?srevice=failed", content="{}" if method == "post" else None
                )
                assert answer.status_code == 422, path
        assert one.client.get("/v1/nics?limit=1&limit=2").json()["error"] == "limit: is given twice"
        assert one.engine.events == 1


def test_a_nic_whose_name_has_a_slash_is_found(tmp_path: Path) -> None:
    with service(tmp_path / "s.db", count=0) as one:
        one.event(event="join", nic="rack/1 a", nic_model="toy-0")
        assert one.client.get("/v1/nics/rack%2F1%20a").json()["nic"] == "rack/1 a"
        assert one.client.get("/v1/nics/rack/1 a").json()["nic"] == "rack/1 a"
        assert one.client.get("/v1/nics/rack").status_code == 404


def test_nics_come_in_pages(place: Path | str) -> None:
    """Five NICs by two, in the order of ids; one that joins meanwhile is seen behind the page, and not before it."""
    with service(place, count=0) as one:
        for number in (4, 2, 0, 3, 1):
            one.event(event="join", nic=f"rack-{number}", nic_model="toy-0")
        one.event(event="fail", nic="rack-3")
        first = one.client.get("/v1/nics", params={"limit": 2}).json()
        for name in ("rack-00", "rack-22"):
            one.event(event="join", nic=name, nic_model="toy-0")
        seen, cursor = [(nic["nic"], nic["service"]) for nic in first["nics"]], first["cursor"]
        while cursor is not None:
            page = one.client.get("/v1/nics", params={"limit": 2, "cursor": cursor}).json()
            seen += [(nic["nic"], nic["service"]) for nic in page["nics"]]
            cursor = page["cursor"]
        names = ("rack-0", "rack-1", "rack-2", "rack-22", "rack-3", "rack-4")
        assert seen == [(name, "failed" if name == "rack-3" else "up") for name in names]
        for wrong in (
            "limit=0",
            "limit=1001",
            "cursor=x",
            "cursor=",
            "cursor=%C3%A9",
            "cursor=0",
            "model=",
            "pool=%0a",
        ):
            assert one.client.get(f"/v1/nics?{wrong}").status_code == 422, wrong


def test_instances_are_listed_by_nf_nic_and_state_in_the_order_of_ids(place: Path | str) -> None:
    """In pages, those that wait among the others; two `d` have room on each of the two NICs that do not fail."""
    with service(place, count=3) as one:
        for identity in ("z", "b", "y", "a", "x"):
            one.arrive(identity)
        one.event(event="fail", nic="nic-3")
        one.event(event="arrive", id="c", nf="a", sla_drop=0.5)

        def listed(**parameters: str) -> list[tuple[str, str | None]]:
            found, cursor = list[tuple[str, str | None]](), None
            while True:
                more = {} if cursor is None else {"cursor": cursor}
                page = one.client.get("/v1/tenants", params={"limit": "2", **parameters, **more}).json()
                found += [(tenant["id"], tenant["nic"]) for tenant in page["tenants"]]
                cursor = page["cursor"]
                if cursor is None:
                    return found

        homes = {"a": "nic-2", "b": "nic-1", "x": None, "y": "nic-2", "z": "nic-1"}
        of_d = [*homes.items()]
        assert listed(nf="d") == of_d
        (of_a,) = listed(nf="a")
        assert listed() == sorted([*of_d, of_a])
        assert listed(state="queued") == [("x", None)]
        assert listed(state="placed") == sorted({*of_d, of_a} - {("x", None)})
        assert listed(nic="nic-2", nf="d") == [("a", "nic-2"), ("y", "nic-2")]
        assert listed(nic="nic-2", state="queued") == listed(nic="nic-9") == listed(nf="e") == []
        (shown,) = one.client.get("/v1/tenants", params={"nf": "a"}).json()["tenants"]
        assert one.client.get("/v1/tenants/c").json() == shown | {"version": one.engine.events}
        answer = one.client.get("/v1/tenants?state=rejected")
        assert (answer.status_code, answer.json()["error"]) == (422, "state: give one of placed, queued")


def test_a_tenant_and_its_nic_show_what_is_predicted(place: Path | str) -> None:
    """Alone on its NIC it has what it has alone."""
    with service(place) as one:
        one.arrive("web/nat 1", drop=0.5)
        tenant = one.client.get("/v1/tenants/web%2Fnat%201").json()
        assert (tenant["nic"], tenant["predicted_kpps"], tenant["required_kpps"]) == ("nic-1", 800.0, 400.0)
        nic = one.client.get("/v1/nics/nic-1").json()
        assert (nic["free_cores"], len(nic["tenants"])) == (5, 1)
        assert one.client.get("/v1/nics/nic-9").status_code == 404
        assert one.client.get("/v1/tenants/x").status_code == 404
        summary = one.client.get("/v1/summary").json()
        assert (summary["tenants"], summary["by_model"][0]["in_use"]) == (1, 1)


def test_a_tenant_and_a_question_show_load_and_cores(place: Path | str) -> None:
    """A toy NF has one number of cores; it needs no SLA but its rate."""
    with service(place) as one:
        asked = one.client.post("/v1/ask", json={"nf": "d", "rate_kpps": 70}).json()
        assert [(place["nic"], place["cores"]) for place in asked["places"]] == [("nic-1", 3)]
        answer = one.event(event="arrive", id="a", nf="d", rate_kpps=70).json()
        assert (answer["nic"], answer["cores"]) == ("nic-1", 3)
        nic = one.client.get("/v1/nics/nic-1").json()
        assert nic["offered_gbps"] == pytest.approx(70 * 1520 * 8e-6)
        assert "line_rate_gbps" not in nic
        shown = one.client.get("/v1/tenants/a").json()
        assert (shown["rate_kpps"], shown["cores"], shown["sla_drop"]) == (70.0, 3, 0.0)
        assert (shown["required_kpps"], shown["solo_kpps"]) == (69.65, 800.0)
        assert one.event(event="change", id="a", rate_kpps=None, sla_drop=0.5).json()["status"] == "kept"
        assert not {"rate_kpps", "cores"} & one.client.get("/v1/tenants/a").json().keys()
        refused = one.event(event="arrive", id="b", nf="d", rate_kpps=-1)
        assert (refused.status_code, refused.json()["error"]) == (422, "rate_kpps: -1 is below 1e-06")


def test_metrics_count_decisions_and_show_the_fleet(place: Path | str) -> None:
    """One placed, one refused."""
    with service(place) as one:
        one.arrive("a")
        one.event(event="depart", id="x")
        text = one.client.get("/metrics").text
        for line in (
            'placer_decisions_total{event="arrive",status="placed"} 1.0',
            'placer_refused_total{status="409"} 1.0',
            'placer_nics{nic_model="toy-0",service="in use"} 1.0',
            "placer_tenants 1.0",
            "placer_requests_waiting 0.0",
        ):
            assert line in text


def test_metrics_are_read_by_a_parser_of_prometheus(place: Path | str) -> None:
    """No name comes twice, and every sample is a number."""
    with service(place) as one:
        one.arrive("a")
        families = [family.name for family in text_string_to_metric_families(one.client.get("/metrics").text)]
        assert len(families) == len(set(families)) and "placer_decisions" in families


def test_unknown_paths_and_methods_are_answered_in_json(place: Path | str) -> None:
    """404 and 405."""
    with service(place) as one:
        assert one.client.get("/v1/nope").json() == {"ok": False, "error": "there is no such path"}
        assert one.client.delete("/v1/events").status_code == 405
