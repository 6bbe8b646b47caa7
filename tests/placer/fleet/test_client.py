"""The client: an event that is sent again is decided on once, and refusals are errors with their status."""

import itertools
from pathlib import Path

import httpx
import pytest

from placer import Client, ServiceError
from tests.placer.fleet.service.http.toy_http import service


def client_of(transport: httpx.BaseTransport) -> Client:
    client = Client("http://service")
    client._http = httpx.Client(base_url="http://service", transport=transport)
    return client


def test_an_event_whose_answer_was_lost_is_sent_again_and_decided_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer is lost, and the service is busy at the second try."""
    monkeypatch.setattr("placer.fleet.client.time.sleep", lambda seconds: None)
    with service(tmp_path / "s.db") as one:
        tries = itertools.count(1)

        def passed_on(request: httpx.Request) -> httpx.Response:
            number = next(tries)
            if number == 2:
                return httpx.Response(429, headers={"Retry-After": "1"}, json={"ok": False, "error": "busy"})
            headers = {"Idempotency-Key": request.headers["Idempotency-Key"]}
            answer = one.client.post("/v1/events", content=request.read(), headers=headers)
            if number == 1:
                raise httpx.ReadError("cut")
            return httpx.Response(answer.status_code, text=answer.text)

        with client_of(httpx.MockTransport(passed_on)) as client:
            assert client.arrive("a", "d", sla_drop=0.5)["nic"] == "nic-1"
        assert (next(tries), one.engine.events) == (4, 1)


def test_a_refusal_is_an_error_with_its_status_and_what_is_unknown_is_none() -> None:
    """409 is not sent again; 404 is None."""

    def refusing(request: httpx.Request) -> httpx.Response:
        status = 404 if request.method == "GET" else 409
        return httpx.Response(status, json={"ok": False, "error": "'a' is not placed or queued"})

    with client_of(httpx.MockTransport(refusing)) as client:
        with pytest.raises(ServiceError, match="not placed or queued") as error:
            client.depart("a")
        assert error.value.status == 409 and client.tenant("web/1 ä") is None


def test_all_pages_of_nics_and_the_log_are_read() -> None:
    """Two pages; the log goes on after the last number."""

    def paged(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/log":
            after = int(request.url.params["after"])
            return httpx.Response(200, text=f'{{"number": {after + 1}}}\n{{"number": {after + 2}}}\n')
        first = "cursor" not in request.url.params
        assert first or request.url.params["cursor"] == "7"
        name, key = ("nics", "nic") if request.url.path == "/v1/nics" else ("tenants", "id")
        assert name == "nics" or request.url.params["state"] == "queued"
        return httpx.Response(200, json={name: [{key: "1" if first else "2"}], "cursor": "7" if first else None})

    with client_of(httpx.MockTransport(paged)) as client:
        assert [one["nic"] for one in client.nics()] == ["1", "2"]
        assert [one["id"] for one in client.tenants(state="queued")] == ["1", "2"]
        assert [row["number"] for row in itertools.islice(client.log(5), 4)] == [6, 7, 8, 9]
