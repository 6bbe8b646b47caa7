"""What the service offers, as OpenAPI 3.1: requests, answers, refusals and tokens."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

NAME = {"type": "string", "minLength": 1, "maxLength": 256}
KEY = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[ -~]*[!-~]$"}
NUMBER = {"type": "number", "minimum": 0, "maximum": 1e12}
DROP = {"type": "number", "minimum": 0, "exclusiveMaximum": 1}
LEAST = {"type": "number", "exclusiveMinimum": 0, "maximum": 1e12}
SCHEMAS: dict[str, Any] = {}
"""By name; clients that are made of the document have a type for each."""


def _named(name: str, required: tuple[str, ...], properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A reference to an object with these properties."""
    SCHEMAS[name] = {"type": "object", "required": list(required), "properties": properties, **more}
    return {"$ref": f"#/components/schemas/{name}"}


def _sent(name: str, required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    """An object that clients send: it has no other keys."""
    return _named(name, required, properties, additionalProperties=False)


def _event(event: str, required: tuple[str, ...], name: str = "", **properties: Any) -> dict[str, Any]:
    called = name or f"{event.capitalize()}Event"
    return _sent(called, ("event", *required), event={"const": event}, **properties)


def _answered(name: str, required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return _named(name, required, properties)


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


TEXT, WHOLE, ANY = {"type": "string"}, {"type": "integer"}, {"type": "number"}
TEXT_OR_NOTHING, NUMBER_OR_NOTHING = {"type": ["string", "null"]}, {"type": ["number", "null"]}
VERSION = {"version": {"type": "integer", "description": "The number of the last event."}}

MEASURED = _sent("MeasuredInstance", ("id", "throughput_kpps"), id=NAME, throughput_kpps=NUMBER, offered_kpps=NUMBER)
TRAFFIC = _sent("Traffic", (), **dict.fromkeys(("flows", "packet_size", "mtbr"), NUMBER))
PLACED = {"id": NAME, "nf": NAME, "traffic": TRAFFIC, "nic": NAME}
CHANGED = {"id": NAME, "traffic": TRAFFIC}
EVENTS = [
    _event("arrive", ("id", "nf", "sla_drop"), "ArriveWithDrop", **PLACED, sla_drop=DROP),
    _event("arrive", ("id", "nf", "sla_min_kpps"), "ArriveWithMinKpps", **PLACED, sla_min_kpps=LEAST),
    _event("change", ("id", "traffic"), "ChangeTraffic", **CHANGED),
    _event("change", ("id", "sla_drop"), "ChangeDrop", **CHANGED, sla_drop=DROP),
    _event("change", ("id", "sla_min_kpps"), "ChangeMinKpps", **CHANGED, sla_min_kpps=LEAST),
    *(_event(name, ("id",), id=NAME) for name in ("depart", "where")),
    *(_event(name, ("nic",), nic=NAME) for name in ("fail", "drain", "return")),
    _event("join", ("nic", "nic_model"), nic=NAME, nic_model=NAME),
    _event(
        "rebalance", ("budget",),
        budget={"type": "integer", "minimum": 0, "maximum": 10**12}, move_cost=NUMBER, risk_worth=NUMBER,
    ),
    _event(
        "measured", ("nic", "window_s", "instances"),
        nic=NAME, window_s=LEAST, instances=_list(MEASURED) | {"minItems": 1, "maxItems": 1000},
    ),
]  # fmt: skip
ASKED = {
    "nf": NAME, "traffic": TRAFFIC, "count": {"type": "integer", "minimum": 1, "maximum": 100, "default": 1},
    "top": {"type": "integer", "minimum": 1, "maximum": 100, "default": 1}, "explain": {"type": "boolean"},
}  # fmt: skip
QUESTIONS = [
    _sent("QuestionWithDrop", ("nf", "sla_drop"), **ASKED, sla_drop=DROP),
    _sent("QuestionWithMinKpps", ("nf", "sla_min_kpps"), **ASKED, sla_min_kpps=LEAST),
]

ERROR = _answered("Refusal", ("ok", "error"), ok={"const": False}, error=TEXT)
MOVE = _answered(
    "Move", ("id", "from", "to"),
    id=NAME, to=TEXT_OR_NOTHING, why=TEXT, gain=ANY, cost=ANY, **{"from": TEXT_OR_NOTHING},
)  # fmt: skip
JUDGED = _answered(
    "JudgedInstance", ("id", "below_sla"),
    id=NAME, below_sla={"type": ["boolean", "null"]},
    **dict.fromkeys(("predicted_kpps", "low_kpps", "high_kpps"), NUMBER_OR_NOTHING),
)  # fmt: skip
CLASS = _answered(
    "ClassOfNics", ("nic_model", "company", "nics", "cause"),
    nic_model=NAME, nics=WHOLE, cause=TEXT, **dict.fromkeys(("company",), _list(TEXT)),
)  # fmt: skip
ANSWER = _answered(
    "Decision", ("ok", "event", "status", "version"),
    ok={"const": True}, event=TEXT, status=TEXT, nic=TEXT_OR_NOTHING, moves=_list(MOVE), instances=_list(JUDGED),
    model=WHOLE, classes=WHOLE, reasons=_list(CLASS), **dict.fromkeys(("at_risk", "queued", "rejected"), _list(TEXT)),
    **VERSION,
)  # fmt: skip
OF_A_TENANT = {
    "id": NAME, "nf": NAME, "traffic": TRAFFIC, "sla_drop": DROP, "sla_min_kpps": LEAST,
    **dict.fromkeys(("predicted_kpps", "required_kpps", "solo_kpps"), ANY),
}  # fmt: skip
TENANT = _answered("Tenant", ("id", "nf", "traffic"), **OF_A_TENANT)
FOUND_TENANT = _answered(
    "FoundTenant", ("version", "status", "nic", "id", "nf", "traffic"),
    status={"enum": ["placed", "queued"]}, nic=TEXT_OR_NOTHING, **OF_A_TENANT, **VERSION,
)  # fmt: skip
NIC = _answered(
    "Nic", ("nic", "nic_model", "service", "cores", "free_cores", "tenants"),
    nic=NAME, nic_model=NAME, service={"enum": ["up", "draining", "failed"]}, cores=WHOLE, free_cores=WHOLE, cost=ANY,
    changed=WHOLE, tenants=_list(TENANT), **VERSION,
)  # fmt: skip
NICS = _answered("Nics", ("version", "nics", "cursor"), nics=_list(NIC), cursor=TEXT_OR_NOTHING, **VERSION)
OF_A_MODEL = _answered(
    "NicModelSummary", ("nic_model", "in_use", "idle", "draining", "failed", "cores", "cores_taken", "tenants"),
    nic_model=NAME,
    **dict.fromkeys(("in_use", "idle", "draining", "failed", "cores", "cores_taken", "tenants"), WHOLE),
)  # fmt: skip
SUMMARY = _answered(
    "Summary", ("version", "model", "tenants", "queued", "violations_seen", "nfs", "by_model"),
    **dict.fromkeys(("model", "tenants", "queued", "violations_seen"), WHOLE), nfs=_list(TEXT),
    by_model=_list(OF_A_MODEL), **VERSION,
)  # fmt: skip
PLACE = _answered(
    "Place", ("nic", "nic_model", "opens", "score"),
    nic=NAME, nic_model=NAME, opens={"type": "boolean"}, score=NUMBER_OR_NOTHING,
)  # fmt: skip
PLACES = _answered("Places", ("version", "places", "verdicts"), places=_list(PLACE), verdicts=_list(CLASS), **VERSION)
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
        "components": {"schemas": SCHEMAS, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
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
        "/v1/ask": {
            "post": _operation("ask", "Where it would go.", _json(PLACES), asked, [], _json({"oneOf": QUESTIONS}))
        },
        "/v1/summary": {"get": _operation("summary", "The fleet in numbers.", _json(SUMMARY), wrong)},
        "/v1/nics": {"get": _operation("nics", "NICs with their tenants.", _json(NICS), wrong, paging)},
        "/v1/nics/{nic}": {"get": _operation("nic", "One NIC.", _json(NIC), found, [_path("nic")])},
        "/v1/tenants/{id}": {"get": _operation("tenant", "One instance.", _json(FOUND_TENANT), found, [_path("id")])},
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
