"""The directory of a compiled rack: a program for each device, and a Makefile that builds and runs them alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from placer.metacompiler.compile import CompiledRack
from placer.metacompiler.ebpf.build import CLANG
from placer.metacompiler.ebpf.limits import NicUse, built
from placer.metacompiler.ebpf.source import source_of
from placer.metacompiler.makefile import makefile_text
from placer.metacompiler.p4.emit import p4_text
from placer.metacompiler.processes import BUILT, OPENFLOW
from placer.metacompiler.routing import Routing, switch_ports
from placer.metacompiler.swx.spec import entries_text, names_text, spec_text
from profiles import InputError
from profiles.aside import directory_aside

ROUTING = "routing.json"
PLAN = "plan.json"


def written_files(rack: CompiledRack) -> dict[str, str]:
    """The texts of all files but the plan, by their path in the directory."""
    files = {
        ROUTING: json.dumps(routing_document(rack), indent=1) + "\n",
        "Makefile": makefile_text(rack, str(BUILT)),
        **_switch_files(rack),
    }
    for name, server in rack.servers.items():
        files[f"servers/{name}/server.chain"] = server.chain
        files |= {f"servers/{name}/{file}": text for file, text in server.files.items()}
    files |= {f"nics/{name}/nic.c": source_of(nic) for name, nic in rack.nics.items()}
    return files


def _switch_files(rack: CompiledRack) -> dict[str, str]:
    if rack.switch is not None:
        return {
            "switch/switch.spec": spec_text(rack.switch),
            "switch/switch.entries": entries_text(rack.switch),
            "switch/switch.names": names_text(rack.switch),
            "switch/switch.p4": p4_text(rack.switch),
        }
    assert rack.openflow is not None
    program, labels = rack.openflow.program, rack.openflow.labels
    return {
        f"{OPENFLOW}/flows": program.flows_text(),
        f"{OPENFLOW}/groups": program.groups_text(),
        f"{OPENFLOW}/names": program.names_text(),
        f"{OPENFLOW}/labels": labels.text(),
    }


def write_rack(rack: CompiledRack, plan: Path, out: Path) -> dict[str, NicUse]:
    """Write the directory; one that this has written before is replaced.

    Programs of SmartNICs are compiled, and held to the limits of the card, where clang is installed.

    Returns
    -------
    dict
        What the program of each SmartNIC takes of the card; none without clang.

    Raises
    ------
    InputError
        When something else is there, or a program does not fit its card.
    """
    if out.exists() and not (out / ROUTING).is_file() and (not out.is_dir() or any(out.iterdir())):
        hint = "name a new directory, or one that this command has written"
        raise InputError.of(str(out), "something else is there", hint=hint)
    objects = {name: built(nic) for name, nic in rack.nics.items()} if shutil.which(CLANG) else {}
    with directory_aside(out) as aside:
        for path, text in written_files(rack).items():
            file = aside / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        for name, (data, _) in objects.items():
            (aside / "nics" / name / "nic.o").write_bytes(data)
        shutil.copyfile(plan, aside / PLAN)
    return {name: use for name, (_, use) in objects.items()}


def routing_document(rack: CompiledRack) -> Mapping[str, object]:
    """Who talks to whom, for people and programs: devices, links, labels of NFs, and names of functions."""
    routing = rack.routing
    return {
        "routing": 1,
        "switch": "pisa" if rack.switch is not None else OPENFLOW,
        "ports": ["world", *switch_ports(routing)],
        "servers": {
            name: {"cores": server.cores, "functions": dict(server.functions)} for name, server in rack.servers.items()
        },
        "nics": {place.name: {"server": place.server} for place in routing.graph.places if place.name in rack.nics},
        "nfs": [_nf(routing, nf) for nf in range(len(routing.graph.nfs))],
        "paths": [[routing.graph.nfs[nf].name for nf in path] for path in routing.paths],
    }


def _nf(routing: Routing, number: int) -> dict[str, object]:
    nf = routing.graph.nfs[number]
    label = routing.labels[number]
    found: dict[str, object] = {"name": nf.name, "nf": nf.kind, "on": nf.place.name}
    if number in routing.entered:
        found |= {"path": label.path, "index": label.index}
    return found
