"""Every route of the service: those that decide, `EventRoutes`, and those that read, `QuestionRoutes`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from placer.fleet.event_lines import MAX_LISTED_CLASSES
from placer.fleet.event_shapes import AnyEvent, Malformed, Wanted, Whole
from placer.fleet.events import Refused
from placer.fleet.protocol import faults_in, refuse_repeated_keys
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
from placer.fleet.service.http.listing import ListRoutes, list_tenant, show_nic
from placer.fleet.service.http.metrics import model_of, nics_by_service
from placer.fleet.service.http.openapi import JSON_TYPE, LINES_TYPE, TEXT_TYPE, DescribedRoute, RouteOperation
from placer.fleet.service.http.writer import Writer
from placer.fleet.service.log import show_time
from placer.fleet.what_if import ClassVerdict, ExpectedPlace, Steps, WhatIf
from placer.model.nic import Tenant

LONGEST_EVENT = 1_000_000  # bytes of one event
MOST_EVENTS = 100_000  # events of one request
LONGEST_KEY = 256  # characters of an idempotency key
MOST_PLACES = 100  # arrivals of one question, and alternatives of one
MOST_LOG, LONGEST_WAIT = 1_000, 60.0  # events of one answer, and seconds that it may wait for one

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
        if posted.header(b"if-version") is not None:
            return refusal(422, "If-Version: is for single events")
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
        log = {"after": Number, "wait_s": Annotated[float, Field(ge=0, le=LONGEST_WAIT)]}
        found = (
            ("/v1/summary", self.summary, RouteOperation("summary", "The fleet in numbers.", openapi.Summary, wrong)),
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
        return [
            posted_route("/v1/ask", self.ask, asked, LONGEST_EVENT),
            *ListRoutes(self.writer).routes(),
            *(read_route(*route) for route in found),
        ]

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
        return answer(await self.writer.work_through(self._answer_to(question, arrival)))

    def _answer_to(self, question: Question, arrival: Tenant) -> Steps[openapi.Places]:
        """Where it would go, by the fleet as it was after the event `version`."""
        places = yield from self.what_if.places(arrival, question.count, question.top)
        version, verdicts = self.writer.version, list[ClassVerdict]()
        if question.explain or len(places) < question.count:
            verdicts = yield from self.what_if.verdicts(arrival)
        return {
            "version": version,
            "places": [_show_place(place) for place in places],
            "verdicts": [_show_verdict(verdict) for verdict in verdicts[:MAX_LISTED_CLASSES]],
        }

    async def tenant(self, request: Request) -> Response:
        """`GET /v1/tenants/{id}`."""
        await self.writer.settle()
        engine, identity = self.writer.engine, request.path_params["id"]
        nic = engine.fleet.nic_of(identity)
        tenant = nic.tenants_by_id[identity] if nic is not None else engine.waiting.get(identity)
        if tenant is None:
            return refusal(404, f"'{identity}' is not placed or queued")
        found: openapi.FoundTenant = {"version": self.writer.version, **list_tenant(engine, tenant, nic)}
        return answer(found)

    async def nic(self, request: Request) -> Response:
        await self.writer.settle()
        nic = self.writer.engine.fleet.find(request.path_params["nic"])
        if nic is None:
            return refusal(404, self.writer.engine.miss(request.path_params["nic"]))
        found: openapi.NicJson = {"version": self.writer.version, **show_nic(self.writer.engine, nic)}
        return answer(found)

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


def log_line(number: int, event: str, given: str, seconds: float | None, actor: str | None) -> str:
    """One event of the log with its answer, as JSON: when it was decided on, and who sent it, as far as that is known.

    `seconds`: since 1970.
    """
    at = "" if seconds is None else f'"time": "{show_time(seconds)}", '
    by = "" if actor is None else f'"actor": {json.dumps(actor)}, '
    return f'{{"number": {number}, {at}{by}"event": {event}, "answer": {given}}}'


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
