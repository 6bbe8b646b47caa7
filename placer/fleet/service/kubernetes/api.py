"""The Kubernetes API, as far as it is needed: lists, watches, one pod, binding a pod, and events on one."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx

from profiles import InputError

IN_CLUSTER = "in-cluster"
ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")

ANSWER_SECONDS = 10.0
WATCH_SECONDS = 300  # seconds after which a watch is begun anew

PAGE_LIMIT = 500
LONGEST_MESSAGE = 1_000  # characters of the message of an event


class Gone(Exception):
    """The API server does not know the version any more from which to watch: list again."""


@dataclass(frozen=True)
class ApiAnswer:
    """The HTTP status of an answer, and its text."""

    status: int
    text: str


class KubernetesApi:
    """A client of one API server.

    `address`: `in-cluster` (the pod's service account), or the address of an API server that asks for no credentials,
    such as `kubectl proxy`.

    Raises InputError when there is no such account.
    """

    def __init__(self, address: str) -> None:
        self._account = ACCOUNT_FOLDER if address == IN_CLUSTER else None
        verify: str | bool = True
        if self._account is not None:
            host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
            if host is None or not (self._account / "token").is_file():
                raise InputError.of("--kubernetes", "this is no pod with a service account", hint="give an address")
            address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
            verify = str(self._account / "ca.crt")
        elif not address.startswith(("http://", "https://")):
            raise InputError.of(
                "--kubernetes", f"'{address}' is no address", hint="in-cluster, or http://127.0.0.1:8001"
            )
        timeout = httpx.Timeout(ANSWER_SECONDS, read=ANSWER_SECONDS)
        self._client = httpx.AsyncClient(base_url=address, verify=verify, timeout=timeout, trust_env=False)

    async def list_resource(self, resource: str) -> tuple[list[dict[str, Any]], str]:
        """All `nodes` or `pods`, and the version of the list."""
        items: list[dict[str, Any]] = []
        parameters: dict[str, str | int] = {"limit": PAGE_LIMIT}
        while True:
            answer = await self._client.get(f"/api/v1/{resource}", params=parameters, headers=self._headers())
            answer.raise_for_status()
            page = answer.json()
            items += page.get("items") or []
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return items, str(metadata.get("resourceVersion", ""))
            parameters["continue"] = metadata["continue"]

    async def changes(self, resource: str, version: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Every change since a version, as its kind (`ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`) and the object.

        Raises Gone when the version is too old.
        """
        parameters: dict[str, str | int] = {
            "watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": WATCH_SECONDS,
        }  # fmt: skip
        patient = httpx.Timeout(ANSWER_SECONDS, read=WATCH_SECONDS + ANSWER_SECONDS)
        address = f"/api/v1/{resource}"
        request = self._client.stream("GET", address, params=parameters, headers=self._headers(), timeout=patient)
        async with request as answer:
            if answer.status_code == httpx.codes.GONE:
                raise Gone
            answer.raise_for_status()
            begun = b""  # of a line: httpx would also end lines where Unicode has breaks, which JSON may contain
            async for chunk in answer.aiter_bytes():
                *lines, begun = (begun + chunk).split(b"\n")
                for change in map(json.loads, filter(bytes.strip, lines)):
                    if change["type"] == "ERROR":
                        raise Gone
                    yield change["type"], change["object"]

    async def pod(self, namespace: str, name: str) -> dict[str, Any] | None:
        """The pod; None where there is none of that name."""
        answer = await self._client.get(f"/api/v1/namespaces/{namespace}/pods/{name}", headers=self._headers())
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> ApiAnswer:
        binding = {
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }  # fmt: skip
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        answer = await self._client.post(path, json=binding, headers=self._headers())
        return ApiAnswer(answer.status_code, answer.text)

    async def report(self, namespace: str, name: str, uid: str, message: str) -> ApiAnswer:
        """Make an event on a pod; the same once more is a conflict, as long as the API server keeps the first."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        digest = sha256(f"{uid} {message}".encode()).hexdigest()[:16]
        pod = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid}
        event = {
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": f"{name[:200]}.{digest}", "namespace": namespace}, "involvedObject": pod,
            "reason": "NotAsAsked", "message": message[:LONGEST_MESSAGE], "type": "Warning",
            "source": {"component": "nf-placer"}, "firstTimestamp": now, "lastTimestamp": now, "count": 1,
        }  # fmt: skip
        answer = await self._client.post(f"/api/v1/namespaces/{namespace}/events", json=event, headers=self._headers())
        return ApiAnswer(answer.status_code, answer.text)

    async def close(self) -> None:
        """End all connections."""
        await self._client.aclose()

    def _headers(self) -> dict[str, str]:
        if self._account is None:
            return {}
        # the kubelet renews the token, so that it is read each time
        return {"Authorization": f"Bearer {(self._account / 'token').read_text()}"}
