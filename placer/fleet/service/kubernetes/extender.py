"""The extender of kube-scheduler: filter, prioritize and preempt advise; bind decides.

Types are those of k8s.io/kube-scheduler/extender/v1, whose JSON has the names of the Go fields. Every answer has
status 200, since kube-scheduler takes any other as a failure of the extender.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

import httpx
from starlette.responses import Response

from placer.fleet.events import Arrive, Refused
from placer.fleet.service.http.app import Background, Posted, answer, posted_route, refusal
from placer.fleet.service.http.openapi import JSON_TYPE, DescribedRoute, RouteOperation
from placer.fleet.service.http.tokens import AccessToken
from placer.fleet.service.http.writer import Writer
from placer.fleet.service.kubernetes.api import KubernetesApi
from placer.fleet.service.kubernetes.pods import Pod, WrongPod, node_of, pod_of, uid_of
from placer.fleet.service.kubernetes.watch import Watcher
from placer.fleet.what_if import WhatIf
from placer.model.nic import Tenant

BEST_SCORE = 10
REFUSAL_STATUSES = (400, 401, 403, 408, 413, 415, 421, 422, 429, 503)

MAX_REMEMBERED_PODS = 10_000


class _Impossible(Exception):
    """Why a request cannot be answered."""


@dataclass(frozen=True)
class _Asked:
    """What filter and prioritize are asked.

    `pod`: None where it is no NF. `nodes`: by name, where the scheduler sends nodes, which it then reads in the answer;
    None where it sends names only (`nodeCacheCapable`).
    """

    pod: Pod | None
    names: list[str]
    nodes: dict[str, Any] | None


@dataclass
class Extender:
    """The four verbs."""

    writer: Writer
    what_if: WhatIf
    api: KubernetesApi
    watcher: Watcher
    _seen: OrderedDict[str, Pod] = field(default_factory=OrderedDict)
    _binding: set[str] = field(default_factory=set)

    def routes(self) -> list[DescribedRoute]:
        """The routes of the four verbs."""
        verbs = (
            ("filter", self.filter, "Nodes that take a pod."),
            ("prioritize", self.prioritize, "Scores of nodes."),
            ("preempt", self.preempt, "Pods that would have to leave nodes for a pod."),
            ("bind", self.bind, "Bind a pod to a node."),
        )
        return [
            posted_route(
                f"/k8s/v1/{name}", handler, RouteOperation(name, summary, Any, REFUSAL_STATUSES, dict[str, Any])
            )
            for name, handler, summary in verbs
        ]

    async def filter(self, posted: Posted) -> Response:
        """Nodes on which every SLA would be met, and why the others do not take the pod: now, or never."""
        try:
            asked = _read(posted.body)
        except ValueError as error:
            return refusal(400, f"not the arguments of an extender: {error}")
        pod = asked.pod
        if pod is None:
            return _filter(asked, asked.names)
        try:
            arrival = self._arrival(pod, posted.token)
            await self.writer.settle()
            self._refuse_over_quota(pod, arrival)
        except _Impossible as error:
            return _filter(asked, [], error=str(error))
        except (Refused, WrongPod) as wrong:
            return _filter(asked, [], never=dict.fromkeys(asked.names, str(wrong)))
        home = self.writer.engine.fleet.nic_of(pod.id)
        here = pod.node or (home and home.id)
        misfits = await self.writer.work_through(self.what_if.misfits(arrival, asked.names))
        fits = any(misfit is None and name not in self.watcher.closed for name, misfit in misfits.items())
        if not fits and here is None and await self.watcher.catch_up():
            misfits = await self.writer.work_through(self.what_if.misfits(arrival, asked.names))
        crowded, closed = self.watcher.crowded(), self.watcher.closed
        fitting, failed, never = [], {}, {}
        for name, misfit in misfits.items():
            if name in closed:
                never[name] = closed[name]
            elif name == here:  # it has its place there already
                fitting.append(name)
            elif pod.node is not None:
                never[name] = f"the pod is on {pod.node}"
            elif name in crowded:
                failed[name] = crowded[name]
            elif misfit is None:
                fitting.append(name)
            else:
                (never if misfit.lasts else failed)[name] = str(misfit)
        return _filter(asked, fitting, failed, never)

    async def prioritize(self, posted: Posted) -> Response:
        """Scores of nodes from 0 to 10: the NIC that the rule prefers has 10, one that is not in use has 0."""
        try:
            asked = _read(posted.body)
        except ValueError as error:
            return refusal(400, f"not the arguments of an extender: {error}")
        if asked.pod is None:
            return _score(asked.names, {})
        try:
            arrival = self._arrival(asked.pod, posted.token)
            await self.writer.settle()
        except (_Impossible, Refused, WrongPod):
            return _score(asked.names, {})
        scores = await self.writer.work_through(self.what_if.scores(arrival, asked.names))
        return _score(asked.names, _from_0_to_10(scores))

    async def preempt(self, posted: Posted) -> Response:
        """By node, the pods that the scheduler would evict, and the fewest further ones without which every SLA is met.

        Nodes where that does not help are left out, and where the scheduler would evict NFs that are not of lower
        priority by their annotations.
        """
        try:
            pod, proposed = _read_victims(posted.body)
        except ValueError as error:
            return refusal(400, f"not the arguments of an extender: {error}")
        if pod is None:
            return _victims(proposed)
        try:
            arrival = self._arrival(pod, posted.token)
            await self.writer.settle()
        except (_Impossible, Refused, WrongPod):
            return _victims({})
        evicted = {uid for victims in proposed.values() for uid in victims.uids}
        obstacles = {**self.watcher.closed, **self.watcher.crowded(evicted, arrival.priority)}
        fleet = self.writer.engine.fleet
        leaving: dict[str, set[str]] = {}
        for name, victims in proposed.items():
            nic = fleet.find(name)
            if nic is not None and name not in obstacles and pod.node is None:
                leaving[name] = {tenant.id for tenant in nic.tenants if uid_of(tenant.id) in victims.uids}
        found = await self.writer.work_through(self.what_if.victims(arrival, leaving))
        given = dict[str, _Victims]()
        for name, more in found.items():
            further = [uid for tenant in reversed(more) if (uid := uid_of(tenant.id)) is not None]
            if len(further) == len(more):  # what is no pod, the scheduler cannot evict
                given[name] = replace(proposed[name], uids=[*proposed[name].uids, *further])
        return _victims({name: victims for name, victims in given.items() if victims.uids})

    async def bind(self, posted: Posted) -> Response:
        """Place the pod on the node, then bind it; where the API server refuses that, it is taken off again."""
        if posted.token.owners is not None:
            return refusal(403, "the token is for some owners alone; it takes one for all to bind pods")
        try:
            body = json.loads(posted.body)
            namespace, name, uid, node = (str(body[key]) for key in ("PodNamespace", "PodName", "PodUID", "Node"))
        except (ValueError, KeyError, TypeError) as error:
            return refusal(400, f"not the arguments of an extender: {error!r}")
        try:
            if uid in self._binding:  # its answer comes too late for the scheduler, which tries again
                raise _Impossible("the pod is being bound")
            self._binding.add(uid)
            try:
                pod = self._seen.get(uid) or pod_of(await self._look_up(namespace, name, uid))  # unseen after a restart
                if pod is not None:
                    await self._place(pod, node, posted.token)
                await self._bind(pod, namespace, name, uid, node, posted.token)
            finally:
                self._binding.discard(uid)
        except (_Impossible, WrongPod) as error:
            return answer({"Error": str(error)})
        except httpx.HTTPError as error:
            return answer({"Error": f"the API server does not answer: {error!r}"})
        return answer({"Error": ""})

    async def _place(self, pod: Pod, node: str, token: AccessToken) -> None:
        """Decide that the pod goes to the node; the same again is no second decision."""
        self._refuse_unlisted()
        home = self.writer.engine.fleet.nic_of(pod.id)
        obstacle = self.watcher.closed.get(node) or self.watcher.crowded().get(node)
        if obstacle is not None and (home is None or home.id != node):
            raise _Impossible(f"{node}: {obstacle}")
        for attempt in (1, 2):
            given = await self._decide(pod.arrival(node), token)
            if given["ok"] and given["nic"] == node:
                return
            known = given["ok"] or self.writer.engine.fleet.nic_of(pod.id) is not None
            if attempt == 2 or not known or node_of(await self._look_up(pod.namespace, pod.name, pod.uid)) is not None:
                break
            await self._depart(pod, token)  # a former bind placed it, maybe with other annotations, and then failed
        raise _Impossible(str(given.get("error") or f"the pod is on {given['nic']} already"))

    async def _bind(self, pod: Pod | None, namespace: str, name: str, uid: str, node: str, token: AccessToken) -> None:
        """Bind the pod. Without an answer it may be bound, so that it keeps its place until the cluster says more."""
        given = await self.api.bind(namespace, name, uid, node)
        if given.status < 300:
            return
        now = await self.api.pod(namespace, name)
        if now is not None and now["metadata"].get("uid") == uid and node_of(now) == node:
            return
        home = None if pod is None else self.writer.engine.fleet.nic_of(pod.id)
        if pod is not None and home is not None and home.id == node:
            await self._depart(pod, token)
        raise _Impossible(f"the API server refused the binding: {given.text[:300]}")

    async def _look_up(self, namespace: str, name: str, uid: str) -> dict[str, Any]:
        """The pod as the API server has it.

        Raises _Impossible when it is gone; one that was made again is another.
        """
        found = await self.api.pod(namespace, name)
        if found is None or found["metadata"].get("uid") != uid:
            raise _Impossible("there is no such pod any more")
        return found

    async def _decide(self, event: dict[str, Any], token: AccessToken) -> dict[str, Any]:
        (given,) = await self.writer.submit([json.dumps(event).encode()], token=token)
        found: dict[str, Any] = json.loads(given.text)
        return found

    async def _depart(self, pod: Pod, token: AccessToken) -> None:
        await self._decide({"event": "depart", "id": pod.id}, token)

    def _arrival(self, pod: Pod, token: AccessToken) -> Tenant:
        """What arrives with the pod, which is remembered for its bind where the token could bind it.

        Raises _Impossible while the nodes are not known. Raises WrongPod or Refused when it makes no sense.
        """
        self._refuse_unlisted()
        if token.owners is None:
            self._seen[pod.uid] = pod
            self._seen.move_to_end(pod.uid)
        while len(self._seen) > MAX_REMEMBERED_PODS:
            self._seen.popitem(last=False)
        event = self.writer.reader.read(json.dumps(pod.arrival()))
        assert isinstance(event, Arrive)
        return event.tenant

    def _refuse_over_quota(self, pod: Pod, arrival: Tenant) -> None:
        """Raise Refused where the owner of a pod that is nowhere yet would have too much."""
        over = None if pod.node else self.writer.quotas.fault(self.writer.engine, Arrive(arrival))
        if over is not None:
            raise Refused(over)

    def _refuse_unlisted(self) -> None:
        if not self.watcher.synced:
            raise _Impossible("the nodes have not been listed yet")


def _read(body: bytes) -> _Asked:
    """What filter or prioritize is asked.

    Raises ValueError when it is no such request.
    """
    arguments = json.loads(body)
    if not isinstance(arguments, dict) or not isinstance(arguments.get("Pod"), dict):
        raise ValueError("there is no Pod")
    names, nodes = arguments.get("NodeNames"), None
    try:
        pod = pod_of(arguments["Pod"])
        if names is None:
            nodes = {node["metadata"]["name"]: node for node in (arguments.get("Nodes") or {}).get("items") or ()}
            names = list(nodes)
    except (KeyError, TypeError, AttributeError):
        raise ValueError("Pod is no pod, or Nodes is no list of nodes") from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("NodeNames is no list of names")
    return _Asked(pod, names, nodes)


@dataclass(frozen=True)
class _Victims:
    """Pods that would be evicted from a node, and how many of their disruption budgets that violates."""

    uids: list[str]
    budgets: int


def _read_victims(body: bytes) -> tuple[Pod | None, dict[str, _Victims]]:
    """The pod for which preempt is asked, None where it is no NF, and what the scheduler would evict, by node.

    Raises ValueError when it is no such request.
    """
    arguments = json.loads(body)
    if not isinstance(arguments, dict) or not isinstance(arguments.get("Pod"), dict):
        raise ValueError("there is no Pod")
    try:
        pod = pod_of(arguments["Pod"])
        found = dict[str, _Victims]()
        for key in ("NodeNameToVictims", "NodeNameToMetaVictims"):  # whole pods, or only their UIDs
            for name, victims in (arguments.get(key) or {}).items():
                uids = [
                    str(pod["UID"] if "UID" in pod else pod["metadata"]["uid"]) for pod in victims.get("Pods") or ()
                ]
                found[name] = _Victims(uids, int(victims.get("NumPDBViolations", 0)))
    except (KeyError, TypeError, AttributeError):
        raise ValueError("Pod is no pod, or the victims are no pods by node") from None
    return pod, found


def _victims(found: Mapping[str, _Victims]) -> Response:
    """The answer of preempt; the scheduler takes a node without victims as an error of them all."""
    shown = {
        name: {"Pods": [{"UID": uid} for uid in victims.uids], "NumPDBViolations": victims.budgets}
        for name, victims in found.items()
    }
    return answer({"NodeNameToMetaVictims": shown})


def _filter(
    asked: _Asked,
    fitting: Sequence[str],
    failed: Mapping[str, str] | None = None,
    never: Mapping[str, str] | None = None,
    error: str = "",
) -> Response:
    """The answer of filter; `never`: why nodes do not take the pod, even if all others left them."""
    nodes = asked.nodes
    return answer(
        {
            "Nodes": None if nodes is None else {"metadata": {}, "items": [nodes[name] for name in fitting]},
            "NodeNames": list(fitting) if nodes is None else None,
            "FailedNodes": dict(failed or {}),
            "FailedAndUnresolvableNodes": dict(never or {}),
            "Error": error,
        }
    )


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
