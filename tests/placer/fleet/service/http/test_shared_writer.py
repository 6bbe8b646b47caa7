"""Services that share a fleet: what one has answered, the other knows, also through an end of the database."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.placer.fleet.service.http.toy_http import Service, service
from tests.postgres import Cluster, cluster, needs_postgres

ARRIVAL = {"event": "arrive", "id": "a", "nf": "d", "sla_drop": 0.9}


def eventually(one: Service, path: str, status: int) -> None:
    for _ in range(200):
        if one.client.get(path).status_code == status:
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} is not answered with {status}")


def test_what_one_has_answered_the_other_knows_at_once(postgres: Cluster) -> None:
    """Lookups, departures, refusals and keys."""
    address = postgres.database()
    with service(address) as one, service(address) as other:
        key = {"Idempotency-Key": "k"}
        first = one.event(key, **ARRIVAL)
        assert other.event(event="where", id="a").json()["nic"] == first.json()["nic"]
        assert other.event(key, **ARRIVAL).text == first.text
        assert other.event(event="depart", id="a").json()["status"] == "left"
        assert one.event(event="depart", id="a").status_code == 409
        assert one.event(key, **ARRIVAL).text == first.text
        assert one.event(event="where", id="a").json()["status"] == "unknown"


def test_events_of_nics_and_rejections_are_about_the_whole_fleet(postgres: Cluster) -> None:
    """Two NICs for two agents: both are filled by either, and a third instance of the size is rejected by both. Those
    of a failed NIC wait, for every agent and one that starts later, until it returns."""
    address = postgres.database()
    with service(address, count=2) as one, service(address, count=2) as other:
        for number in range(4):
            assert one.arrive(f"i{number}")["status"] == "placed"
        for agent in (one, other):
            rejected = agent.arrive("x")
            assert rejected["status"] == "rejected"
            assert [reason["nics"] for reason in rejected["reasons"]] == [2, 0]
        home = other.event(event="where", id="i0").json()["nic"]
        queued = other.event(event="fail", nic=home).json()["queued"]
        assert len(queued) == 2 and one.event(event="fail", nic=home).status_code == 409
        assert [one.event(event="where", id=identity).json()["status"] for identity in queued] == ["queued"] * 2
        with service(address, count=2) as third:
            assert third.event(event="where", id=queued[0]).json()["status"] == "queued"
        returned = one.event(event="return", nic=home).json()
        assert [(move["id"], move["to"]) for move in returned["moves"]] == [(identity, home) for identity in queued]
        assert other.event(event="where", id=queued[1]).json()["nic"] == home
        assert other.event(event="change", id="i3", sla_drop=0.5).status_code in (200, 409)
        assert other.event(event="rebalance", budget=3).json()["ok"]
        assert one.event(event="rebalance", budget=3).json()["ok"]
        assert "placer_followed_total" in one.client.get("/metrics").text


@pytest.mark.long
def test_many_events_at_two_agents_at_once_are_all_decided_once(postgres: Cluster) -> None:
    """200 arrivals, each sent to both with one key: one answer each, and numbers without gaps."""
    address = postgres.database()
    with service(address, count=None) as one, service(address, count=None) as other, ThreadPoolExecutor(16) as pool:

        def both(number: int) -> bool:
            event = {**ARRIVAL, "id": f"i{number}"}
            answers = [agent.event({"Idempotency-Key": f"k{number}"}, **event) for agent in (one, other)]
            return answers[0].text == answers[1].text and answers[0].status_code == 200

        assert all(pool.map(both, range(200)))
        assert [row["number"] for row in other.log()] == list(range(1, 201))


def test_a_database_that_does_not_answer_holds_up_only_those_who_read_the_log(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Health and questions are answered meanwhile."""
    begun, answers = threading.Event(), threading.Event()

    def hanging(number: int, most: int) -> list[tuple[int, str, str]]:
        begun.set()
        return [] if answers.wait(30) else [(0, "the service", "was held up")]

    with service(postgres.database()) as one, ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(one.writer.state, "log_after", hanging)
        log = pool.submit(one.log)
        assert begun.wait(30) and one.client.get("/healthz").status_code == 200
        assert one.client.post("/v1/ask", json={"nf": "a", "sla_drop": 0.9}).status_code == 200
        answers.set()
        assert log.result() == []


@pytest.mark.long
@needs_postgres
def test_while_the_database_is_gone_events_are_503_and_afterwards_all_goes_on() -> None:
    """An event with a key is sent again until it is answered, and decided once."""
    with cluster() as server:
        address = server.database()
        with service(address) as one, ThreadPoolExecutor(1) as pool:
            one.arrive("a")
            server.stop()

            def again() -> int:
                for count in range(600):
                    if one.event({"Idempotency-Key": "k"}, **{**ARRIVAL, "id": "b"}).status_code == 200:
                        return count
                    time.sleep(0.05)
                raise AssertionError("is never answered")

            sending = pool.submit(again)
            eventually(one, "/readyz", 503)
            refused = one.event(**{**ARRIVAL, "id": "c"})
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
            server.start()
            sending.result(30)
            eventually(one, "/readyz", 200)
            assert [row["event"]["id"] for row in one.log()] == ["a", "b"]
