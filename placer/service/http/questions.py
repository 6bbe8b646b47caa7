"""Routes that read: where an arrival would go, NICs, tenants, the log, health and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from placer.model.fleet import Nic, Tenant
from placer.model.sla import Sla
from placer.online.events import Refused
from placer.online.protocol import SHOWN, Malformed, Wanted, Whole, faults_in
from placer.online.what_if import ClassVerdict, WhatIf
from placer.service.http.answers import answer, lines, refusal
from placer.service.http.metrics import model_of, nics_by_service
from placer.service.http.posted import Posted
from placer.service.http.writer import Writer

MOST_PLACES = 100
"""Arrivals of one question, and alternatives of one."""

MOST_NICS = 1_000
"""NICs of one answer."""

MOST_LOG, LONGEST_WAIT = 1_000, 60.0
"""Events of one answer, and seconds that it may wait for one."""

ASKED = "ask"
"""The id of an instance that is only asked for."""


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

    async def ask(self, posted: Posted) -> Response:
        """`POST /v1/ask`."""
        try:
            question = Question.model_validate_json(posted.body)
            arrival = self.writer.reader.tenant(ASKED, question)
        except ValidationError as error:
            return refusal(422, "; ".join(faults_in(error)))
        except Refused as refused:
            return refusal(422 if isinstance(refused, Malformed) else 409, str(refused))
        if question.count > 1 and question.top > 1:
            return refusal(
                422, "count and top: places one after the other, or alternatives for one; give one of the two"
            )
        await self.writer.settled()
        places = self.what_if.places(arrival, question.count, question.top)
        explained = question.explain or len(places) < question.count
        return answer(
            {
                "version": self.writer.version,
                "places": [
                    {"nic": one.nic, "nic_model": one.nic_model, "opens": one.opens, "score": one.score}
                    for one in places
                ],
                "verdicts": [_verdict(one) for one in self.what_if.verdicts(arrival)[:SHOWN]] if explained else [],
            }
        )

    async def tenant(self, request: Request) -> Response:
        """`GET /v1/tenants/{id}`."""
        await self.writer.settled()
        engine, identity = self.writer.engine, request.path_params["id"]
        nic = engine.fleet.nic_of(identity)
        tenant = nic.tenants_by_id[identity] if nic is not None else engine.waiting.get(identity)
        if tenant is None:
            return refusal(404, f"'{identity}' is not placed or queued")
        where = {"status": "placed" if nic else "queued", "nic": nic.id if nic else None}
        shown = next(one for one in self._tenants(nic) if one["id"] == identity) if nic else _tenant(tenant)
        return answer({"version": self.writer.version, **where, **shown})

    async def nic(self, request: Request) -> Response:
        """`GET /v1/nics/{nic}`."""
        await self.writer.settled()
        nic = self.writer.engine.fleet.find(request.path_params["nic"])
        if nic is None:
            return refusal(404, f"'{request.path_params['nic']}' was never in use")
        return answer({"version": self.writer.version, **self._nic(nic)})

    async def nics(self, request: Request) -> Response:
        """`GET /v1/nics`: NICs in the order of their numbers, from the one after the cursor on."""
        limit, after = request.query_params.get("limit", "100"), request.query_params.get("cursor", "0")
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit) <= MOST_NICS):
            return refusal(422, f"limit: give a whole number from 1 to {MOST_NICS:,}")
        if not (after.isascii() and after.isdigit() and len(after) < 16):
            return refusal(422, "cursor: give the cursor of the page before")
        await self.writer.settled()
        found = sorted((nic for nic in self.writer.engine.fleet.all_nics() if nic.number > int(after)), key=_number)
        page = found[: int(limit)]
        cursor = str(page[-1].number) if len(found) > len(page) else None
        return answer({"version": self.writer.version, "nics": [self._nic(nic) for nic in page], "cursor": cursor})

    async def summary(self, request: Request) -> Response:
        """`GET /v1/summary`."""
        await self.writer.settled()
        engine = self.writer.engine
        counts = nics_by_service(engine)
        models = dict.fromkeys(kind.model for kind in engine.fleet.kinds)
        taken = dict.fromkeys(models, (0, 0, 0))
        for nic in engine.fleet.nics.values():
            cores, used, tenants = taken[nic.kind.model]
            more = nic.kind.cores_taken(one.workload for one in nic.tenants_by_id.values())
            taken[nic.kind.model] = cores + nic.kind.cores, used + more, tenants + len(nic.tenants_by_id)
        return answer(
            {
                "version": self.writer.version,
                "model": model_of(engine),
                "tenants": engine.fleet.tenants,
                "queued": len(engine.waiting),
                "violations_seen": self.writer.metrics.violations_seen,
                "nfs": sorted({nf for kind in engine.fleet.kinds for nf in kind.cores_of}),
                "by_model": [
                    {
                        "nic_model": model,
                        **{service.replace(" ", "_"): counts[model, service] for service in SERVICES},
                        **dict(zip(("cores", "cores_taken", "tenants"), taken[model], strict=True)),
                    }
                    for model in models
                ],
            }
        )

    async def log(self, request: Request) -> Response:
        """`GET /v1/log`: events after one, or the next that is committed within `wait_s` seconds."""
        after, wait = request.query_params.get("after", "0"), request.query_params.get("wait_s", "0")
        try:
            seconds = float(wait)
        except ValueError:
            seconds = -1.0
        if not (after.isascii() and after.isdigit() and len(after) < 16):
            return refusal(422, "after: give the number of an event")
        if not 0 <= seconds <= LONGEST_WAIT:
            return refusal(422, f"wait_s: give seconds from 0 to {LONGEST_WAIT:g}")
        await self.writer.settled()
        if self.writer.version <= int(after) and seconds and not self.writer.stopping:
            await self.writer.changed(seconds)
            await self.writer.settled()
        rows = await self.writer.with_state(partial(self.writer.state.log_after, int(after), MOST_LOG))
        return lines(log_line(*row) for row in rows)

    async def alive(self, request: Request) -> Response:
        """`GET /healthz`."""
        return answer({"ok": True}) if self.writer.failure is None else refusal(503, "the state cannot be written")

    async def ready(self, request: Request) -> Response:
        """`GET /readyz`."""
        if self.writer.stopping:
            return refusal(503, "the service is stopping")
        return answer({"ok": True}) if self.writer.up else refusal(503, "the state cannot be reached")

    async def metrics(self, request: Request) -> Response:
        """`GET /metrics`."""
        return Response(self.writer.metrics.text(), media_type="text/plain; version=0.0.4")

    def _nic(self, nic: Nic) -> dict[str, Any]:
        free = nic.kind.cores - nic.kind.cores_taken(one.workload for one in nic.tenants)
        return {
            "nic": nic.id, "nic_model": nic.kind.model, "service": nic.service.value, "cores": nic.kind.cores,
            "free_cores": free, "cost": nic.kind.cost, "changed": self.writer.engine.versions.of(nic.id),
            "tenants": list(self._tenants(nic)),
        }  # fmt: skip

    def _tenants(self, nic: Nic) -> Iterator[dict[str, Any]]:
        """The tenants of a NIC, with what is predicted of them."""
        if not nic.tenants_by_id:
            return
        oracle = self.writer.engine.oracles[nic.kind.index]
        predicted = oracle.by_workload(nic.co_location)
        for tenant in nic.tenants:
            solo = oracle.solo(tenant.workload)
            yield _tenant(tenant) | {
                "predicted_kpps": round(predicted[tenant.workload], 3),
                "required_kpps": round(tenant.sla.required_kpps(solo), 3),
                "solo_kpps": round(solo, 3),
            }


SERVICES = ("in use", "idle", "draining", "failed")


def log_line(number: int, event: str, given: str) -> str:
    """One event of the log with its answer, as JSON."""
    return f'{{"number": {number}, "event": {event}, "answer": {given}}}'


def _verdict(one: ClassVerdict) -> dict[str, Any]:
    nfs = [workload.nf for workload in one.co_location]
    return {"nic_model": one.nic_model, "company": nfs, "nics": one.nics, "cause": one.cause}


def _tenant(tenant: Tenant) -> dict[str, Any]:
    sla: Sla = tenant.sla
    required = {"sla_drop": sla.max_drop} if sla.max_drop is not None else {"sla_min_kpps": sla.min_kpps}
    return {
        "id": tenant.id,
        "nf": tenant.workload.nf,
        "traffic": dict(tenant.workload.traffic.as_dict()),
        **required,
    }


def _number(nic: Nic) -> int:
    return nic.number
