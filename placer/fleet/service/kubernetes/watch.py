"""Follows nodes and pods: nodes with our label join as NICs, pods that run are counted there, pods that are gone leave.

Each list is the truth: what it does not have any more is gone, whatever was missed between two watches. It says nothing
of what has come since it was asked for. Where a pod runs is never refused: it is counted, or its node takes no others.
What its annotations say is counted, too; an event on the pod says where that breaks an SLA.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Container, Mapping, Set
from typing import Any

import httpx
from prometheus_client import Gauge

from placer.fleet.event_lines import event_line
from placer.fleet.event_shapes import LOAD_KEYS
from placer.fleet.events import Arrive, Change, Refused
from placer.fleet.protocol import Reader
from placer.fleet.service.http.writer import Stopped, Writer
from placer.fleet.service.kubernetes import pods
from placer.fleet.service.kubernetes.api import Gone, KubernetesApi
from placer.fleet.service.log import log
from placer.model.nic import Service, Tenant

PAUSES_S = (0.2, 1.0, 5.0, 15.0)
ENDS_PER_PAUSE = 4
"""Seconds before the API server is asked again after failures in a row; and how many watches that ended sooner than the
last of them count as a failure, since one that ends now and then is no fault."""
CATCH_UP_S, CATCH_UP_EVERY_S = 0.05, 0.25
"""Seconds for which changes are waited for that kube-scheduler may have seen before, and how often at most."""
Found = Mapping[str, Any]  # an object of the Kubernetes API


class Watcher:
    """Keeps the fleet as the cluster is.

    `synced`: whether nodes and pods have been listed once. `closed`: nodes that take no pods, and why: they have no
    label, no model of the fleet, or are gone.
    """

    def __init__(self, api: KubernetesApi, writer: Writer) -> None:
        self.api = api
        self.writer = writer
        self.closed: dict[str, str] = {}
        self._listed: set[str] = set()
        self._displaced: dict[str, str] = {}  # nodes that keep their former pool and domain, and why, as it is logged
        self._uncounted: dict[str, tuple[pods.Pod, str]] = {}
        self._unread: dict[str, str] = {}  # pods that count with their former annotations, and why, as it is reported
        self._turn = asyncio.Lock()
        self._caught_up = -CATCH_UP_EVERY_S
        of = writer.reader
        self._reader = Reader(of.default_traffic, of.check, of.workload_of, of_log=True)  # also reads kinds of NICs
        gauge = Gauge(
            "placer_uncounted_pods",
            "Pods that run as NFs and are counted on no NIC; their nodes take no others.",
            registry=writer.metrics.registry,
        )
        gauge.set_function(lambda: len(self._uncounted))

    @property
    def synced(self) -> bool:
        """Whether nodes and pods have been listed once."""
        return {"nodes", "pods"} <= self._listed

    def crowded(self, leaving: Container[str] = (), priority: float = math.inf) -> dict[str, str]:
        """Nodes on which a pod runs that cannot be counted, and why it cannot. `leaving`: UIDs of pods that are to be
        evicted, which are in nobody's way if they have less than the priority."""
        return {
            str(pod.node): f"{pod.namespace}/{pod.name} runs there and cannot be counted: {reason}"
            for pod, reason in self._uncounted.values()
            if pod.uid not in leaving or pod.rank >= priority
        }

    async def catch_up(self) -> bool:
        """Wait for changes that are on their way; whether one has come.

        kube-scheduler asks again at once for pods that wait when it sees a pod leave or a node come, and after an
        answer of before that not for minutes.
        """
        before = self.writer.engine.events
        if time.monotonic() >= self._caught_up + CATCH_UP_EVERY_S:
            await asyncio.sleep(CATCH_UP_S)
            async with self._turn:
                self._caught_up = time.monotonic()
        return self.writer.engine.events != before

    async def run(self) -> None:
        """Follow until cancelled."""
        try:
            await self._follow("nodes", once=True)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._follow("nodes"))
                both.create_task(self._follow("pods"))
        except* Stopped:
            pass
        finally:
            await self.api.close()

    async def _follow(self, resource: str, *, once: bool = False) -> None:
        """List, then watch; list again whenever a watch ends. Nodes and pods take turns, one change at a time."""
        failures = 0.0
        while not self.writer.stopping:
            error, until = "", time.monotonic() + PAUSES_S[-1]
            try:
                before = self._known_nics() if resource == "nodes" else self._known_pods()
                items, version = await self.api.list_resource(resource)
                async with self._turn:
                    await (self._nodes(items, before) if resource == "nodes" else self._pods(items, before))
                self._listed.add(resource)
                if once:
                    return
                newest = {_key(resource, item): _version(item) for item in items}
                async for kind, found in self.api.changes(resource, version):
                    if kind == "BOOKMARK" or _comes_too_late(resource, kind, found, newest):
                        continue
                    async with self._turn:
                        await (self._node(kind, found) if resource == "nodes" else self._pod(kind, found))
                    failures = 0.0
            except Gone:
                pass
            except Stopped:
                raise
            except Exception as failure:  # whatever it is, what is listed next is followed
                error = repr(failure)
            if not error and time.monotonic() >= until:  # as watches end
                failures = 0.0
                continue
            pause = PAUSES_S[min(int(failures), len(PAUSES_S) - 1)]
            if error or failures >= 1:
                error = error or "watches end at once"
                log("the cluster cannot be followed", resource=resource, error=error, again_in_s=pause)
            failures += 1 if error else 1 / ENDS_PER_PAUSE
            await asyncio.sleep(pause)

    # Nodes

    def _known_nics(self) -> set[str]:
        return {nic.id for nic in self.writer.engine.fleet.all_nics() if nic.has_name}

    async def _nodes(self, items: list[dict[str, Any]], before: Set[str]) -> None:
        """All nodes as they are; of those `before` the list, the others are gone."""
        names = {str(item["metadata"]["name"]) for item in items}
        self.closed = {name: reason for name, reason in self.closed.items() if name in names | before}
        for item in items:
            await self._node("ADDED", item)
        for name in sorted(before - names):
            await self._close(name, "the node is deleted")

    async def _node(self, kind: str, found: Found) -> None:
        name = str(found["metadata"]["name"])
        labels = found["metadata"].get("labels") or {}
        model = labels.get(pods.NIC_MODEL)
        if kind != "DELETED" and model is not None:
            cordoned = bool((found.get("spec") or {}).get("unschedulable"))
            domain = next(filter(None, map(labels.get, pods.DOMAIN_LABELS)), "")
            given = {"pool": labels.get(pods.POOL_LABEL) or "", "domain": domain}
            wanted = Service.CORDONED if cordoned else Service.UP
            await self._open(name, str(model), {key: str(value) for key, value in given.items() if value}, wanted)
            return
        reason = "the node is deleted" if kind == "DELETED" else f"the node has no label {pods.NIC_MODEL}"
        if self.writer.engine.fleet.find(name) is not None:
            await self._close(name, reason)
        else:  # it was never a NIC
            self.closed[name] = reason

    async def _open(self, name: str, model: str, place: Mapping[str, str], wanted: Service) -> None:
        """Let a node take pods, or be cordoned, if the fleet has its model. `place`: its pool and domain, which it gets
        while it is idle."""
        fleet, refused = self.writer.engine.fleet, None
        nic = fleet.find(name)
        if nic is None:
            refused = await self._decide(event="join", nic=name, nic_model=model, **place)
        elif nic.kind.model != model:
            refused = f"the node joined as a {nic.kind.model}, and its label {pods.NIC_MODEL} is {model} now"
        elif nic.service in (Service.FAILED, Service.DRAINING):
            refused = await self._decide(event="return", nic=name)
        nic = fleet.find(name)
        if nic is not None and nic.kind.model == model and {nic.service, wanted} == {Service.UP, Service.CORDONED}:
            refused = await self._decide(event="cordon" if nic.service is Service.UP else "uncordon", nic=name)
            nic = fleet.find(name)
        if nic is None or nic.kind.model != model or nic.service is not wanted:
            await self._close(name, refused or "the NIC does not take NFs")
            return
        known, error = self._displaced.pop(name, None), None
        if (nic.kind.pool, nic.kind.domain) != (place.get("pool", ""), place.get("domain", "")):
            error = await self._decide(event="join", nic=name, nic_model=model, **place)
        if error is not None:
            self._displaced[name] = error
            if error != known:
                log("a node keeps its former pool and domain", node=name, error=error)
        self.closed.pop(name, None)
        await self._count_again(name)

    async def _close(self, name: str, reason: str) -> None:
        """Let a node take no more pods; those that run there stay until Kubernetes deletes them."""
        nic = self.writer.engine.fleet.find(name)
        if self.closed.get(name) != reason:
            log("a node takes no pods", node=name, reason=reason)
        self.closed[name] = reason
        if nic is not None and nic.service in (Service.UP, Service.CORDONED) and not nic.tenants_by_id:
            await self._decide(event="fail", nic=name)

    # Pods

    def _known_pods(self) -> set[str]:
        engine = self.writer.engine
        ids = (*(tenant.id for tenant in engine.fleet.all_tenants()), *engine.waiting)
        return {tenant_id for tenant_id in ids if tenant_id.startswith(pods.POD_PREFIX)}

    async def _pods(self, items: list[dict[str, Any]], before: Set[str]) -> None:
        """All pods as they are; of those `before` the list, the others are gone."""
        uids = {str(item["metadata"].get("uid")) for item in items}
        for pod_id in sorted(before | self._uncounted.keys()):
            if pods.uid_of(pod_id) not in uids:
                await self._leave(pod_id)
        for item in items:
            await self._pod("MODIFIED", item)

    async def _pod(self, kind: str, found: Found) -> None:
        if kind == "DELETED" or pods.has_ended(found):
            await self._leave(pods.id_of(found))
        elif (pod := pods.pod_of(found)) is None:
            self._uncounted.pop(pods.id_of(found), None)
        elif pod.node is not None:
            await self._count(pod, pod.node)

    async def _count(self, pod: pods.Pod, node: str) -> None:
        """Count a pod where it runs; only the cluster decides where that is."""
        engine = self.writer.engine
        home = engine.fleet.nic_of(pod.id)
        if home is not None and home.id == node:
            await self._change(pod, node, home.tenants_by_id[pod.id].asked)
            return
        if home is not None or pod.id in engine.waiting:
            await self._leave(pod.id)
        await self._count_anew(pod, node)

    async def _count_anew(self, pod: pods.Pod, node: str) -> None:
        refused = await self._arrive(pod, node)
        known = self._uncounted.pop(pod.id, None)
        if refused is not None:
            self._uncounted[pod.id] = pod, refused
            if known is None or known[1] != refused:
                await self._report(pod, node, "a pod that runs cannot be counted", refused)

    async def _arrive(self, pod: pods.Pod, node: str) -> str | None:
        """Place a pod on its node, whatever the SLAs there; returns why it cannot be."""
        try:
            refused = await self._decide(**pod.arrival(node))
        except pods.WrongPod as wrong:
            return str(wrong)
        nic = self.writer.engine.fleet.find(node)
        if refused is None or nic is None:
            return refused
        error = await self._decide(**pod.arrival(node, nic.kind.index))
        if error is None:
            await self._report(pod, node, "a pod runs where it would not be placed", refused)
        return error

    async def _change(self, pod: pods.Pod, node: str, before: Tenant) -> None:
        """Count a pod with the annotations that it has now, where it runs; with its former ones if they make no sense.

        It arrives anew where a change cannot say what is other, or would move it.
        """
        try:
            read = self._reader.read(json.dumps(pod.arrival()))
        except (pods.WrongPod, Refused) as wrong:
            if self._unread.get(pod.id) != str(wrong):
                self._unread[pod.id] = str(wrong)
                await self._report(pod, node, "a pod counts with its former annotations", str(wrong))
            return
        self._unread.pop(pod.id, None)
        assert isinstance(read, Arrive)
        if read.tenant == before:
            return
        change = _change_between(before, read.tenant)
        expected = await self._send(**change, dry_run=True) if change else {}
        if change and expected.get("status") in ("kept", "resized", "at-risk"):
            answer = await self._send(**change)
            if at_risk := answer.get("at_risk"):
                await self._report(
                    pod, node, "a pod has changed", f"SLAs are violated on its node: {', '.join(at_risk)}"
                )
        else:
            await self._decide(event="depart", id=pod.id)
            await self._count_anew(pod, node)
        await self._count_again(node)

    async def _report(self, pod: pods.Pod, node: str, what: str, reason: str) -> None:
        """Say in the log, and by an event on the pod, what cannot be as the pod asks for."""
        log(what, pod=pod.id, node=node, reason=reason)
        try:
            given = await self.api.report(pod.namespace, pod.name, pod.uid, f"{what}: {reason}")
            error = given.text[:300] if given.status >= 300 and given.status != httpx.codes.CONFLICT else None
        except httpx.HTTPError as failure:
            error = repr(failure)
        if error is not None:
            log("a pod got no event", pod=pod.id, error=error)

    async def _leave(self, pod_id: str) -> None:
        """Take a pod off its node, which may then count others, or take no more part in the fleet."""
        engine = self.writer.engine
        self._uncounted.pop(pod_id, None)
        self._unread.pop(pod_id, None)
        home = engine.fleet.nic_of(pod_id)
        if home is not None or pod_id in engine.waiting:
            await self._decide(event="depart", id=pod_id)
        if home is not None:
            await self._count_again(home.id)
            if home.id in self.closed:
                await self._close(home.id, self.closed[home.id])

    async def _count_again(self, node: str) -> None:
        """Count pods that could not be counted before, now that their node has changed."""
        for pod, _ in list(self._uncounted.values()):
            if pod.node == node:
                await self._count(pod, node)

    async def _decide(self, **event: Any) -> str | None:
        """Send an event; returns why it is refused."""
        answer = await self._send(**event)
        return None if answer["ok"] else str(answer["error"])

    async def _send(self, **event: Any) -> dict[str, Any]:
        (given,) = await self.writer.submit([json.dumps(event).encode()], reader=self._reader)
        answer: dict[str, Any] = json.loads(given.text)
        return answer


def _change_between(before: Tenant, after: Tenant) -> dict[str, Any]:
    """The event that turns one into the other; empty where no `change` does."""
    was, now = before.workload, after.workload
    ends = (was.cores and not now.cores) or (was.promises_latency and not now.promises_latency)
    if ends or was.nf != now.nf or _kept_by_change(before) != _kept_by_change(after):
        return {}
    change = Change(after.id, now, after.sla, ("traffic", *LOAD_KEYS))
    event: dict[str, Any] = json.loads(event_line(change))
    return event


def _kept_by_change(tenant: Tenant) -> tuple[object, ...]:
    """What stays as it is in a `change`."""
    return tenant.constraints, tenant.priority, tenant.owner, tenant.labels


# What comes in a wrong order: an object's version is that of its last change.


def _key(resource: str, found: Found) -> str:
    """What stays the same of an object: the name of a node; the uid of a pod, as another of its name is another."""
    return str(found["metadata"].get("name" if resource == "nodes" else "uid"))


def _version(found: Found) -> float:
    text = str(found["metadata"].get("resourceVersion"))
    return int(text) if text.isdecimal() else float("inf")


def _comes_too_late(resource: str, kind: str, found: Found, newest: dict[str, float]) -> bool:
    """Whether a later change is known; `newest` has the versions known by object. A deleted pod stays deleted."""
    key, version = _key(resource, found), _version(found)
    if resource == "pods" and kind == "DELETED":
        newest[key] = float("inf")
        return False
    known = newest.get(key, 0.0)
    newest[key] = max(known, version)
    return version < known
