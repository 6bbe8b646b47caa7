"""Every route of the service: those that decide, `EventRoutes`, and those that read, `QuestionRoutes`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import fsum, inf
from typing import Annotated, Any

from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from placer.fleet.cores import shown_cores
from placer.fleet.events import Refused
from placer.fleet.protocol import (
    MAX_LISTED_CLASSES,
    AnyEvent,
    Malformed,
    Wanted,
    Whole,
    faults_in,
    refuse_repeated_keys,
)
from placer.fleet.service.http import openapi
from placer.fleet.service.http.app import (
    EVENTS_PATH,
    RETRY_AFTER,
    Posted,
    answer,
    lines,
    posted_route,
    read_route,
    refusal,
)
from placer.fleet.service.http.metrics import model_of, nics_by_service
from placer.fleet.service.http.openapi import JSON_TYPE, LINES_TYPE, TEXT_TYPE, DescribedRoute, RouteOperation
from placer.fleet.service.http.writer import Writer
from placer.fleet.what_if import PREDICTED_AT_ONCE, ClassVerdict, ExpectedPlace, Steps, WhatIf
from placer.model.fleet import Nic, Service, Tenant

LONGEST_EVENT = 1_000_000  # bytes of one event
MOST_EVENTS = 100_000  # events of one request
LONGEST_KEY = 256  # characters of an idempotency key
MOST_PLACES = 100  # arrivals of one question, and alternatives of one
MOST_NICS, USUAL_NICS = 1_000, 100  # NICs of one answer: at most, and where the request does not say
MOST_LOG, LONGEST_WAIT = 1_000, 60.0  # events of one answer, and seconds that it may wait for one

SERVICES = tuple(service.value for service in Service if service is not Service.GONE)
MAX_DIGITS = 15
ASKED_ID = "ask"
Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_KEY,
        pattern="^[ -~]*[!-~]$",
        description="the same key and request get the same answer",
    ),
]
Since = Annotated[int, Field(description="of an arrival that names its NIC: 412 where that has changed since")]
Number = Annotated[int, Field(ge=0, lt=10**MAX_DIGITS)]


@dataclass(frozen=True)
class EventRoutes:
    """`POST /v1/events` and `POST /v1/events:batch`."""

    writer: Writer

    def routes(self) -> list[DescribedRoute]:
        """Both."""
        refusals = (400, 401, 403, 408, 409, 412, 413, 415, 421, 422, 429, 503)
        headers = {"Idempotency-Key": Key, "If-Version": Since}
        one = RouteOperation("decide", "Decide on one event.", openapi.DecisionJson, refusals, AnyEvent, headers)
        batch = RouteOperation(
            "decideMany", "Decide on a line each; answers come in the same order.", LINES_TYPE, refusals, LINES_TYPE,
            {"Idempotency-Key": Key},
        )  # fmt: skip
        return [
            posted_route(EVENTS_PATH, self.one, one, LONGEST_EVENT),
            posted_route(f"{EVENTS_PATH}:batch", self.batch, batch),
        ]

    async def one(self, posted: Posted) -> Response:
        key, if_version = posted.header(b"idempotency-key"), posted.header(b"if-version")
        wrong = _wrong_headers(key, if_version)
        if wrong is not None:
            return wrong
        (found,) = await self.writer.submit(
            [posted.body], key, None if if_version is None else int(if_version), token=posted.token
        )
        return Response(found.text, found.status, media_type=JSON_TYPE)

    async def batch(self, posted: Posted) -> Response:
        """Decide on a line each; the status of each answer is in its line."""
        key = posted.header(b"idempotency-key")
        wrong = _wrong_headers(key, None)
        if wrong is not None:
            return wrong
        events = [line for line in posted.body.split(b"\n") if line.strip()]
        if any(len(event) > LONGEST_EVENT for event in events):
            return refusal(413, f"an event is larger than {LONGEST_EVENT:,} bytes")
        if len(events) > MOST_EVENTS:
            return refusal(413, f"the request has more than {MOST_EVENTS:,} events")
        if not events:
            return refusal(422, "there is no event: give one JSON object per line")
        found = await self.writer.submit(events, key, token=posted.token)
        return lines(answer.text for answer in found)


def _wrong_headers(key: str | None, if_version: str | None) -> Response | None:
    if key is not None and not (0 < len(key) <= LONGEST_KEY and key.isprintable()):
        return refusal(422, f"Idempotency-Key: give 1 to {LONGEST_KEY} printable characters")
    if if_version is not None and not (if_version.isascii() and if_version.isdigit() and len(if_version) <= MAX_DIGITS):
        return refusal(422, "If-Version: give the `version` of an answer")
    return None


class Question(Wanted):
    """Where instances of an NF would go: `count` of them one after the other, or the `top` places of one."""

    count: Annotated[Whole, Field(ge=1, le=MOST_PLACES)] = 1
    top: Annotated[Whole, Field(ge=1, le=MOST_PLACES)] = 1
    explain: bool = False


@dataclass(frozen=True)
class QuestionRoutes:
    """Everything that changes nothing. All waits until what was decided before is committed."""

    writer: Writer
    what_if: WhatIf

    def routes(self) -> list[DescribedRoute]:
        wrong, health = (400, 401, 403, 421, 422, 503), (400, 422, 503)
        usual: Any = Annotated[int, Field(ge=1, le=MOST_NICS, json_schema_extra={"default": USUAL_NICS})]
        service = Annotated[str, Field(json_schema_extra={"enum": [*SERVICES]})]
        log = {"after": Number, "wait_s": Annotated[float, Field(ge=0, le=LONGEST_WAIT)]}
        found = (
            ("/v1/summary", self.summary, RouteOperation("summary", "The fleet in numbers.", openapi.Summary, wrong)),
            ("/v1/nics", self.nics, RouteOperation(
                "nics", "NICs with their tenants.", openapi.Nics, wrong,
                query={"service": service, "limit": usual, "cursor": Number},
            )),
            ("/v1/nics/{nic:path}", self.nic, RouteOperation("nic", "One NIC.", openapi.NicJson, (*wrong, 404))),
            ("/v1/tenants/{id:path}", self.tenant, RouteOperation(
                "tenant", "One instance.", openapi.FoundTenant, (*wrong, 404)
            )),
            ("/v1/log", self.log, RouteOperation(
                "log", "Events, with their answers.", LINES_TYPE, (*wrong, 410), query=log
            )),
            ("/healthz", self.alive, RouteOperation("alive", "Whether it works.", openapi.Good, health)),
            ("/readyz", self.ready, RouteOperation("ready", "Whether it takes requests.", openapi.Good, health)),
            ("/metrics", self.metrics, RouteOperation(
                "metrics", "For Prometheus.", TEXT_TYPE, (400, 401, 403, 421, 422)
            )),
        )  # fmt: skip
        asked = RouteOperation(
            "ask", "Where it would go.", openapi.Places, (400, 401, 403, 408, 409, 413, 415, 421, 422, 503), Question
        )
        return [posted_route("/v1/ask", self.ask, asked, LONGEST_EVENT), *(read_route(*route) for route in found)]

    async def ask(self, posted: Posted) -> Response:
        try:
            question = Question.model_validate_json(posted.body)
            refuse_repeated_keys(posted.body, question.keys)
            arrival = self.writer.reader.tenant(ASKED_ID, question)
        except ValidationError as error:
            return refusal(422, "; ".join(faults_in(error)))
        except Refused as refused:
            return refusal(422 if isinstance(refused, Malformed) else 409, str(refused))
        if question.count > 1 and question.top > 1:
            return refusal(
                422, "count and top: places one after the other, or alternatives for one; give one of the two"
            )
        places = await self.writer.work_through(self.what_if.places(arrival, question.count, question.top))
        explained = question.explain or len(places) < question.count
        verdicts = await self.writer.work_through(self.what_if.verdicts(arrival)) if explained else []
        found: openapi.Places = {
            "version": self.writer.version,
            "places": [_show_place(place) for place in places],
            "verdicts": [_show_verdict(verdict) for verdict in verdicts[:MAX_LISTED_CLASSES]],
        }
        return answer(found)

    async def tenant(self, request: Request) -> Response:
        """`GET /v1/tenants/{id}`."""
        await self.writer.settle()
        engine, identity = self.writer.engine, request.path_params["id"]
        nic = engine.fleet.nic_of(identity)
        tenant = nic.tenants_by_id[identity] if nic is not None else engine.waiting.get(identity)
        if tenant is None:
            return refusal(404, f"'{identity}' is not placed or queued")
        shown = (
            next(shown_tenant for shown_tenant in self._tenants(nic) if shown_tenant["id"] == identity)
            if nic
            else _show_tenant(tenant, tenant.workload.cores or None)
        )
        found: openapi.FoundTenant = {
            "version": self.writer.version,
            "status": "placed" if nic else "queued",
            "nic": nic.id if nic else None,
            **shown,
        }
        return answer(found)

    async def nic(self, request: Request) -> Response:
        await self.writer.settle()
        nic = self.writer.engine.fleet.find(request.path_params["nic"])
        if nic is None:
            return refusal(404, f"'{request.path_params['nic']}' was never in use")
        found: openapi.NicJson = {"version": self.writer.version, **self._nic(nic)}
        return answer(found)

    async def nics(self, request: Request) -> Response:
        """`GET /v1/nics`: NICs in the order of their numbers, from the one after the cursor on."""
        query = request.query_params
        limit, after, service = query.get("limit", f"{USUAL_NICS}"), query.get("cursor", "0"), query.get("service")
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit) <= MOST_NICS):
            return refusal(422, f"limit: give a whole number from 1 to {MOST_NICS:,}")
        if not (after.isascii() and after.isdigit() and len(after) <= MAX_DIGITS):
            return refusal(422, "cursor: give the cursor of the page before")
        if service not in (None, *SERVICES):
            return refusal(422, f"service: give one of {', '.join(SERVICES)}")
        wanted = SERVICES if service is None else (service,)

        def find() -> list[Nic]:
            all_nics = self.writer.engine.fleet.all_nics()
            later = (nic for nic in all_nics if nic.number > int(after) and nic.service.value in wanted)
            return sorted(later, key=_number)

        await self.writer.settle()
        await self.writer.work_through(self._predict(find()[: int(limit)]))
        found = find()  # as they are now
        page = found[: int(limit)]
        cursor = str(page[-1].number) if len(found) > len(page) else None
        shown: openapi.Nics = {
            "version": self.writer.version,
            "nics": [self._nic(nic) for nic in page],
            "cursor": cursor,
        }
        return answer(shown)

    async def summary(self, request: Request) -> Response:
        """`GET /v1/summary`."""
        await self.writer.settle()
        engine = self.writer.engine
        counts, fleet = nics_by_service(engine), engine.fleet
        taken = dict.fromkeys((kind.model for kind in fleet.kinds), (0, 0, 0))
        for kind in fleet.all_kinds:
            cores, used, tenants = taken[kind.model]
            cores += kind.cores * fleet.in_use(kind)
            taken[kind.model] = cores, used + fleet.cores_taken(kind), tenants + fleet.tenants_on(kind)
        by_model: list[openapi.NicModelSummary] = [
            {
                "nic_model": model,
                "in_use": counts[model, "in use"],
                "idle": counts[model, "idle"],
                "cordoned": counts[model, "cordoned"],
                "draining": counts[model, "draining"],
                "failed": counts[model, "failed"],
                "cores": cores,
                "cores_taken": cores_taken,
                "tenants": tenants,
            }
            for model, (cores, cores_taken, tenants) in taken.items()
        ]
        found: openapi.Summary = {
            "version": self.writer.version,
            "log_from": self.writer.state.log_from,
            "model": model_of(engine),
            "tenants": fleet.tenants,
            "queued": len(engine.waiting),
            "violations_seen": self.writer.metrics.violations_seen,
            "nfs": sorted({nf for kind in fleet.kinds for nf in kind.cores_of}),
            "by_model": by_model,
        }
        return answer(found)

    async def log(self, request: Request) -> Response:
        """`GET /v1/log`: events after one, or the next that is committed within `wait_s` seconds."""
        after, wait = request.query_params.get("after", "0"), request.query_params.get("wait_s", "0")
        try:
            seconds = float(wait)
        except ValueError:
            seconds = -1.0
        if not (after.isascii() and after.isdigit() and len(after) <= MAX_DIGITS):
            return refusal(422, "after: give the number of an event")
        if not 0 <= seconds <= LONGEST_WAIT:
            return refusal(422, f"wait_s: give seconds from 0 to {LONGEST_WAIT:g}")
        await self.writer.settle()
        if self.writer.version <= int(after) and seconds and not self.writer.stopping:
            await self.writer.wait_for_change(seconds)
            await self.writer.settle()
        rows = await self.writer.with_state(partial(self.writer.state.log_after, int(after), MOST_LOG))
        log_from = rows[0][0] if rows else self.writer.state.log_from
        if int(after) + 1 < log_from:
            message = f"the log begins with event {log_from}: read the fleet anew, then the log after its version"
            return answer({"ok": False, "error": message, "log_from": log_from}, 410)
        return lines(log_line(*row) for row in rows)

    async def alive(self, request: Request) -> Response:
        """`GET /healthz`."""
        return answer({"ok": True}) if self.writer.failure is None else refusal(503, "the state cannot be written")

    async def ready(self, request: Request) -> Response:
        """`GET /readyz`."""
        if self.writer.stopping:
            return refusal(503, "the service is stopping")
        return answer({"ok": True}) if self.writer.trouble is None else refusal(503, self.writer.trouble, RETRY_AFTER)

    async def metrics(self, request: Request) -> Response:
        return Response(self.writer.metrics.text(), media_type="text/plain; version=0.0.4")

    def _predict(self, nics: Sequence[Nic]) -> Steps[None]:
        """Ask for what is shown of these NICs, some at a time, so that no answer takes long."""
        for first in range(0, len(nics), PREDICTED_AT_ONCE):
            for kind, oracle in zip(self.writer.engine.fleet.kinds, self.writer.engine.oracles, strict=True):
                shared = [
                    nic.co_location for nic in nics[first : first + PREDICTED_AT_ONCE] if nic.kind.index == kind.index
                ]
                alone = {(workload,) for co_location in shared for workload in co_location}
                oracle.throughput([*filter(None, shared), *sorted(alone)])
            yield

    def _nic(self, nic: Nic) -> openapi.NicJson:
        workloads = [tenant.workload for tenant in nic.tenants]
        free, offered = nic.kind.cores - nic.kind.cores_taken(workloads), fsum(map(nic.kind.gbps_of, workloads))
        shown: openapi.NicJson = {
            "nic": nic.id, "nic_model": nic.kind.model, "service": nic.service.value, "cores": nic.kind.cores,
            "free_cores": free, "cost": nic.kind.cost, "changed": self.writer.engine.versions.of(nic.id),
            "tenants": list(self._tenants(nic)),
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

    def _tenants(self, nic: Nic) -> Iterator[openapi.TenantJson]:
        """The tenants of a NIC, with what is predicted of them."""
        if not nic.tenants_by_id:
            return
        oracle = self.writer.engine.oracles[nic.kind.index]
        predicted = oracle.by_workload(nic.co_location)
        for tenant in nic.tenants:
            solo = oracle.solo(tenant.workload)
            yield {
                **_show_tenant(tenant, shown_cores(tenant, nic.kind)),
                "predicted_kpps": round(predicted[tenant.workload], 3),
                "required_kpps": round(tenant.required_kpps(solo), 3),
                "solo_kpps": round(solo, 3),
            }


def log_line(number: int, event: str, given: str) -> str:
    """One event of the log with its answer, as JSON."""
    return f'{{"number": {number}, "event": {event}, "answer": {given}}}'


def _show_place(place: ExpectedPlace) -> openapi.PlaceJson:
    shown: openapi.PlaceJson = {
        "nic": place.nic, "nic_model": place.nic_model, "opens": place.opens, "score": place.score,
    }  # fmt: skip
    if place.cores is not None:
        shown["cores"] = place.cores
    return shown


def _show_verdict(verdict: ClassVerdict) -> openapi.ClassOfNics:
    nfs = [workload.nf for workload in verdict.co_location]
    shown: openapi.ClassOfNics = {
        "nic_model": verdict.nic_model, "company": nfs, "nics": verdict.nics, "cause": verdict.cause,
    }  # fmt: skip
    return {**shown, "with": list(verdict.met)} if verdict.met else shown


def _show_tenant(tenant: Tenant, cores: int | None) -> openapi.TenantJson:
    workload = tenant.workload
    shown: openapi.TenantJson = {
        "id": tenant.id,
        "nf": workload.nf,
        "traffic": dict(workload.traffic.as_dict()),
    }
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
    constraints: openapi.ConstraintsJson = dict(tenant.constraints.values)  # type: ignore[assignment]
    return {**shown, **constraints}


def _number(nic: Nic) -> int:
    return nic.number
