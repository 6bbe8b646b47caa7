"""What the service offers, as OpenAPI 3.1: requests, answers, refusals and tokens."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

NAME = {"type": "string", "minLength": 1, "maxLength": 256}
KEY = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[ -~]*[!-~]$"}
NUMBER = {"type": "number", "minimum": 0, "maximum": 1e12}
DROP = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
LEAST = {"type": "number", "exclusiveMinimum": 0, "maximum": 1e12}
TRAFFIC = {
    "type": "object", "additionalProperties": False,
    "properties": dict.fromkeys(("flows", "packet_size", "mtbr"), NUMBER),
}  # fmt: skip
SLA = {"sla_drop": DROP, "sla_min_kpps": LEAST}
ONE_SLA = {"oneOf": [{"required": ["sla_drop"]}, {"required": ["sla_min_kpps"]}]}
CHANGES = {
    "not": {"required": ["sla_drop", "sla_min_kpps"]},
    "anyOf": [{"required": [key]} for key in ("traffic", "sla_drop", "sla_min_kpps")],
}


def _event(name: str, required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "title": name, "additionalProperties": False, "required": ["event", *required],
        "properties": {"event": {"const": name}, **properties},
    }  # fmt: skip


MEASURED = {
    "type": "array", "minItems": 1, "maxItems": 1000,
    "items": {
        "type": "object", "additionalProperties": False, "required": ["id", "throughput_kpps"],
        "properties": {"id": NAME, "throughput_kpps": NUMBER, "offered_kpps": NUMBER},
    },
}  # fmt: skip

EVENTS = [
    _event("arrive", ("id", "nf"), id=NAME, nf=NAME, traffic=TRAFFIC, nic=NAME, **SLA) | ONE_SLA,
    _event("change", ("id",), id=NAME, traffic=TRAFFIC, **SLA) | CHANGES,
    *(_event(name, ("id",), id=NAME) for name in ("depart", "where")),
    *(_event(name, ("nic",), nic=NAME) for name in ("fail", "drain", "return")),
    _event("join", ("nic", "nic_model"), nic=NAME, nic_model=NAME),
    _event(
        "rebalance", ("budget",),
        budget={"type": "integer", "minimum": 0, "maximum": 10**12}, move_cost=NUMBER, risk_worth=NUMBER,
    ),
    _event("measured", ("nic", "window_s", "instances"), nic=NAME, window_s=LEAST, instances=MEASURED),
]  # fmt: skip

VERSION = {"version": {"type": "integer", "description": "The number of the last event."}}
ERROR = {
    "type": "object", "required": ["ok", "error"],
    "properties": {"ok": {"const": False}, "error": {"type": "string"}},
}  # fmt: skip
ANSWER = {"type": "object", "required": ["ok", "event", "status", "version"], "properties": {
    "ok": {"const": True}, "event": {"type": "string"}, "status": {"type": "string"}, "moves": {"type": "array"},
    "nic": {"type": ["string", "null"]}, **VERSION,
}}  # fmt: skip
NIC = {"type": "object", "required": ["nic", "nic_model", "service", "cores", "free_cores", "tenants"], "properties": {
    "nic": NAME, "nic_model": NAME, "service": {"enum": ["up", "draining", "failed"]}, "cores": {"type": "integer"},
    "free_cores": {"type": "integer"}, "changed": {"type": "integer"}, "tenants": {"type": "array"},
}}  # fmt: skip
QUESTION = {"type": "object", "additionalProperties": False, "required": ["nf"], "properties": {
    "nf": NAME, "traffic": TRAFFIC, **SLA, "count": {"type": "integer", "minimum": 1, "maximum": 100, "default": 1},
    "top": {"type": "integer", "minimum": 1, "maximum": 100, "default": 1}, "explain": {"type": "boolean"},
}, **ONE_SLA}  # fmt: skip
PLACES = {"type": "object", "required": ["version", "places", "verdicts"], "properties": {
    **VERSION, "verdicts": {"type": "array"}, "places": {"type": "array", "items": {
        "type": "object", "required": ["nic", "nic_model", "opens", "score"], "properties": {
            "nic": NAME, "nic_model": NAME, "opens": {"type": "boolean"}, "score": {"type": ["number", "null"]},
        },
    }},
}}  # fmt: skip
REFUSALS = {
    "401": "No known token.", "403": "The token does not have the scope.", "408": "The request came too slowly.",
    "409": "The event cannot happen; nothing changed.", "412": "The NIC has changed since `If-Version`.",
    "413": "Too large.", "422": "Not as described here.", "429": "Too many requests wait; see `Retry-After`.",
    "503": "The service is stopping.",
}  # fmt: skip


def described(*, kubernetes: bool = False) -> dict[str, Any]:
    """The OpenAPI document; of the extender, too, where it is there."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nf-placer",
            "version": version("nf-placer"),
            "description": "Places network functions on SmartNICs.",
        },
        "paths": {**_deciding(), **_reading(), **(_kubernetes() if kubernetes else {})},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


def _deciding() -> dict[str, Any]:
    key = _header("Idempotency-Key", "The same key and request get the same answer.", KEY)
    since = _header("If-Version", "Of an arrival that names its NIC: 412 where that changed.", {"type": "integer"})
    wrong = ("401", "403", "408", "409", "412", "413", "422", "429", "503")
    return {
        "/v1/events": {"post": _operation(
            "decide", "Decide on one event.", _json(ANSWER), wrong, [key, since], _json({"oneOf": EVENTS})
        )},
        "/v1/events:batch": {"post": _operation(
            "decideMany", "Decide on a line each; answers come in the same order.", _lines(), wrong, [key], _lines()
        )},
    }  # fmt: skip


def _reading() -> dict[str, Any]:
    wrong = ("401", "403", "422", "503")
    nics = {"type": "object", "required": ["version", "nics", "cursor"], "properties": {
        **VERSION, "nics": {"type": "array", "items": NIC}, "cursor": {"type": ["string", "null"]},
    }}  # fmt: skip
    whole = {"type": "integer", "minimum": 0, "maximum": 10**15 - 1}
    paging = [
        _query("limit", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}),
        _query("cursor", whole),
    ]
    since = [
        _query("after", {**whole, "default": 0}),
        _query("wait_s", {"type": "number", "minimum": 0, "maximum": 60}),
    ]
    found = (*wrong, "404")
    asked = ("401", "403", "408", "409", "413", "422", "503")
    return {
        "/v1/ask": {"post": _operation("ask", "Where it would go.", _json(PLACES), asked, [], _json(QUESTION))},
        "/v1/summary": {"get": _operation("summary", "The fleet in numbers.", _json({"type": "object"}), wrong)},
        "/v1/nics": {"get": _operation("nics", "NICs with their tenants.", _json(nics), wrong, paging)},
        "/v1/nics/{nic}": {"get": _operation("nic", "One NIC.", _json(NIC), found, [_path("nic")])},
        "/v1/tenants/{id}": {
            "get": _operation("tenant", "One instance.", _json({"type": "object"}), found, [_path("id")])
        },
        "/v1/log": {"get": _operation("log", "Events after one, with their answers.", _lines(), wrong, since)},
        "/healthz": {"get": _operation("alive", "Whether it works.", _json({"type": "object"}), ("503",))},
        "/readyz": {"get": _operation("ready", "Whether it takes requests.", _json({"type": "object"}), ("503",))},
        "/metrics": {"get": _operation("metrics", "For Prometheus.", {"text/plain": {}}, ("401", "403"))},
    }


def _kubernetes() -> dict[str, Any]:
    summaries = {"filter": "Nodes that take a pod.", "prioritize": "Scores of nodes.", "bind": "Bind a pod to a node."}
    wrong = ("400", "401", "403", "408", "413", "429", "503")
    body = _json({"type": "object"})
    return {
        f"/k8s/v1/{name}": {"post": _operation(name, summary, _json({}), wrong, [], body)}
        for name, summary in summaries.items()
    }


def _operation(
    name: str, summary: str, content: dict[str, Any], refusals: tuple[str, ...], parameters: Any = (), body: Any = None
) -> dict[str, Any]:
    words = {**REFUSALS, "400": "Not as described here.", "404": "Unknown."}
    found: dict[str, Any] = {
        "operationId": name, "summary": summary, "parameters": list(parameters),
        "responses": {
            "200": {"description": "The answer.", "content": content},
            **{status: {"description": words[status], "content": _json(ERROR)} for status in refusals},
        },
    }  # fmt: skip
    return found if body is None else found | {"requestBody": {"required": True, "content": body}}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _lines() -> dict[str, Any]:
    return {"application/x-ndjson": {"schema": {"type": "string"}}}


def _header(name: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": text, "schema": schema}


def _query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": NAME}
