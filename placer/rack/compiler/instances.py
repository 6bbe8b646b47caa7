"""The NFs of a graph with what the library makes of their parameters: the same data for every platform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placer.rack.compiler.graph import DeviceKind, RackGraph, RackNf
from placer.rack.compiler.library.nf_kind import NF_KINDS, NfKind
from profiles import Fault, InputError
from profiles.faults import suggestion


@dataclass(frozen=True)
class NfInstance:
    """An NF of a chain, ready to be generated.

    Parameters
    ----------
    parameters
        All of its kind, with defaults.
    data
        Such as the filters of an ACL.
    """

    nf: RackNf
    kind: NfKind[Any]
    parameters: Mapping[str, float]
    data: Any


def instances_of(graph: RackGraph) -> dict[int, NfInstance]:
    """The instances by number of the NF.

    Raises
    ------
    InputError
        When an NF is unknown, cannot run where it is placed, or has wrong parameters: all of them.
    """
    faults: list[Fault] = []
    found: dict[int, NfInstance] = {}
    known: dict[object, Any] = {}
    for nf in graph.nfs:
        try:
            kind = _kind(nf)
            parameters = kind.completed(nf.parameters, nf.name)
        except InputError as error:
            faults += error.faults
            continue
        platforms = kind.runs_on(parameters)
        if platform_of(graph, nf) not in platforms:
            given = ", ".join(f"{name}={value:g}" for name, value in parameters.items())
            hint = f"{nf.kind}({given}) runs on {', '.join(sorted(platforms))}"
            faults.append(Fault(nf.name, None, None, f"the library has no such {nf.kind} for {nf.place.name}", hint))
            continue
        key = (nf.kind, tuple(sorted(parameters.items())))
        if key not in known:
            known[key] = kind.data(parameters)
        found[nf.number] = NfInstance(nf, kind, parameters, known[key])
    if faults:
        raise InputError(faults)
    return found


def _kind(nf: RackNf) -> NfKind[Any]:
    if nf.kind not in NF_KINDS:
        hint = suggestion(nf.kind, NF_KINDS)
        raise InputError.of(nf.name, f"the library has no {nf.kind}: it can be placed, not generated", hint=hint)
    return NF_KINDS[nf.kind]


def platform_of(graph: RackGraph, nf: RackNf) -> str:
    """What the library calls the place of an NF."""
    if nf.place.kind is DeviceKind.SWITCH and graph.rack.switch.kind.value == "openflow":
        return "openflow"
    return nf.place.kind.value
