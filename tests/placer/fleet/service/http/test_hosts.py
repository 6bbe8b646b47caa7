"""Without tokens, only clients that know the service by its own name are answered: no page of another site is."""

import json
from pathlib import Path

import pytest

from placer.fleet.service.http.hosts import Hosts, read_names
from placer.fleet.service.http.tokens import new_token, read_tokens
from profiles import InputError
from tests.placer.fleet.service.http.toy_http import Service, service

ARRIVAL = {"event": "arrive", "id": "a", "nf": "d", "sla_drop": 0.5}
PATHS = ("/", "/docs", "/openapi.json", "/metrics", "/v1/summary", "/v1/nics", "/v1/log", "/page/page.js")


@pytest.mark.parametrize(
    ("listen", "port", "host", "known"),
    [
        ("127.0.0.1", 8080, "127.0.0.1:8080", True),
        ("127.0.0.1", 8080, "LocalHost:8080", True),
        ("127.0.0.1", 8080, "[::1]:8080", True),
        ("127.0.0.1", 8080, "127.0.0.1", False),
        ("127.0.0.1", 8080, "127.0.0.1:8081", False),
        ("127.0.0.1", 8080, "localhost.:8080", False),
        ("127.0.0.1", 8080, "localhost.evil.example:8080", False),
        ("127.0.0.1", 8080, "evil.example", False),
        ("127.0.0.1", 8080, "", False),
        ("127.0.0.1", 80, "localhost", True),
        ("192.0.2.7", 8080, "192.0.2.7:8080", True),
        ("192.0.2.7", 8080, "192.0.2.8:8080", False),
        ("2001:db8::7", 8080, "[2001:db8::7]:8080", True),
        ("0.0.0.0", 8080, "localhost:9000", True),  # a forwarded port
        ("0.0.0.0", 8080, "127.0.0.1", True),
        ("0.0.0.0", 8080, "192.0.2.9:9000", True),  # the address at which the client has connected
        ("0.0.0.0", 8080, "192.0.2.8:8080", False),
        ("0.0.0.0", 8080, "evil.example:8080", False),
        ("::", 8080, "[::1]:9000", True),
        ("127.0.0.1", 8080, "placer.example", True),  # a name that was given, for any port
        ("127.0.0.1", 8080, "Placer.Example:8443", True),
        ("127.0.0.1", 8080, "placer.example:", False),
        ("127.0.0.1", 8080, "other.example:8443", True),  # one that was given with its port
        ("127.0.0.1", 8080, "other.example", False),
    ],
)
def test_a_host_is_a_loopback_name_the_address_listened_on_or_a_given_name(
    listen: str, port: int, host: str, known: bool
) -> None:
    hosts = Hosts(listen, port, names=read_names(["placer.example", "OTHER.example:8443"]))
    fault = hosts.fault({"scheme": "http", "server": ("192.0.2.9", port)}, host.encode(), None)
    assert (fault is None) == known
    if fault is not None:
        assert fault[0] == 421 and "--host" in fault[1]


@pytest.mark.parametrize(
    ("scheme", "origin", "accepted"),
    [
        ("http", "http://localhost:8080", True),
        ("http", "HTTP://LOCALHOST:8080", True),
        ("http", "https://localhost:8080", True),  # a proxy with TLS
        ("https", "http://localhost:8080", False),
        ("http", "http://127.0.0.1:8080", False),
        ("http", "http://localhost:8081", False),
        ("http", "http://localhost", False),
        ("http", "http://evil.example", False),
        ("http", "null", False),
        ("http", "", False),
        ("http", "localhost:8080", False),
    ],
)
def test_an_origin_is_the_host_with_its_scheme(scheme: str, origin: str, accepted: bool) -> None:
    fault = Hosts("127.0.0.1", 8080, scheme).fault({"scheme": scheme}, b"localhost:8080", origin.encode())
    assert fault is None if accepted else fault is not None and fault[0] == 403


@pytest.mark.parametrize("name", ["http://x.example", "x/y", "", "x:", "x:1:2", "x y", "*"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="--host"):
        read_names([name])


def statuses(one: Service, headers: list[tuple[str, str]]) -> set[int]:
    """The statuses of all requests with these headers."""
    found = [one.client.get(path, headers=headers).status_code for path in PATHS]
    for path, body in (
        ("/v1/events", ARRIVAL),
        ("/v1/events:batch", ARRIVAL),
        ("/v1/ask", {"nf": "d", "sla_drop": 0.5}),
    ):
        found.append(one.client.post(path, content=json.dumps(body), headers=headers).status_code)
    return {*found}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("Host", "evil.example:8080")], 421),
        ([("Host", "127.0.0.1:8080"), ("Origin", "http://evil.example")], 403),
        ([("Host", "127.0.0.1:8080"), ("Origin", "null")], 403),
        ([("Host", "127.0.0.1:8080"), ("Host", "127.0.0.1:8080")], 400),
        ([("Host", "127.0.0.1:8080"), ("Host", "evil.example")], 400),
        ([("Host", "127.0.0.1:8080"), ("Authorization", "Bearer a"), ("Authorization", "Bearer a")], 400),
    ],
)
def test_no_request_of_another_site_is_answered_and_none_with_two_hosts(
    tmp_path: Path, headers: list[tuple[str, str]], status: int
) -> None:
    """On every path; nothing changes. Probes have any host."""
    with service(tmp_path / "s.db") as one:
        assert statuses(one, headers) == {status} and one.engine.events == 0
        for probe in ("/healthz", "/readyz"):
            assert one.client.get(probe, headers=headers).status_code == (400 if status == 400 else 200)


def test_with_tokens_any_host_is_answered(tmp_path: Path) -> None:
    """A page of another site has no token."""
    token, table = new_token("x", ["admin"])
    (tmp_path / "tokens.toml").write_text(table)
    with service(tmp_path / "s.db", tokens=read_tokens(tmp_path / "tokens.toml")) as one:
        headers = [("Host", "evil.example"), ("Origin", "http://evil.example"), ("Authorization", f"Bearer {token}")]
        assert statuses(one, headers) == {200}


@pytest.mark.parametrize(
    ("content_type", "one", "batch"),
    [
        ("application/json", 200, 200),
        ("Application/JSON; charset=utf-8", 200, 200),
        ("application/x-ndjson", 415, 200),
        ("application/x-ndjson;charset=utf-8", 415, 200),
        ("application/x-www-form-urlencoded", 415, 415),
        ("text/plain", 415, 415),
        ("multipart/form-data; boundary=application/json", 415, 415),
        ("application/json2", 415, 415),
        ("text/plain; application/json", 415, 415),
        ("", 415, 415),
    ],
)
def test_only_bodies_of_json_are_read(tmp_path: Path, content_type: str, one: int, batch: int) -> None:
    """Other types are those that browsers send anywhere; nothing changes by them."""
    with service(tmp_path / "s.db") as toy:
        headers = {"Content-Type": content_type}
        question = json.dumps({"nf": "d", "sla_drop": 0.5})
        assert toy.client.post("/v1/ask", content=question, headers=headers).status_code == one
        assert toy.client.post("/v1/events", content=json.dumps(ARRIVAL), headers=headers).status_code == one
        other = json.dumps({**ARRIVAL, "id": "b"})
        assert toy.client.post("/v1/events:batch", content=other, headers=headers).status_code == batch
        assert toy.engine.events == [one, batch].count(200)
