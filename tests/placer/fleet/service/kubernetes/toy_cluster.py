"""A cluster of toy nodes: an API server in memory, as far as the extender uses one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from placer.fleet.engine import Engine
from placer.fleet.protocol import Reader
from placer.fleet.service.http.app import make_app
from placer.fleet.service.http.hosts import Hosts
from placer.fleet.service.http.requests import RequestLog
from placer.fleet.service.http.server import make_writer
from placer.fleet.service.http.tokens import OPEN_TO_ALL
from placer.fleet.service.kubernetes.api import ApiAnswer, Gone
from placer.fleet.service.kubernetes.extender import Extender
from placer.fleet.service.kubernetes.watch import Watcher
from placer.fleet.state.store import State
from placer.fleet.what_if import WhatIf
from placer.model.fleet import Fleet
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from tests.placer.fleet.service.http.toy_http import PORT, Service, check, client_of


@dataclass
class ToyApi:
    """Nodes and pods, and every change of them; a cut watch has to list again."""

    objects: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: {"nodes": {}, "pods": {}})
    history: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    forgotten: int = 0
    refuses: str = ""
    bindings: int = 0

    def change(self, resource: str, kind: str, found: dict[str, Any], *, seen: bool = True) -> None:
        """An object changed; not `seen` where all watches are cut meanwhile."""
        name = found["metadata"]["name"]
        if kind == "DELETED":
            self.objects[resource].pop(name, None)
        else:
            self.objects[resource][name] = found
        self.history.append((resource, kind, found))
        if not seen:
            self.forgotten = len(self.history)

    async def list_resource(self, resource: str) -> tuple[list[dict[str, Any]], str]:
        """All objects."""
        return list(self.objects[resource].values()), str(len(self.history))

    async def changes(self, resource: str, version: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        at = int(version)
        while True:
            if at < self.forgotten:
                raise Gone
            while at < len(self.history):
                of, kind, found = self.history[at]
                at += 1
                if of == resource:
                    yield kind, found
            await asyncio.sleep(0.005)

    async def pod(self, namespace: str, name: str) -> dict[str, Any] | None:
        return self.objects["pods"].get(name)

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> ApiAnswer:
        """Bind it, unless it is bound."""
        self.bindings += 1
        if self.refuses:
            return ApiAnswer(500, self.refuses)
        found = self.objects["pods"].get(name)
        if found is None or found["spec"].get("nodeName"):
            return ApiAnswer(409, "already bound")
        self.change("pods", "MODIFIED", {**found, "spec": {"nodeName": node}})
        return ApiAnswer(201, "")

    async def close(self) -> None:
        """Nothing is open."""


def node(name: str, model: str = "toy-0") -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"nf-placer.io/nic-model": model}}}


def pod(name: str, nf: str = "d", drop: str = "0.9", uid: str = "", **annotations: str) -> dict[str, Any]:
    ours = {"nf": nf, "sla-drop": drop, **{key.replace("_", "-"): value for key, value in annotations.items()}}
    named = {f"nf-placer.io/{key}": value for key, value in ours.items() if value}
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "annotations": named}
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Pending"}}


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

    def bind(self, of: dict[str, Any], name: str) -> str:
        """Bind the pod; returns the error."""
        metadata = of["metadata"]
        arguments = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        return str(self.call("bind", **arguments, Node=name)["Error"])

    def places(self) -> dict[str, str]:
        """Pods by name, with their nodes, as the service has them."""
        fleet = self.service.engine.fleet
        return {tenant.id.split("/")[2]: nic.id for nic in fleet.nics.values() for tenant in nic.tenants}


def eventually(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)


@contextmanager
def cluster(path: Path, *names: str, api: ToyApi | None = None) -> Iterator[Cluster]:
    api = api or ToyApi()
    for name in names:
        api.change("nodes", "ADDED", node(name))
    kinds = catalogue((0, 1.0)).kinds
    with State(path, kinds) as state:
        fleet = state.fleet if state.events else Fleet(kinds)
        engine = Engine(fleet, [ToyOracle()], events=state.events)
        writer = make_writer(engine, Reader(TOY_TRAFFIC, check, engine.workload_of), state)
        watcher = Watcher(api, writer)  # type: ignore[arg-type]
        extender = Extender(writer, WhatIf(engine), api, watcher)  # type: ignore[arg-type]
        hosts, requests = Hosts("127.0.0.1", PORT), RequestLog(writer.metrics)
        app = make_app(extender.routes(), writer, OPEN_TO_ALL, hosts, requests, [watcher.run])
        with client_of(app) as client:
            eventually(lambda: watcher.synced)
            yield Cluster(api, Service(client, writer, engine), watcher)
