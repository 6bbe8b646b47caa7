"""Pods as NF instances: their annotations, and their ids in the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placer.fleet.event_shapes import CONSTRAINT_KEYS

ANNOTATION_PREFIX = "nf-placer.io/"
NF_ANNOTATION = f"{ANNOTATION_PREFIX}nf"
NIC_MODEL = f"{ANNOTATION_PREFIX}nic-model"  # the label of nodes that are NICs: their model

POOL_LABEL = f"{ANNOTATION_PREFIX}pool"  # of nodes, as the next ones: the first that a node has is its domain
DOMAIN_LABELS = (f"{ANNOTATION_PREFIX}domain", "topology.kubernetes.io/zone")

TRAFFIC_ANNOTATIONS = {"flows": "flows", "packet-size": "packet_size", "mtbr": "mtbr"}
EVENT_ANNOTATIONS = {
    "rate-kpps": "rate_kpps",
    "cores": "cores",
    "sla-drop": "sla_drop",
    "sla-min-kpps": "sla_min_kpps",
    "sla-latency-us": "sla_latency_us",
    "priority": "priority",
}

TEXT_ANNOTATIONS = {key.replace("_", "-"): key for key in (*CONSTRAINT_KEYS, "owner")}

POD_PREFIX = "pod/"


class WrongPod(Exception):
    """A pod whose annotations make no sense."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that is an NF instance.

    `id`: in the fleet; a pod that is made again has another. `namespace`, `name`, `uid`: of the pod. `annotations`:
    those of ours, without the prefix. `node`: where it is bound; None where it is not. `priority`: that of its spec,
    which it has unless an annotation gives another.
    """

    id: str
    namespace: str
    name: str
    uid: str
    annotations: Mapping[str, str]
    node: str | None = None
    priority: int = 0

    @property
    def rank(self) -> float:
        """The priority that counts, also where other annotations make no sense."""
        given = _number(self.annotations.get("priority", ""))
        return self.priority if given is None else given

    def arrival(self, nic: str | None = None, kind: int | None = None) -> dict[str, Any]:
        """The event of its arrival, on a NIC if one is given; whatever the SLAs there, if the NIC's kind is given.

        Raises WrongPod with every annotation that makes no sense.
        """
        event: dict[str, Any] = {"event": "arrive", "id": self.id, "nf": self.annotations["nf"]}
        traffic: dict[str, float] = {}
        faults = []
        for name, value in self.annotations.items():
            number = _number(value)
            if name in TEXT_ANNOTATIONS:
                event[TEXT_ANNOTATIONS[name]] = value
            elif name not in ("nf", *TRAFFIC_ANNOTATIONS, *EVENT_ANNOTATIONS):
                known = ", ".join(("nf", *TRAFFIC_ANNOTATIONS, *EVENT_ANNOTATIONS, *TEXT_ANNOTATIONS))
                faults.append(f"{ANNOTATION_PREFIX}{name} is unknown; annotations are {known}")
            elif name != "nf" and number is None:
                faults.append(f"{ANNOTATION_PREFIX}{name}: '{value}' is not a number")
            elif name in TRAFFIC_ANNOTATIONS:
                traffic[TRAFFIC_ANNOTATIONS[name]] = number  # type: ignore[assignment]
            elif name in EVENT_ANNOTATIONS:
                event[EVENT_ANNOTATIONS[name]] = number
        if faults:
            raise WrongPod("; ".join(faults))
        if traffic:
            event["traffic"] = traffic
        if self.priority:
            event.setdefault("priority", self.priority)
        if nic is not None:
            event["nic"] = nic
        if kind is not None:
            event["kind"] = kind
        return event


def pod_of(found: Mapping[str, Any]) -> Pod | None:
    """The NF instance that a pod of the Kubernetes API is; None for any other pod."""
    metadata = found.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if NF_ANNOTATION not in annotations:
        return None
    ours = {
        name[len(ANNOTATION_PREFIX) :]: str(value)
        for name, value in annotations.items()
        if name.startswith(ANNOTATION_PREFIX)
    }
    namespace, name, uid = (str(metadata.get(key, "")) for key in ("namespace", "name", "uid"))
    priority = (found.get("spec") or {}).get("priority") or 0
    return Pod(id_of(found), namespace, name, uid, ours, node_of(found), priority)


def id_of(found: Mapping[str, Any]) -> str:
    """The id that a pod of the Kubernetes API has in the fleet, whatever its annotations say by now."""
    metadata = found.get("metadata") or {}
    return POD_PREFIX + "/".join(str(metadata.get(key, "")) for key in ("namespace", "name", "uid"))


def node_of(found: Mapping[str, Any]) -> str | None:
    """The node that a pod of the Kubernetes API is bound to; None where it is not."""
    return (found.get("spec") or {}).get("nodeName") or None


def has_ended(found: Mapping[str, Any]) -> bool:
    """Whether a pod of the Kubernetes API needs no NIC any more; one that is being deleted does until then."""
    return (found.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def uid_of(tenant_id: str) -> str | None:
    """The UID of the pod with this id; None for an instance that is no pod."""
    return tenant_id.rpartition("/")[2] if tenant_id.startswith(POD_PREFIX) else None


def _number(value: str) -> float | None:
    """The number that an annotation has; None where it is no number."""
    try:
        return float(value)
    except ValueError:
        return None
