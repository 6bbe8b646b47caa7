"""A cluster of toy nodes: an API server in memory, as far as the extender uses one."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from placer.fleet.engine import Engine
from placer.fleet.protocol import Reader
from placer.fleet.service.http.app import make_app
from placer.fleet.service.http.hosts import Hosts
from placer.fleet.service.http.requests import RequestLog
from placer.fleet.service.http.routes import EventRoutes, QuestionRoutes
from placer.fleet.service.http.server import make_writer
from placer.fleet.service.http.tokens import OPEN_TO_ALL, Tokens
from placer.fleet.service.kubernetes.api import ApiAnswer, Gone
from placer.fleet.service.kubernetes.extender import Extender
from placer.fleet.service.kubernetes.watch import Watcher
from placer.fleet.state.open_state import open_state
from placer.fleet.what_if import WhatIf
from placer.model.fleet import Fleet
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from tests.placer.fleet.service.http.toy_http import PORT, Service, check, client_of


@dataclass
class ToyApi:
    """Nodes and pods, and every change of them; a cut watch has to list again. `refuses`: why it does not bind.
    `unanswered`: it binds, but its answers are lost. `slow`: resources of which a list is under way until they are
    taken out; also `binding`. `lists`: how many were begun. `reports`: events on pods, with the names of these."""

    objects: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: {"nodes": {}, "pods": {}})
    history: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    forgotten: int = 0
    refuses: str = ""
    unanswered: bool = False
    slow: set[str] = field(default_factory=set)
    lists: Counter[str] = field(default_factory=Counter)
    reports: list[str] = field(default_factory=list)

    def change(
        self, resource: str, kind: str, found: dict[str, Any], *, seen: bool = True, version: int | None = None
    ) -> None:
        """An object changed; not `seen` where all watches are cut meanwhile. `version`: of an older change."""
        name, versioned = found["metadata"]["name"], str(version or len(self.history) + 1)
        found = {**found, "metadata": {**found["metadata"], "resourceVersion": versioned}}
        if version is None and kind == "DELETED":
            self.objects[resource].pop(name, None)
        elif version is None:
            self.objects[resource][name] = found
        if not seen:
            self.forgotten = len(self.history) + 1
        self.history.append((resource, kind, found))

    async def list_resource(self, resource: str) -> tuple[list[dict[str, Any]], str]:
        """All objects as they are now, even if the answer takes long."""
        found = list(self.objects[resource].values()), str(len(self.history))
        self.lists[resource] += 1
        while resource in self.slow:
            await asyncio.sleep(0.005)
        return found

    async def changes(self, resource: str, version: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        at = int(version)
        while True:
            if at < self.forgotten:
                raise Gone
            if at == len(self.history):
                await asyncio.sleep(0.005)
                continue
            of, kind, found = self.history[at]
            at += 1
            if of == resource:
                yield kind, found

    async def pod(self, namespace: str, name: str) -> dict[str, Any] | None:
        return self.objects["pods"].get(name)

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> ApiAnswer:
        """Bind it, unless it is bound."""
        while "binding" in self.slow:
            await asyncio.sleep(0.005)
        if self.refuses:
            return ApiAnswer(500, self.refuses)
        found = self.objects["pods"].get(name)
        if found is None or found["spec"].get("nodeName") or found["metadata"]["uid"] != uid:
            return ApiAnswer(409, "already bound")
        self.change("pods", "MODIFIED", {**found, "spec": {**found["spec"], "nodeName": node}})
        if self.unanswered:
            raise httpx.ReadTimeout("no answer")
        return ApiAnswer(201, "")

    async def report(self, namespace: str, name: str, uid: str, message: str) -> ApiAnswer:
        self.reports.append(f"{name}: {message}")
        return ApiAnswer(201, "")

    async def close(self) -> None:
        """Nothing is open."""


def node(name: str, model: str | None = "toy-0") -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {} if model is None else {"nf-placer.io/nic-model": model}}}


def pod(name: str, nf: str = "d", drop: str = "0.9", uid: str = "", **annotations: str) -> dict[str, Any]:
    """A pod that is pending."""
    ours = {"nf": nf, "sla-drop": drop, **{key.replace("_", "-"): value for key, value in annotations.items()}}
    named = {f"nf-placer.io/{key}": value for key, value in ours.items() if value}
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "annotations": named}
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Pending"}}


def running(of: dict[str, Any], name: str, phase: str = "Running") -> dict[str, Any]:
    """The pod as it runs on a node, bound by any scheduler."""
    return {**of, "spec": {"nodeName": name}, "status": {"phase": phase}}


@dataclass
class Cluster:
    """A cluster and the service that extends its scheduler."""

    api: ToyApi
    service: Service
    watcher: Watcher

    def call(self, verb: str, **arguments: Any) -> Any:
        answer = self.service.client.post(f"/k8s/v1/{verb}", json=arguments)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def add(self, *pods: dict[str, Any]) -> None:
        for one in pods:
            self.api.change("pods", "ADDED", one)

    def filter(self, of: dict[str, Any], *names: str) -> Any:
        """Which nodes take the pod."""
        return self.call("filter", Pod=of, Nodes=None, NodeNames=list(names))

    def preempt(self, of: dict[str, Any], **proposed: list[str]) -> dict[str, list[str]]:
        """By node, the UIDs of the pods that are to be evicted for the pod, after these that the scheduler proposes."""
        given = {
            name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 2} for name, uids in proposed.items()
        }
        found = self.call("preempt", Pod=of, NodeNameToVictims=None, NodeNameToMetaVictims=given)
        assert all(victims["NumPDBViolations"] == 2 for victims in found["NodeNameToMetaVictims"].values())
        return {
            name: [one["UID"] for one in victims["Pods"]] for name, victims in found["NodeNameToMetaVictims"].items()
        }

    def bind(self, of: dict[str, Any], name: str) -> str:
        """Bind the pod; returns the error."""
        metadata = of["metadata"]
        arguments = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        return str(self.call("bind", **arguments, Node=name)["Error"])

    def places(self) -> dict[str, str]:
        """Pods by name, with their nodes, as the service has them."""
        fleet = self.service.engine.fleet
        return {tenant.id.split("/")[2]: nic.id for nic in fleet.nics.values() for tenant in nic.tenants}

    def takes(self, *names: str) -> list[str]:
        """Which of the nodes take one more small pod."""
        found = self.filter(pod("small", "a"), *names)
        assert found["Error"] == ""
        return list(found["NodeNames"])

    def why_not(self, name: str, of: dict[str, Any] | None = None) -> str:
        """Why the node does not take a pod, a small one if none is given."""
        found = self.filter(of or pod("small", "a"), name)
        return str(found["FailedNodes"].get(name) or found["FailedAndUnresolvableNodes"].get(name))

    def log(self) -> list[str]:
        """Events and whom they are about."""
        rows = [row["event"] for row in self.service.log()]
        return [f"{row['event']} {row.get('nic') if 'id' not in row else row['id'].split('/')[2]}" for row in rows]

    def uncounted(self) -> int:
        """What the metric says."""
        text = self.service.client.get("/metrics").text
        (line,) = [line for line in text.splitlines() if line.startswith("placer_uncounted_pods ")]
        return int(float(line.split()[1]))


def eventually(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)


@contextmanager
def cluster(
    path: Path | str, *names: str, api: ToyApi | None = None, synced: bool = True, tokens: Tokens = OPEN_TO_ALL
) -> Iterator[Cluster]:
    """A cluster with these nodes of a fleet that has the models toy-0 and toy-1; its pods are known if `synced`."""
    api = api or ToyApi()
    for name in names:
        api.change("nodes", "ADDED", node(name))
    kinds = catalogue((0, 1.0), (0, 1.0)).kinds
    with open_state(path, kinds) as state:
        fleet = state.fleet if state.events else Fleet(kinds)
        engine = Engine(fleet, [ToyOracle(), ToyOracle()], waiting=state.waiting, events=state.events)
        writer = make_writer(engine, Reader(TOY_TRAFFIC, check, engine.workload_of), state, tokens)
        watcher = Watcher(api, writer)  # type: ignore[arg-type]
        extender = Extender(writer, WhatIf(engine), api, watcher)  # type: ignore[arg-type]
        hosts, requests = Hosts("127.0.0.1", PORT), RequestLog(writer.metrics)
        asked = [*EventRoutes(writer).routes(), *QuestionRoutes(writer, WhatIf(engine)).routes()]
        app = make_app([*asked, *extender.routes()], writer, tokens, hosts, requests, [watcher.run])
        with client_of(app) as client:
            eventually(lambda: watcher.synced or not synced)
            yield Cluster(api, Service(client, writer, engine), watcher)
