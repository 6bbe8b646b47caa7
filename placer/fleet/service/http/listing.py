"""Lists of NICs and of instances: filtered, in pages, in the order of ids; and how each of them is shown.

A page is of the fleet as it is at its `version`. Whatever is in the fleet all the time is in exactly one page, because
the next page begins behind the last id of the one before.
"""

from __future__ import annotations

import heapq
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from placer.fleet.cores import shown_cores
from placer.fleet.engine import Engine
from placer.fleet.event_shapes import Name
from placer.fleet.protocol import faults_in
from placer.fleet.service.http import openapi
from placer.fleet.service.http.app import answer, read_route, refusal
from placer.fleet.service.http.openapi import DescribedRoute, RouteOperation
from placer.fleet.service.http.writer import Writer
from placer.fleet.what_if import PREDICTED_AT_ONCE, Steps
from placer.model.nic import Nic, Service, Tenant

MOST_LISTED, USUALLY_LISTED = 1_000, 100  # of one page: at most, and where the request does not say

SERVICES = tuple(service.value for service in Service if service is not Service.GONE)
PLACED, QUEUED = STATES = ("placed", "queued")
CHOICES = {"service": SERVICES, "state": STATES}
MAX_DIGITS = 15

_NAME: TypeAdapter[str] = TypeAdapter(Name)
_Listed = TypeVar("_Listed")
_Placed = tuple[Tenant, Nic | None]


class WrongParameter(Exception):
    """A parameter that makes no sense; the message says why."""


@dataclass(frozen=True)
class ListPage:
    """What a request asks for.

    `after`: the id that the page begins behind; None for the first page. `filters`: what must be equal, by parameter.
    """

    limit: int
    after: str | None
    filters: Mapping[str, str]

    @classmethod
    def of(cls, query: Mapping[str, str]) -> ListPage:
        """Raises WrongParameter with the first one that makes no sense."""
        limit, cursor = query.get("limit", f"{USUALLY_LISTED}"), query.get("cursor")
        if not (limit.isascii() and limit.isdigit() and len(limit) <= MAX_DIGITS and 1 <= int(limit) <= MOST_LISTED):
            raise WrongParameter(f"limit: give a whole number from 1 to {MOST_LISTED:,}")
        filters = {name: value for name, value in query.items() if name not in ("limit", "cursor")}
        for name, value in filters.items():
            if name in CHOICES and value not in CHOICES[name]:
                raise WrongParameter(f"{name}: give one of {', '.join(CHOICES[name])}")
            try:
                _NAME.validate_python(value)
            except ValidationError as error:
                raise WrongParameter(f"{name}: {'; '.join(faults_in(error))}") from error
        return cls(int(limit), None if cursor is None else id_of_cursor(cursor), filters)

    def first_of(self, found: Iterable[_Listed], id_of: Callable[[_Listed], str]) -> tuple[list[_Listed], str | None]:
        """Those of the page, and the cursor of the next one; None where this is the last."""
        after = self.after
        later = found if after is None else (listed for listed in found if id_of(listed) > after)
        first = heapq.nsmallest(self.limit + 1, later, key=id_of)
        page = first[: self.limit]
        return page, cursor_of(id_of(page[-1])) if len(first) > len(page) else None

    def keeps(self, **values: str) -> bool:
        """Whether these values are those that the filters ask for."""
        return all(values.get(name) == wanted for name, wanted in self.filters.items())


def cursor_of(last: str) -> str:
    """The cursor of the page behind an id."""
    return urlsafe_b64encode(last.encode()).decode().rstrip("=")


def id_of_cursor(cursor: str) -> str:
    """Raises WrongParameter where it is none that `cursor_of` made."""
    try:
        last = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except ValueError:
        last = ""
    if not last or cursor_of(last) != cursor:
        raise WrongParameter("cursor: give the cursor of the page before")
    return last


@dataclass(frozen=True)
class ListRoutes:
    """`GET /v1/nics` and `GET /v1/tenants`, which change nothing and wait until what was decided is committed."""

    writer: Writer

    def routes(self) -> list[DescribedRoute]:
        usual: Any = Annotated[int, Field(ge=1, le=MOST_LISTED, json_schema_extra={"default": USUALLY_LISTED})]
        cursor = Annotated[str, Field(min_length=1, description="that of the page before")]
        service, state = (Annotated[str, Field(json_schema_extra={"enum": [*CHOICES[name]]})] for name in CHOICES)
        nics = {"service": service, "model": Name, "pool": Name, "limit": usual, "cursor": cursor}
        tenants = {"nf": Name, "nic": Name, "state": state, "owner": Name, "limit": usual, "cursor": cursor}
        refusals = (400, 401, 403, 421, 422, 503)
        return [
            read_route("/v1/nics", self.nics, RouteOperation(
                "nics", "NICs with their tenants.", openapi.Nics, refusals, query=nics
            )),
            read_route("/v1/tenants", self.tenants, RouteOperation(
                "tenants", "Instances, and where they are.", openapi.Tenants, refusals, query=tenants
            )),
        ]  # fmt: skip

    async def nics(self, request: Request) -> Response:
        """`GET /v1/nics`."""
        try:
            page = ListPage.of(request.query_params)
        except WrongParameter as wrong:
            return refusal(422, str(wrong))
        engine = self.writer.engine

        def find() -> tuple[list[Nic], str | None]:
            all_nics = engine.fleet.all_nics()
            return page.first_of((nic for nic in all_nics if page.keeps(**_of_nic(nic))), lambda nic: nic.id)

        await self.writer.settle()
        await self.writer.work_through(predict_for(engine, find()[0]))
        found, cursor = find()  # as they are now
        shown: openapi.Nics = {
            "version": self.writer.version,
            "nics": [show_nic(engine, nic) for nic in found],
            "cursor": cursor,
        }
        return answer(shown)

    async def tenants(self, request: Request) -> Response:
        """`GET /v1/tenants`."""
        try:
            page = ListPage.of(request.query_params)
        except WrongParameter as wrong:
            return refusal(422, str(wrong))
        engine = self.writer.engine

        def find() -> tuple[list[_Placed], str | None]:
            return page.first_of(_find_tenants(engine, page.filters), lambda placed: placed[0].id)

        await self.writer.settle()
        nics = {nic.id: nic for _, nic in find()[0] if nic is not None}
        await self.writer.work_through(predict_for(engine, [*nics.values()]))
        found, cursor = find()  # as they are now
        shown: openapi.Tenants = {
            "version": self.writer.version,
            "tenants": [list_tenant(engine, tenant, nic) for tenant, nic in found],
            "cursor": cursor,
        }
        return answer(shown)


def _of_nic(nic: Nic) -> dict[str, str]:
    return {"service": nic.service.value, "model": nic.kind.model, "pool": nic.kind.pool}


def _find_tenants(engine: Engine, filters: Mapping[str, str]) -> Iterator[_Placed]:
    """The instances that the filters leave, each with its NIC; None of one that waits."""
    nf, state, nic_id, owner = (filters.get(name) for name in ("nf", "state", "nic", "owner"))
    if state != QUEUED:
        one = None if nic_id is None else engine.fleet.nics.find(nic_id)
        for nic in engine.fleet.nics.values() if nic_id is None else filter(None, [one]):
            for tenant in nic.tenants_by_id.values():
                if nf in (None, tenant.workload.nf) and owner in (None, tenant.owner):
                    yield tenant, nic
    if state != PLACED and nic_id is None:
        for tenant in engine.waiting.values():
            if nf in (None, tenant.workload.nf) and owner in (None, tenant.owner):
                yield tenant, None


# How a NIC and an instance are shown.


def predict_for(engine: Engine, nics: Sequence[Nic]) -> Steps[None]:
    """Ask for what is shown of these NICs, some at a time, so that no answer takes long."""
    for first in range(0, len(nics), PREDICTED_AT_ONCE):
        for kind, oracle in zip(engine.fleet.kinds, engine.oracles, strict=True):
            shared = [
                nic.co_location for nic in nics[first : first + PREDICTED_AT_ONCE] if nic.kind.index == kind.index
            ]
            alone = {(workload,) for co_location in shared for workload in co_location}
            oracle.throughput([*filter(None, shared), *sorted(alone)])
        yield


def show_nic(engine: Engine, nic: Nic) -> openapi.NicJson:
    workloads = [tenant.workload for tenant in nic.tenants]
    free, offered = nic.kind.cores - nic.kind.cores_taken(workloads), fsum(map(nic.kind.gbps_of, workloads))
    shown: openapi.NicJson = {
        "nic": nic.id, "nic_model": nic.kind.model, "service": nic.service.value, "cores": nic.kind.cores,
        "free_cores": free, "cost": nic.kind.cost, "changed": engine.versions.of(nic.id),
        "tenants": [show_on(engine, tenant, nic) for tenant in nic.tenants],
    }  # fmt: skip
    if offered:
        shown["offered_gbps"] = round(offered, 6)
    if nic.kind.pool:
        shown["pool"] = nic.kind.pool
    if nic.kind.domain:
        shown["domain"] = nic.kind.domain
    if nic.kind.line_rate_gbps < inf:
        shown["line_rate_gbps"] = nic.kind.line_rate_gbps
    return shown


def list_tenant(engine: Engine, tenant: Tenant, nic: Nic | None) -> openapi.ListedTenant:
    """An instance with its NIC, or in the queue."""
    if nic is None:
        return {"status": "queued", "nic": None, **_show_tenant(tenant, tenant.workload.cores or None)}
    return {"status": "placed", "nic": nic.id, **show_on(engine, tenant, nic)}


def show_on(engine: Engine, tenant: Tenant, nic: Nic) -> openapi.TenantJson:
    """An instance on its NIC, with what is predicted of it."""
    oracle = engine.oracles[nic.kind.index]
    solo = oracle.solo(tenant.workload)
    return {
        **_show_tenant(tenant, shown_cores(tenant, nic.kind)),
        "predicted_kpps": round(oracle.throughput_of(tenant.workload, nic.co_location), 3),
        "required_kpps": round(tenant.required_kpps(solo), 3),
        "solo_kpps": round(solo, 3),
    }


def _show_tenant(tenant: Tenant, cores: int | None) -> openapi.TenantJson:
    workload = tenant.workload
    shown: openapi.TenantJson = {"id": tenant.id, "nf": workload.nf, "traffic": dict(workload.traffic.as_dict())}
    if not workload.is_saturated:
        shown["rate_kpps"] = workload.rate_kpps
    if cores is not None:
        shown["cores"] = cores
    if workload.promises_latency:
        shown["sla_latency_us"] = workload.latency_us
    if tenant.sla.max_drop is not None:
        shown["sla_drop"] = tenant.sla.max_drop
    else:
        shown["sla_min_kpps"] = tenant.sla.min_kpps
    if tenant.priority:
        shown["priority"] = tenant.priority
    if tenant.owner:
        shown["owner"] = tenant.owner
    if tenant.labels:
        shown["labels"] = dict(tenant.labels)
    if tenant.reserved_until is not None:
        shown["reserved_until"] = tenant.reserved_until
    constraints: openapi.ConstraintsJson = dict(tenant.constraints.values)  # type: ignore[assignment]
    return {**shown, **constraints}
