"""Questions over HTTP change nothing and say why."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.placer.fleet.service.http.toy_http import service


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


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({}, "nf"),
        ({"nf": "x", "sla_drop": 0.1}, "'x' is not profiled"),
        ({"nf": "d"}, "no SLA"),
        ({"nf": "d", "sla_drop": 0.1, "count": 0}, "count"),
        ({"nf": "d", "sla_drop": 0.1, "count": 2, "top": 2}, "one of the two"),
        ({"nf": "d", "sla_drop": 0.1, "traffic": {"flow": 1}}, "flow"),
    ],
)
def test_a_question_that_makes_no_sense_is_422(place: Path | str, question: dict[str, object], message: str) -> None:
    """The answer names the key."""
    with service(place) as one:
        answer = one.client.post("/v1/ask", json=question)
        assert answer.status_code == (409 if "profiled" in message else 422)
        assert message in answer.json()["error"]


def test_nics_come_in_pages(place: Path | str) -> None:
    """Five NICs by two; the last page has no cursor."""
    with service(place, count=0) as one:
        for number in range(5):
            one.event(event="join", nic=f"rack-{number}", nic_model="toy-0")
        one.event(event="fail", nic="rack-3")
        seen, cursor = [], "0"
        while cursor is not None:
            page = one.client.get("/v1/nics", params={"limit": 2, "cursor": cursor}).json()
            seen += [(nic["nic"], nic["service"]) for nic in page["nics"]]
            cursor = page["cursor"]
        assert seen == [(f"rack-{number}", "failed" if number == 3 else "up") for number in range(5)]
        assert one.client.get("/v1/nics?limit=0").status_code == 422
        assert one.client.get("/v1/nics?cursor=x").status_code == 422
        assert one.client.get("/v1/nics?cursor=").status_code == 422


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
