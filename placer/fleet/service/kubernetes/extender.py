"""The extender of kube-scheduler: filter and prioritize advise; bind decides.

Types are those of k8s.io/kube-scheduler/extender/v1, whose JSON has the names of the Go fields. Every answer has
status 200, since kube-scheduler takes any other as a failure of the extender.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

import httpx
from starlette.responses import Response

from placer.fleet.events import Arrive, Refused
from placer.fleet.service.http.app import Background, Posted, answer, posted_route, refusal
from placer.fleet.service.http.openapi import JSON_TYPE, DescribedRoute, RouteOperation
from placer.fleet.service.http.writer import Writer
from placer.fleet.service.kubernetes.api import KubernetesApi
from placer.fleet.service.kubernetes.pods import Pod, WrongPod, pod_of
from placer.fleet.service.kubernetes.watch import Watcher
from placer.fleet.what_if import WhatIf
from placer.model.fleet import Tenant

BEST_SCORE = 10
REFUSAL_STATUSES = (400, 401, 403, 408, 413, 415, 421, 422, 429, 503)

MAX_REMEMBERED_PODS = 10_000


class _Impossible(Exception):
    """Why a request cannot be answered."""


@dataclass
class Extender:
    """The three verbs."""

    writer: Writer
    what_if: WhatIf
    api: KubernetesApi
    watcher: Watcher
    _seen: OrderedDict[str, Pod] = field(default_factory=OrderedDict)

    def routes(self) -> list[DescribedRoute]:
        """The routes of the three verbs."""
        verbs = (
            ("filter", self.filter, "Nodes that take a pod."),
            ("prioritize", self.prioritize, "Scores of nodes."),
            ("bind", self.bind, "Bind a pod to a node."),
        )
        return [
            posted_route(
                f"/k8s/v1/{name}", handler, RouteOperation(name, summary, Any, REFUSAL_STATUSES, dict[str, Any])
            )
            for name, handler, summary in verbs
        ]

    async def filter(self, posted: Posted) -> Response:
        """Nodes on which every SLA would be met, and why the others do not take the pod."""
        try:
            pod, names = self._pod_and_names(posted.body)
            if pod is None:
                return answer(_filter(names))
            arrival = self._arrival(pod)
            await self.writer.settle()
        except _Impossible as error:
            return answer(_filter([], error=str(error)))
        except (Refused, WrongPod) as wrong:
            return answer(_filter([], unresolvable=dict.fromkeys(names, str(wrong))))
        except ValueError as error:
            return refusal(400, f"not the arguments of an extender: {error}")
        reasons = self.what_if.misfits(arrival, names)
        failed = {name: str(reason) for name, reason in reasons.items() if reason is not None}
        return answer(_filter([name for name, reason in reasons.items() if reason is None], failed))

    async def prioritize(self, posted: Posted) -> Response:
        """Scores of nodes from 0 to 10: the NIC that the rule prefers has 10, one that is not in use has 0."""
        try:
            pod, names = self._pod_and_names(posted.body)
            if pod is None:
                return _score(names, {})
            arrival = self._arrival(pod)
            await self.writer.settle()
        except (_Impossible, Refused, WrongPod):
            return _score(names, {})
        except ValueError as error:
            return refusal(400, f"not the arguments of an extender: {error}")
        scores = _from_0_to_10(self.what_if.scores(arrival, names))
        return _score(names, scores)

    async def bind(self, posted: Posted) -> Response:
        """Place the pod on the node, then bind it; where that fails, it is taken off again."""
        try:
            body = json.loads(posted.body)
            namespace, name, uid, node = (str(body[key]) for key in ("PodNamespace", "PodName", "PodUID", "Node"))
        except (ValueError, KeyError, TypeError) as error:
            return refusal(400, f"not the arguments of an extender: {error!r}")
        try:
            pod = self._seen.get(uid) or await self._look_up(namespace, name, uid)
            if pod is not None:
                await self._place(pod, node)
            await self._bind(pod, namespace, name, uid, node)
        except (_Impossible, WrongPod) as error:
            return answer({"Error": str(error)})
        except httpx.HTTPError as error:
            return answer({"Error": f"the API server does not answer: {error!r}"})
        return answer({"Error": ""})

    async def _place(self, pod: Pod, node: str) -> None:
        """Decide that the pod goes to the node; the same again is no second decision."""
        for attempt in (1, 2):
            given = await self._decide(pod.arrival(node))
            if not given["ok"]:
                raise _Impossible(str(given["error"]))
            if given["nic"] == node:
                return
            bound = pod_of(await self.api.pod(pod.namespace, pod.name) or {})
            if attempt == 2 or bound is None or bound.node is not None:
                break
            await self._depart(pod)  # a former bind placed it, and then failed
        raise _Impossible(f"the pod is on {given['nic']} already")

    async def _bind(self, pod: Pod | None, namespace: str, name: str, uid: str, node: str) -> None:
        try:
            given = await self.api.bind(namespace, name, uid, node)
        except httpx.HTTPError:
            if pod is not None:
                await self._depart(pod)
            raise
        if given.status < 300:
            return
        found = await self.api.pod(namespace, name)
        if found is not None and (found.get("spec") or {}).get("nodeName") == node:
            return
        if pod is not None:
            await self._depart(pod)
        raise _Impossible(f"the API server refused the binding: {given.text[:300]}")

    async def _look_up(self, namespace: str, name: str, uid: str) -> Pod | None:
        """The pod as the API server has it: after a restart, filter has not been asked about it."""
        found = await self.api.pod(namespace, name)
        if found is None or (found.get("metadata") or {}).get("uid") != uid:
            raise _Impossible("there is no such pod any more")
        return pod_of(found)

    async def _decide(self, event: bytes) -> dict[str, Any]:
        (given,) = await self.writer.submit([event])
        found: dict[str, Any] = json.loads(given.text)
        return found

    async def _depart(self, pod: Pod) -> None:
        await self._decide(json.dumps({"event": "depart", "id": pod.id}).encode())

    def _pod_and_names(self, body: bytes) -> tuple[Pod | None, list[str]]:
        """The pod of a request, None where it is no NF, and the names of nodes.

        Raises ValueError when it is no such request. Raises _Impossible while the nodes are not known.
        """
        arguments = json.loads(body)
        if not isinstance(arguments, dict) or not isinstance(arguments.get("Pod"), dict):
            raise ValueError("there is no Pod")
        names = arguments.get("NodeNames")
        if names is None:
            items = (arguments.get("Nodes") or {}).get("items") or ()
            names = [item["metadata"]["name"] for item in items]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("NodeNames is no list of names")
        pod = pod_of(arguments["Pod"])
        if pod is not None:
            if not self.watcher.synced:
                raise _Impossible("the nodes have not been listed yet")
            self._seen[pod.uid] = pod
            self._seen.move_to_end(pod.uid)
            while len(self._seen) > MAX_REMEMBERED_PODS:
                self._seen.popitem(last=False)
        return pod, names

    def _arrival(self, pod: Pod) -> Tenant:
        event = self.writer.reader.read(pod.arrival())
        assert isinstance(event, Arrive)
        return event.tenant


def _filter(
    names: Sequence[str],
    failed: Mapping[str, str] | None = None,
    unresolvable: Mapping[str, str] | None = None,
    error: str = "",
) -> dict[str, Any]:
    return {
        "Nodes": None,
        "NodeNames": list(names),
        "FailedNodes": dict(failed or {}),
        "FailedAndUnresolvableNodes": dict(unresolvable or {}),
        "Error": error,
    }


def _score(names: Sequence[str], scores: Mapping[str, int]) -> Response:
    """The answer of prioritize; written line by line, as it is long and has always the same keys."""
    rows = [f'{{"Host": {quoted(name)}, "Score": {scores.get(name, 0)}}}' for name in names]
    return Response(f"[{', '.join(rows)}]", media_type=JSON_TYPE)


def _from_0_to_10(scores: Mapping[str, float]) -> dict[str, int]:
    """Scores where low is good, as whole numbers up to `BEST_SCORE` where high is good; infinite ones become 0."""
    finite = {score for score in scores.values() if math.isfinite(score)}
    if not finite:
        return dict.fromkeys(scores, 0)
    best, width = min(finite), max(max(finite) - min(finite), 1e-12)
    whole = {
        score: BEST_SCORE - round((BEST_SCORE - 1) * (score - best) / width) for score in finite
    }  # NICs of a class have one
    return {name: whole.get(score, 0) for name, score in scores.items()}


# Puts the extender together.


def extender_of(api: KubernetesApi, writer: Writer, what_if: WhatIf) -> tuple[list[DescribedRoute], list[Background]]:
    """The routes of the extender, and what follows the cluster with this API server."""
    watcher = Watcher(api, writer)
    return Extender(writer, what_if, api, watcher).routes(), [watcher.run]
