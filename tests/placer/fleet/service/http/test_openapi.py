"""What the service answers is what its OpenAPI document says, and people can read that document."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from placer.fleet.event_lines import decision_line
from placer.fleet.events import Decision, JudgedInstance, Learned, Measure, MeasuredInstance, Rebalance, RebalanceMove
from placer.fleet.service.http.openapi import describe
from placer.fleet.service.http.routes import EventRoutes
from tests.placer.commands.test_serve import serving
from tests.placer.fleet.service.http.toy_http import service

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")

EVENTS: list[dict[str, Any]] = [
    {"event": "arrive", "id": "x", "nf": "d", "sla_drop": 0.9, "traffic": {"flows": 1000}},
    {"event": "arrive", "id": "y", "nf": "d", "sla_min_kpps": 1, "nic": "nic-1"},
    {"event": "arrive", "id": "z", "nf": "d", "sla_drop": 0},
    {"event": "group", "id": "g", "arrivals": [{"id": f"g{nf}", "nf": nf, "sla_drop": 0.9} for nf in "ab"]},
    {"event": "group", "id": "h", "arrivals": [{"id": f"h{number}", "nf": "d", "sla_drop": 0} for number in range(9)]},
    {"event": "reserve", "id": "r", "nf": "a", "sla_drop": 0.9, "ttl_s": 60, "owner": "o", "labels": {"k": "v"}},
    {"event": "change", "id": "y", "sla_drop": 0.8},
    {"event": "where", "id": "x"},
    {"event": "measured", "nic": "nic-1", "window_s": 10, "instances": [{"id": "x", "throughput_kpps": 1}]},
    {"event": "join", "nic": "rack-1", "nic_model": "toy-0"},
    {"event": "rebalance", "budget": 3},
    {"event": "cordon", "nic": "nic-1"},
    {"event": "uncordon", "nic": "nic-1"},
    {"event": "leave", "nic": "rack-1"},
    {"event": "drain", "nic": "nic-1"},
    {"event": "return", "nic": "nic-1"},
    {"event": "drain", "nics": ["nic-1", "nic-2"]},
    {"event": "return", "nic": "nic-1"},
    {"event": "return", "nic": "nic-2"},
    {"event": "fail", "nic": "nic-2"},
    {"event": "depart", "id": "nobody"},
    {"event": "arrive", "id": "x", "nf": "d"},
]
QUESTIONS: list[dict[str, Any]] = [
    {"nf": "d", "sla_drop": 0.9, "explain": True},
    {"nf": "d", "sla_drop": 0, "count": 9},
]


def faults(document: dict[str, Any], path: str, method: str, status: int, value: object) -> list[str]:
    """What an answer has that its description does not say, and the other way round."""
    schema = document["paths"][path][method]["responses"][str(status)]["content"]["application/json"]["schema"]
    return [error.message for error in Draft202012Validator({**schema, **document}).iter_errors(value)]


def unknown_keys(document: dict[str, Any], name: str, value: dict[str, Any]) -> set[str]:
    """Keys of an object that its schema does not name."""
    return {*value} - {*document["components"]["schemas"][name]["properties"]}


def test_every_event_is_answered_as_described(tmp_path: Path) -> None:
    """With all keys that must be there and no others, refusals too."""
    with service(tmp_path / "s.db") as one:
        document = one.client.get("/openapi.json").json()
        sent = document["paths"]["/v1/events"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert {*sent["discriminator"]["mapping"]} == {event["event"] for event in EVENTS}
        for event in EVENTS:
            answer = one.event(**event)
            assert faults(document, "/v1/events", "post", answer.status_code, answer.json()) == [], event
            name = "Decision" if answer.status_code == 200 else "Refusal"
            assert unknown_keys(document, name, answer.json()) == set(), event


def test_what_is_learnt_and_what_rebalancing_moves_is_answered_as_described() -> None:
    """With everything that may be in such an answer."""
    judged = JudgedInstance("x", predicted_kpps=1.0, low_kpps=None, high_kpps=2.0, below_sla=None)
    moves = (RebalanceMove("x", "nic-1", "nic-2", why="empties a NIC", gain=0.5, cost=0.05),)
    others: Any = {"at_risk": ("a",), "queued": ("b",)}
    document = describe(EventRoutes(None).routes())  # type: ignore[arg-type]
    for event, decision in (
        (Measure("nic-1", 10.0, (MeasuredInstance("x", 1.0),)), Learned("noted", model=2, instances=(judged,))),
        (Rebalance(3), Decision("rebalanced", moves, **others)),
    ):
        answer = json.loads(decision_line(event, decision)) | {"version": 1}
        assert faults(document, "/v1/events", "post", 200, answer) == []
        assert unknown_keys(document, "Decision", answer) == set()
        assert all(unknown_keys(document, "Move", move) == set() for move in answer["moves"])
        assert all(unknown_keys(document, "JudgedInstance", row) == set() for row in answer.get("instances", ()))


def test_every_route_is_described_and_answers_as_described(tmp_path: Path) -> None:
    """Those that are asked by people, with keys that the description names."""
    with service(tmp_path / "s.db") as one:
        for event in (*EVENTS[:3], next(event for event in EVENTS if event["event"] == "reserve")):
            one.event(**event)
        document = one.client.get("/openapi.json").json()
        for path in document["paths"]:
            if path.startswith("/v1/events"):
                continue
            address = re.sub(r"\{(\w+)\}", lambda found: {"nic": "nic-1", "id": "x"}[found[1]], path)
            method = next(iter(document["paths"][path]))
            for body in QUESTIONS if method == "post" else [None]:
                answer = one.client.request(method, address, json=body)
                assert answer.status_code == 200, path
                content = document["paths"][path][method]["responses"]["200"]["content"]
                assert answer.headers["content-type"].partition(";")[0] in content
                if "application/json" in content:
                    assert faults(document, path, method, 200, answer.json()) == []
                    reference = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
                    assert unknown_keys(document, reference, answer.json()) == set()
        assert unknown_keys(document, "Tenant", one.client.get("/v1/tenants/r").json()) == {"status", "nic", "version"}


def test_the_page_for_people_has_everything_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """Every request, every schema and every property; its links lead somewhere."""
    with service(tmp_path / "s.db") as one:
        document = one.client.get("/openapi.json").json()
        answer = one.client.get("/docs")
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert not re.search(r"https?://|<script|style=", answer.text)
        for path, methods in document["paths"].items():
            for method in methods:
                assert f"{method.upper()} {path}" in answer.text
        for name, schema in document["components"]["schemas"].items():
            shown = answer.text.partition(f'id="{name}"')[2].partition("</section>")[0]
            for key in schema["properties"]:
                assert f"<code>{key}</code>" in shown
        for target in re.findall(r'href="#(\w+)"', answer.text):
            assert f'id="{target}"' in answer.text
        for target in {*re.findall(r'(?:href|src)="([^#"]+)"', answer.text)}:
            assert one.client.get(f"/{target.removeprefix('.')}").status_code == 200


@pytest.mark.slow
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    """Requests that are made of the document, and some that are not as it says."""
    command = shutil.which("st", path=str(Path(sys.executable).parent)) or shutil.which("st")
    if command is None:
        pytest.skip("there is no schemathesis")
    with serving(tmp_path / "s.db") as (_, client):
        address = f"{client.base_url}/openapi.json".replace("//openapi", "/openapi")
        # schemathesis cannot write lines of JSON
        options = ["--max-examples", "200", "--seed", "1", "--exclude-path", "/v1/events:batch"]
        found = subprocess.run(
            [command, "--config-file", str(CONFIGURATION), "run", address, *options],
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    assert found.returncode == 0, found.stdout[-6000:]
