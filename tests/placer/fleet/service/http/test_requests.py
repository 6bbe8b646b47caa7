"""What is noted of requests: all are counted, and those that the doors refuse are logged, but never without limit."""

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from placer.fleet.service import log as log_module
from placer.fleet.service.http.tokens import new_token, read_tokens
from tests.placer.fleet.service.http.toy_http import service

ARRIVAL = {"event": "arrive", "id": "a", "nf": "d", "sla_drop": 0.5}


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The lines of the log, each with its time."""
    found = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    for line in found:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    return found


def test_a_line_says_who_did_what_and_how_long_it_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where all requests are logged."""
    token, table = new_token("orchestrator", ["decide"])
    (tmp_path / "tokens.toml").write_text(table)
    with service(tmp_path / "s.db", tokens=read_tokens(tmp_path / "tokens.toml"), log_requests=True) as one:
        headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": "192.0.2.5"}
        one.event(headers, **ARRIVAL)
        one.event(headers, event="fail", nic="nic-1")
        body = "\n".join(json.dumps({**ARRIVAL, "id": name}) for name in "bc")
        one.client.post("/v1/events:batch", content=body, headers=headers)
        one.client.get("/v1/nics/none", headers=headers)
        one.client.get("/nothing?secret=1", headers=headers)
        one.client.get("/healthz")
    found = lines(capsys)
    assert all(line.pop("ms") > 0 for line in found)
    who = {"log": "request", "client": "testclient:50000", "forwarded_for": "192.0.2.5", "actor": "orchestrator"}
    event = {"method": "POST", "route": "/v1/events", "path": "/v1/events"}
    many = {"method": "POST", "route": "/v1/events:batch", "path": "/v1/events:batch"}
    assert found[:3] == [
        {**who, **event, "event": "arrive", "id": "a", "status": 200},
        {**who, **event, "event": "fail", "nic": "nic-1", "status": 403},
        {**who, **many, "events": 2, "status": 200},
    ]
    assert [(line["route"], line["path"], line["status"], line["actor"]) for line in found[3:]] == [
        ("/v1/nics/{nic}", "/v1/nics/none", 404, "orchestrator"),
        ("none", "/nothing", 404, "orchestrator"),
        ("/healthz", "/healthz", 200, None),
    ]
    assert token not in str(found)


def test_refusals_of_the_doors_are_logged_and_others_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown token is; a departure of nobody is not."""
    token, table = new_token("web", ["ask"])
    (tmp_path / "tokens.toml").write_text(table)
    with service(tmp_path / "s.db", tokens=read_tokens(tmp_path / "tokens.toml")) as one:
        one.client.get("/v1/nics", headers={"Authorization": "Bearer x"})
        one.event({"Authorization": f"Bearer {token}"}, event="depart", id="x")
        one.client.get("/v1/nics/none", headers={"Authorization": f"Bearer {token}"})
        shown = one.client.get("/metrics", headers={"Authorization": f"Bearer {token}"}).text
    assert [(line["status"], line["route"], line["actor"]) for line in lines(capsys)] == [
        (401, "/v1/nics", None),
        (403, "/v1/events", "web"),
    ]
    assert 'placer_requests_total{route="/v1/nics",status="401"} 1.0' in shown
    assert 'placer_requests_total{route="/v1/events",status="403"} 1.0' in shown


def test_refusals_without_end_are_counted_and_not_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 25 in a second, 10 are written, and how many are not; in the next second all is as before."""
    now, later = [100.0], []
    monkeypatch.setattr(log_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    loop = SimpleNamespace(call_later=lambda seconds, call, *of: later.append((seconds, call, of)))
    monkeypatch.setattr(log_module, "asyncio", SimpleNamespace(get_running_loop=lambda: loop))
    limited = log_module.LimitedLog()
    for number in range(25):
        limited.log("request", number=number)
    ((seconds, call, of),) = later
    now[0] += seconds
    call(*of)
    limited.log("request", number=25)
    found = lines(capsys)
    assert [line.get("number") for line in found] == [*range(10), None, 25]
    assert found[10] == {"log": "lines left out", "of": "request", "count": 15}


def test_requests_are_counted_by_route_and_status_under_few_names(tmp_path: Path) -> None:
    """Whatever is asked for, and with the version of the service."""
    with service(tmp_path / "s.db") as one:
        one.arrive("a")
        for name in "xyz":
            one.client.get(f"/v1/tenants/{name}")
            one.client.get(f"/{name}")
        one.client.delete("/v1/events")
        one.client.get("/docs")
        shown = one.client.get("/metrics").text
    counted = {*re.findall(r'placer_requests_total\{route="([^"]+)",status="(\d+)"\} (\d+)', shown)}
    assert counted == {
        ("/v1/events", "200", "1"), ("/v1/tenants/{id}", "404", "3"), ("none", "404", "3"),
        ("/v1/events", "405", "1"), ("/docs", "200", "1"),
    }  # fmt: skip
    assert re.search(r'placer_build_info\{version="[0-9.]+"\} 1.0', shown)


def test_the_seconds_of_a_request_include_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes 0.05 s."""
    with service(tmp_path / "s.db") as one:
        commit = one.writer.state.commit

        def commit_slowly() -> None:
            time.sleep(0.05)
            commit()

        monkeypatch.setattr(one.writer.state, "commit", commit_slowly)
        one.arrive("a")
        shown = one.client.get("/metrics").text
    found = re.search(r'placer_request_seconds_sum\{route="/v1/events"\} (\S+)', shown)
    assert found is not None and float(found[1]) >= 0.05


def test_probes_metrics_and_refusals_do_not_wait_for_decisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are answered while the disk hangs."""
    with service(tmp_path / "s.db") as one, ThreadPoolExecutor(1) as pool:
        hangs, goes_on = threading.Event(), threading.Event()
        commit = one.writer.state.commit

        def commit_later() -> None:
            hangs.set()
            assert goes_on.wait(20)
            commit()

        monkeypatch.setattr(one.writer.state, "commit", commit_later)
        waiting = pool.submit(one.arrive, "a")
        assert hangs.wait(20)
        try:
            assert [one.client.get(path).status_code for path in ("/healthz", "/readyz", "/metrics")] == [200] * 3
            assert one.client.get("/v1/nics", headers={"Host": "evil.example"}).status_code == 421
            assert one.client.post("/v1/ask", content="{").status_code == 422
            assert one.client.get("/v1/nics?x=1").status_code == 422 and not waiting.done()
        finally:
            goes_on.set()
        assert waiting.result(20)["ok"]
