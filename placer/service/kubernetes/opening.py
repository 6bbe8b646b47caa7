"""Puts the extender together."""

from __future__ import annotations

from starlette.routing import Route

from placer.online.what_if import WhatIf
from placer.service.http.app import Background
from placer.service.http.writer import Writer
from placer.service.kubernetes.api import KubernetesApi
from placer.service.kubernetes.extender import Extender
from placer.service.kubernetes.watch import Watcher


def extender_of(api: KubernetesApi, writer: Writer, what_if: WhatIf) -> tuple[list[Route], list[Background]]:
    """The routes of the extender, and what follows the cluster with this API server."""
    watcher = Watcher(api, writer)
    return Extender(writer, what_if, api, watcher).routes(), [watcher.run]
