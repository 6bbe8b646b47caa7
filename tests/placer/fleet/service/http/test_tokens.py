"""Tokens: without one nothing is answered, and none does more than its scopes."""

import base64
from pathlib import Path

import pytest

from placer.fleet.service.http.tokens import new_token, read_tokens
from profiles import InputError
from tests.placer.fleet.service.http.toy_http import service

ARRIVAL = {"event": "arrive", "id": "a", "nf": "d", "sla_drop": 0.5}


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
                one.client.post("/v1/events", json=ARRIVAL, headers=headers).status_code,
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
            answer = one.client.request(method, path, json=ARRIVAL, headers=headers)  # type: ignore[arg-type]
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
