"""What the service offers: the shapes of its answers, the OpenAPI 3.1 document, and the page `/docs` for people.

Schemas come from the types themselves: the pydantic models that requests are read with (`../../protocol.py`), and the
typed dictionaries here, with which mypy checks what the routes answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.resources import files
from typing import (
    Any,
    Literal,
    NotRequired,  # pydantic reads no others before Python 3.12
)

from jinja2 import Environment
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from starlette.routing import BaseRoute, Route
from typing_extensions import TypedDict

from placer.fleet.event_shapes import Name

JSON_TYPE, LINES_TYPE, TEXT_TYPE = "application/json", "application/x-ndjson", "text/plain"


class Refusal(TypedDict):
    """Why a request is refused; `cause` is `quota` where its owner would have too much."""

    ok: Literal[False]
    error: str
    cause: NotRequired[str]


class Good(TypedDict):
    """The service works, or takes requests."""

    ok: Literal[True]


Move = TypedDict(
    "Move",
    {
        "id": str,
        "from": str | None,
        "to": str | None,
        "cores": NotRequired[int],
        "why": NotRequired[str],
        "gain": NotRequired[float],
        "cost": NotRequired[float],
    },
)


class JudgedInstanceJson(TypedDict):
    """What was predicted of a measured instance (kpps), and whether its SLA is violated."""

    id: str
    predicted_kpps: float | None
    low_kpps: float | None
    high_kpps: float | None
    below_sla: bool | None


ClassOfNics = TypedDict(
    "ClassOfNics", {"nic_model": str, "company": list[str], "nics": int, "cause": str, "with": NotRequired[list[str]]}
)


class PlacementJson(TypedDict):
    """Where a member of a group is; null for the queue."""

    id: str
    nic: str | None


class DecisionJson(TypedDict):
    """The answer to an event, or the one that it would have. `version` is the number of the last event."""

    ok: Literal[True]
    event: str
    id: NotRequired[str]
    nic_model: NotRequired[str]
    pool: NotRequired[str]
    domain: NotRequired[str]
    budget: NotRequired[int]
    move_cost: NotRequired[float]
    risk_worth: NotRequired[float]
    status: str
    nic: NotRequired[str | None]
    cores: NotRequired[int]
    until: NotRequired[float]
    placements: NotRequired[list[PlacementJson]]
    model: NotRequired[int]
    instances: NotRequired[list[JudgedInstanceJson]]
    moves: list[Move]
    at_risk: NotRequired[list[str]]
    queued: NotRequired[list[str]]
    nics: NotRequired[list[str]]
    draining: NotRequired[list[str]]
    classes: NotRequired[int]
    reasons: NotRequired[list[ClassOfNics]]
    version: int


class PlaceJson(TypedDict):
    """Where an arrival would go, whether that opens the NIC, and its score, the lower the better.

    `cores`: those of an arrival with a rate, or with cores of its own.
    """

    nic: str
    nic_model: str
    opens: bool
    score: float | None
    cores: NotRequired[int]


class Places(TypedDict):
    """The answer to a question."""

    version: int
    places: list[PlaceJson]
    verdicts: list[ClassOfNics]


class ConstraintsJson(TypedDict):
    """The constraints that an instance has."""

    spread: NotRequired[str]
    apart: NotRequired[str]
    together: NotRequired[str]
    pool: NotRequired[str]
    most_per_nic: NotRequired[str]
    most_per_domain: NotRequired[str]
    exclusive: NotRequired[str]


class TenantJson(ConstraintsJson):
    """An instance, with its SLA and what is predicted of it; of a reservation, when it ends (s since 1970)."""

    id: str
    nf: str
    traffic: dict[str, float]
    rate_kpps: NotRequired[float]
    cores: NotRequired[int]
    sla_latency_us: NotRequired[float]
    sla_drop: NotRequired[float | None]
    sla_min_kpps: NotRequired[float | None]
    priority: NotRequired[int]
    owner: NotRequired[str]
    labels: NotRequired[dict[str, str]]
    reserved_until: NotRequired[float]
    predicted_kpps: NotRequired[float]
    required_kpps: NotRequired[float]
    solo_kpps: NotRequired[float]


class ListedTenant(TenantJson):
    """An instance, and where it is."""

    status: Literal["placed", "queued"]
    nic: str | None


class FoundTenant(ListedTenant):
    """An instance, and where it is, at a version of the fleet."""

    version: int


class Tenants(TypedDict):
    """A page of instances, and where the next one begins."""

    version: int
    tenants: list[ListedTenant]
    cursor: str | None


class NicJson(TypedDict):
    """A NIC with its tenants; `changed` is the number of the last event that changed it.

    `offered_gbps` is what is offered to its tenants with a rate, and `line_rate_gbps` what its port carries, if known.
    """

    version: NotRequired[int]
    nic: str
    nic_model: str
    service: str
    cores: int
    free_cores: int
    cost: float
    offered_gbps: NotRequired[float]
    line_rate_gbps: NotRequired[float]
    pool: NotRequired[str]
    domain: NotRequired[str]
    changed: int
    tenants: list[TenantJson]


class Nics(TypedDict):
    """A page of NICs, and where the next one begins."""

    version: int
    nics: list[NicJson]
    cursor: str | None


class NicModelSummary(TypedDict):
    """NICs of one model, and the cores of those in use."""

    nic_model: str
    in_use: int
    idle: int
    cordoned: int
    draining: int
    failed: int
    cores: int
    cores_taken: int
    tenants: int


class Summary(TypedDict):
    """The fleet in numbers.

    `log_from` is the number of the first event of the log, `model` the version of the models that decides.
    """

    version: int
    log_from: int
    model: int
    tenants: int
    queued: int
    violations_seen: int
    nfs: list[str]
    by_model: list[NicModelSummary]


REFUSAL_TEXTS = {
    400: "Not a request that has one meaning, such as one with two `Host` headers.",
    401: "No known token.",
    403: "The token does not have the scope, or is not for this owner.",
    404: "Unknown.",
    408: "The request came too slowly.",
    409: "The event cannot happen; nothing changed.",
    410: "The log no longer has these events; `log_from` is the first that it has.",
    412: "The NIC has changed since `If-Version`.",
    413: "Too large.",
    415: "The body is of another type.",
    421: "`Host` is not a name of this service.",
    422: "Not as described here.",
    429: "Too many requests are queued; see `Retry-After`.",
    503: "The service is stopping.",
}


@dataclass(frozen=True)
class RouteOperation:
    """What a route does.

    `name`, `summary`: its `operationId`, and its purpose. `answer`, `body`: the types of the answer and of the request,
    both JSON; a media type for one that is not. None without a body. `refusals`: statuses of refusals. `headers`,
    `query`: types of the headers and of the parameters after `?` that it takes, all of them optional.
    """

    name: str
    summary: str
    answer: Any
    refusals: Sequence[int]
    body: Any = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)


class DescribedRoute(Route):
    def __init__(self, path: str, endpoint: Callable[..., Any], operation: RouteOperation, method: str = "GET") -> None:
        super().__init__(path, endpoint, methods=[method])
        self.method = method.lower()
        self.operation = operation


class _Schemas(GenerateJsonSchema):
    """Schemas whose properties have no titles, which would only repeat their names; `TenantJson` is named `Tenant`."""

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(name.removesuffix("Json"))

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


BOUND_NAMES = {"ge": "minimum", "le": "maximum"}
"""JSON Schema's names of bounds that pydantic leaves under its own, those of numbers that it converts first."""


def describe(routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """The OpenAPI document of these routes, as far as they are described."""
    described = [route for route in routes if isinstance(route, DescribedRoute)]
    types: dict[tuple[str, str], Any] = {("", "refusal"): Refusal}
    for route in described:
        operation = route.operation
        types[route.path, "answer"], types[route.path, "body"] = operation.answer, operation.body
        types |= {(route.path, name): kind for name, kind in (*operation.headers.items(), *operation.query.items())}
        types |= {(route.path, name): Name for name in route.param_convertors}
    adapters = [
        (key, "validation", TypeAdapter(kind))
        for key, kind in types.items()
        if kind not in (None, LINES_TYPE, TEXT_TYPE)
    ]
    found, definitions = TypeAdapter.json_schemas(
        adapters,  # type: ignore[arg-type]
        ref_template="#/components/schemas/{model}",
        schema_generator=_Schemas,
    )
    schemas = {key: _standard(schema) for (key, _), schema in found.items()}
    paths: dict[str, Any] = {}
    for route in described:
        paths.setdefault(route.path_format, {})[route.method] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nf-placer",
            "version": version("nf-placer"),
            "description": "Places network functions on SmartNICs.",
        },
        "paths": paths,
        "components": {
            "schemas": _standard(definitions.get("$defs", {})),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(route: DescribedRoute, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    operation = route.operation

    def content(kind: Any, key: tuple[str, str]) -> dict[str, Any]:
        return (
            {kind: {"schema": {"type": "string"}}}
            if kind in (LINES_TYPE, TEXT_TYPE)
            else {JSON_TYPE: {"schema": schemas[key]}}
        )

    places = (("path", route.param_convertors), ("header", operation.headers), ("query", operation.query))
    refusal = content(Refusal, ("", "refusal"))
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            {"name": name, "in": place, "required": place == "path", "schema": schemas[route.path, name]}
            for place, names in places
            for name in names
        ],
        "responses": {
            "200": {"description": "The answer.", "content": content(operation.answer, (route.path, "answer"))},
            **{
                str(status): {"description": REFUSAL_TEXTS[status], "content": refusal} for status in operation.refusals
            },
        },
    }
    if operation.body is not None:
        found["requestBody"] = {"required": True, "content": content(operation.body, (route.path, "body"))}
    return found


def _standard(schema: Any) -> Any:
    """The schema with `BOUND_NAMES`."""
    if isinstance(schema, list):
        return [_standard(part) for part in schema]
    if isinstance(schema, dict):
        return {BOUND_NAMES.get(key, key): _standard(part) for key, part in schema.items()}
    return schema


def documentation_page(document: Mapping[str, Any]) -> str:
    """The document as HTML for people, which loads nothing but the style of the page `/`."""
    template = files(__package__).joinpath("docs.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(document=document)
