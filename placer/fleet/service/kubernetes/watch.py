"""Follows nodes and pods: nodes with our label join as NICs, pods that are gone leave.

Each list is the truth: what it does not have any more is gone, whatever was missed between two watches.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx

from placer.fleet.service.http.writer import Overloaded, Stopped, Writer
from placer.fleet.service.kubernetes.api import Gone, KubernetesApi
from placer.fleet.service.kubernetes.pods import NIC_MODEL, Pod, WrongPod, pod_of, uid_of
from placer.fleet.service.log import log
from placer.model.fleet import Service

PAUSES_S = (0.2, 1.0, 5.0, 15.0)
"""Seconds before the API server is asked again after failures in a row."""


class Watcher:
    """Keeps the fleet as the cluster is.

    `synced`: whether nodes and pods have been listed once.
    """

    def __init__(self, api: KubernetesApi, writer: Writer) -> None:
        self.api = api
        self.writer = writer
        self._listed: set[str] = set()
        self._gone_nodes: set[str] = set()

    @property
    def synced(self) -> bool:
        """Whether nodes and pods have been listed once."""
        return {"nodes", "pods"} <= self._listed

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
        """List, then watch; list again whenever a watch ends."""
        failures = 0
        while not self.writer.stopping:
            try:
                items, version = await self.api.list_resource(resource)
                await (self._nodes(items) if resource == "nodes" else self._pods(items))
                self._listed.add(resource)
                failures = 0
                if once:
                    return
                async for kind, found in self.api.changes(resource, version):
                    await (self._node(kind, found) if resource == "nodes" else self._pod(kind, found))
            except Gone:
                continue
            except (httpx.HTTPError, Overloaded, json.JSONDecodeError, KeyError) as error:
                pause = PAUSES_S[min(failures, len(PAUSES_S) - 1)]
                log("the API server does not answer", resource=resource, error=repr(error), again_in_s=pause)
                failures += 1
                await asyncio.sleep(pause)

    async def _nodes(self, items: list[dict[str, Any]]) -> None:
        names = {item["metadata"]["name"] for item in items}
        for item in items:
            await self._node("ADDED", item)
        fleet = self.writer.engine.fleet
        for nic in list(fleet.all_nics()):
            if nic.has_name and nic.id not in names and nic.service is Service.UP:
                await self._node_gone(nic.id)

    async def _node(self, kind: str, found: Mapping[str, Any]) -> None:
        metadata = found.get("metadata") or {}
        model = (metadata.get("labels") or {}).get(NIC_MODEL)
        if kind == "BOOKMARK" or model is None:
            return
        name = str(metadata["name"])
        if kind == "DELETED":
            await self._node_gone(name)
            return
        self._gone_nodes.discard(name)
        nic = self.writer.engine.fleet.find(name)
        if nic is None:
            await self._decide({"event": "join", "nic": name, "nic_model": model})
        elif nic.service is not Service.UP:
            await self._decide({"event": "return", "nic": name})

    async def _node_gone(self, name: str) -> None:
        """A node that is gone takes no pods any more; its own leave when they are deleted."""
        nic = self.writer.engine.fleet.find(name)
        if nic is None or nic.service is not Service.UP:
            return
        if nic.tenants_by_id:
            self._gone_nodes.add(name)
        else:
            await self._decide({"event": "fail", "nic": name})

    async def _pods(self, items: list[dict[str, Any]]) -> None:
        """All pods as they are now; others are gone."""
        present = {str(item["metadata"].get("uid")) for item in items}
        for tenant in list(self.writer.engine.fleet.all_tenants()):
            uid = uid_of(tenant.id)
            if uid is not None and uid not in present:
                await self._left(tenant.id)
        for item in items:
            await self._pod("MODIFIED", item)

    async def _pod(self, kind: str, found: Mapping[str, Any]) -> None:
        pod = None if kind == "BOOKMARK" else pod_of(found)
        if pod is None:
            return
        home = self.writer.engine.fleet.nic_of(pod.id)
        if kind == "DELETED" or pod.over:
            if home is not None:
                await self._left(pod.id)
        elif pod.node is not None and home is None:
            await self._find(pod)

    async def _find(self, pod: Pod) -> None:
        """A pod that runs and is not in the fleet, as when an answer was lost: it takes its place."""
        try:
            event = pod.arrival(pod.node)
        except WrongPod as wrong:
            log("a pod cannot be read", pod=pod.id, error=str(wrong))
            return
        await self._decide(json.loads(event))

    async def _left(self, tenant_id: str) -> None:
        nic = self.writer.engine.fleet.nic_of(tenant_id)
        await self._decide({"event": "depart", "id": tenant_id})
        if nic is not None and nic.id in self._gone_nodes and not nic.tenants_by_id:
            self._gone_nodes.discard(nic.id)
            await self._decide({"event": "fail", "nic": nic.id})

    async def _decide(self, event: dict[str, Any]) -> None:
        (given,) = await self.writer.submit([json.dumps(event).encode()])
        if given.status != 200:
            log("an event was refused", event=event, error=json.loads(given.text)["error"])
