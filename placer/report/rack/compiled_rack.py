"""A compiled rack as text and JSON: what each device runs, and how packets travel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.rack.compiler.branch_counts import WAY_SIGN
from placer.rack.compiler.compile import CompiledRack
from placer.rack.compiler.ebpf.source import SNIPPET_FOLDER, source_of
from placer.rack.compiler.graph import DeviceKind
from placer.rack.compiler.p4.emit import p4_text
from placer.rack.compiler.switch.compose import compose
from placer.rack.compiler.switch.flow import BLOCKS
from placer.report.text.table import text_table

if TYPE_CHECKING:
    from placer.rack.compiler.ebpf.limits import NicUse
    from placer.rack.compiler.execute import RackRun
    from placer.rack.compiler.server.chain_file import ServerProgram
    from placer.rack.compiler.update import TableUpdate


def rack_document(rack: CompiledRack, uses: Mapping[str, NicUse]) -> Mapping[str, Any]:
    """What `placer chain compile --format json` prints. `uses`: what the program of each SmartNIC takes of the card,
    where it was compiled."""
    routing = rack.routing
    found: dict[str, Any] = {
        "paths": [[routing.graph.nfs[nf].name for nf in path] for path in routing.paths],
        "nfs": [{"name": nf.name, "nf": nf.kind, "on": nf.place.name} for nf in routing.graph.nfs],
        "labels": {routing.graph.nfs[nf].name: str(routing.labels[nf]) for nf in sorted(routing.entered)},
        "switch": _switch(rack),
        "servers": {name: _server(one) for name, one in rack.servers.items()},
        "nics": {name: {"nfs": [step.name for step in one.steps]} for name, one in rack.nics.items()},
    }
    if rack.tables is not None:
        for name, (tables, stages) in (("per_nf", rack.tables.apart), ("per_kind", rack.tables.shared)):
            found["switch"][name] = {"tables": tables, "stages": stages}
    for name, use in uses.items():
        found["nics"][name] |= {"instructions": use.instructions, "stack_bytes": use.stack}
    return found


def _server(program: ServerProgram) -> dict[str, Any]:
    """An NF on several cores is several functions, and one that sorts packets is one more."""
    nfs = len({name for name in program.functions.values() if WAY_SIGN not in name})
    return {"nfs": nfs, "functions": len(program.functions), "cores": program.cores}


def _switch(rack: CompiledRack) -> dict[str, Any]:
    nfs = [nf.name for nf in rack.routing.graph.nfs if nf.place.name == "switch"]
    if rack.switch is not None:
        return {"kind": "pisa", "nfs": nfs, "tables": len(rack.switch.tables)}
    assert rack.openflow is not None
    return {"kind": "openflow", "nfs": nfs, "rules": len(rack.openflow.program.rules)}


def format_compiled(document: Mapping[str, Any], out: Path) -> str:
    """What `placer chain compile` prints."""
    places = {nf["name"]: nf["on"] for nf in document["nfs"]}
    lines = []
    for number, path in enumerate(document["paths"], 1):
        lines.append(f"  {number}: " + " -> ".join(f"{name} ({places[name]})" for name in path))
    switch = document["switch"]
    program = f"{switch['tables']} tables" if "tables" in switch else f"{switch['rules']} OpenFlow rules"
    rows = [("switch, emulated", len(switch["nfs"]), program)]
    rows += [(name, one["nfs"], f"{one['cores']} cores") for name, one in document["servers"].items()]
    rows += [(f"{name}, emulated", len(one["nfs"]), _card(one)) for name, one in document["nics"].items()]
    parts = ["Service paths:", *lines, "", text_table(("device", "NFs", "program"), rows, words=1)]
    return "\n".join(parts) + _stages(document["switch"]) + f"\nWritten to {out}.\n"


def update_document(update: TableUpdate, *, is_dry: bool, took: Mapping[str, float] | None) -> Mapping[str, object]:
    """What `placer chain update --format json` prints.

    `took`: times of a rack that runs, ms; empty if it had the tables, None if none runs.
    """
    entries = {
        change.name: {nf: {"entries": now, "before": before} for nf, (now, before) in change.entries.items()}
        for change in update.sources
    }
    found = {"sources": entries, "files": list(update.files), "written": bool(entries) and not is_dry}
    runs = {} if is_dry else {"runs": took is not None}
    return {**found, **runs, **{name: round(ms, 1) for name, ms in (took or {}).items()}}


def format_update(document: Mapping[str, Any], directory: Path) -> str:
    """What `placer chain update` prints."""
    brought = ""
    if "paused_ms" in document:
        brought = f"The rack that runs has the new tables; packets waited for {document['paused_ms']:,} ms.\n"
    if not document["sources"]:
        return f"No source has changed.\n{brought}"
    rows = [
        (name, nf, f"{one['entries']:,}", f"{one['before']:,}")
        for name, nfs in document["sources"].items()
        for nf, one in (nfs or {"-": {"entries": 1, "before": 1}}).items()
    ]
    table = text_table(("source", "NF", "entries", "before"), rows, words=2)
    files = "".join(f"  {file}\n" for file in document["files"]) or "  none: the entries are the same\n"
    end = f"Written to {directory}.\n" if document["written"] else "Nothing was written.\n"
    if document["written"] and not document["runs"]:
        brought = f"No rack of yours runs from {directory}.\n"
    return f"{table}\nFiles that differ:\n{files}{end}{brought}"


def _card(nic: Mapping[str, Any]) -> str:
    if "instructions" not in nic:
        return "XDP, not compiled"
    return f"{nic['instructions']:,} instructions of XDP"


def _stages(switch: Mapping[str, Any]) -> str:
    """Stages by our packer, and what a table per kind of NF saves."""
    if "per_nf" not in switch or switch["per_nf"]["stages"] is None:
        return ""
    apart, shared = switch["per_nf"], switch["per_kind"]
    text = f"\nStages of the switch, by our packer: {apart['stages']} with one table per NF"
    if shared["tables"] == apart["tables"]:
        return f"{text}; no two NFs can share one.\n"
    taken = "taken" if shared["stages"] < apart["stages"] else "not taken"
    saved = f"{shared['stages']} with {shared['tables']} tables in place of {apart['tables']}, one per kind ({taken})"
    return f"{text}, {saved}.\n"


# What became of packets in a compiled rack, as text and JSON.


def build_execution(result: RackRun) -> Mapping[str, Any]:
    """What `placer chain exec --format json` prints."""
    return {
        "received": result.received,
        "sent": result.sent,
        "dropped_by_nfs": result.dropped_by_nfs,
        "dropped": dict(sorted(result.dropped.items())),
        "explained": result.is_explained,
        "nfs": {
            name: {"entered": one.entered, "sent": one.sent, "dropped": one.dropped} for name, one in result.nfs.items()
        },
        "branches": [
            {"nf": way.nf, "to": way.to, "match": way.match, "packets": way.packets} for way in result.branches
        ],
        "rules": result.rules,
        "seconds": round(result.seconds, 3),
    }


def format_execution(document: Mapping[str, Any]) -> str:
    """What `placer chain exec` prints."""
    rows = [(name, one["entered"], one["sent"], one["dropped"]) for name, one in document["nfs"].items()]
    table = text_table(("NF", "entered", "sent", "dropped"), rows, words=1)
    branches = [
        (way["nf"], way["to"], way["match"] or "-", "?" if way["packets"] is None else way["packets"])
        for way in document["branches"]
    ]
    if branches:
        table += "\n" + text_table(("branch behind", "to", "match", "packets"), branches, words=3)
    rules = [(nf, entry, count) for nf, found in document["rules"].items() for entry, count in found.items() if count]
    if rules:
        table += "\n" + text_table(("NF", "rule", "packets"), rules, words=1)
    drops = [f"{count:,} {reason.replace('_', ' ')}" for reason, count in document["dropped"].items()]
    by_nfs = document["dropped_by_nfs"]
    drops += [f"{by_nfs:,} by NFs"] if by_nfs else []
    lines = [f"{document['received']:,} packets came from the world, {document['sent']:,} went to it."]
    lines += [f"Dropped: {', '.join(drops)}."] if drops else ["None was dropped."]
    if restarts := ", ".join(f"{name} {count}" for name, count in document.get("restarts", {}).items() if count):
        lines.append(f"Started again: {restarts}. What was inside, and counts of the last second, are lost.")
    elif not document["explained"]:
        lines.append("Some packets are missing: what came in is not what went out and what was dropped.")
    return table + "\n" + "\n".join(lines) + "\n"


# How much of the code of a rack is generated, counted as Lemur counts it (section 5.3): lines, without data.
#
# What NF authors write is one file per kind and platform; what is generated is the rest of the programs. Lines that are
# blank or comments alone do not count, nor do entries of tables, and files that functions read.


NF_FOLDER = SNIPPET_FOLDER.parent / "functions"
COMMENT_MARKS = ("//", "/*", "*", "#", ";")
PUBLISHED_GENERATED, PUBLISHED_STEERING, PUBLISHED_ALL = 820, 600, 1700
"""Lines of Lemur for its chains 1 to 4, about: of P4."""


@dataclass(frozen=True)
class CodeShare:
    """Lines of code of a rack. `generated`: of the programs; those of the switch as P4. `steering`: of them, on the
    switch: what would be there if its NFs did nothing. `written`: by authors of NFs, each kind once per platform on
    which the rack runs it."""

    generated: int
    steering: int
    written: int

    @property
    def percent(self) -> float:
        """The generated share of all lines."""
        return 100.0 * self.generated / (self.generated + self.written)


def code_share(rack: CompiledRack) -> CodeShare | None:
    """Lines of the programs of a rack; None where the switch runs no P4 program."""
    if rack.switch is None:
        return None
    steering = _lines(p4_text(compose(rack.routing, rack.instances, only_steering=True), entries=False))
    generated = _lines(p4_text(rack.switch, entries=False))
    generated += sum(_lines(server.chain) for server in rack.servers.values())
    snippets = {step.function.snippet for nic in rack.nics.values() for step in nic.steps}
    on_card = sum(_lines((SNIPPET_FOLDER / name).read_text(encoding="utf-8")) for name in snippets)
    generated += sum(_lines(source_of(nic)) for nic in rack.nics.values()) - on_card * bool(rack.nics)
    return CodeShare(generated, steering, sum(map(_lines, _write(rack))) + on_card)


def share_text(share: CodeShare) -> str:
    """The share in a line, beside the published one."""
    published = 100 * PUBLISHED_GENERATED / PUBLISHED_ALL
    return (
        f"{share.generated} lines generated, {share.steering} of them steer packets on the switch; NF authors wrote "
        f"{share.written}: {share.percent:.0f} % generated. Lemur, of P4 alone for its chains 1 to 4: about "
        f"{PUBLISHED_GENERATED} of {PUBLISHED_ALL} lines ({published:.0f} %), {PUBLISHED_STEERING} of them steering.\n"
    )


def _write(rack: CompiledRack) -> Iterator[str]:
    """The files of authors for the switch and for servers."""
    kinds = {(nf.place.kind, nf.kind) for nf in rack.routing.graph.nfs}
    for place, kind in sorted(kinds):
        if place is DeviceKind.SWITCH:
            yield Path(BLOCKS[kind].__code__.co_filename).read_text(encoding="utf-8")
        elif place is DeviceKind.SERVER:
            for file in _of_function(kind):
                yield file.read_text(encoding="utf-8")


def _of_function(kind: str) -> list[Path]:
    """The C files of a function: the one that registers it, and those of its folder."""
    own = next((path for path in sorted(NF_FOLDER.glob("*.c")) if f'NF_KIND("{kind}"' in path.read_text("utf-8")), None)
    if own is None:
        return []
    return [own, *sorted((NF_FOLDER / own.stem).glob("**/*.[ch]"))]


def _lines(text: str) -> int:
    rows = (line.strip() for line in text.splitlines())
    return sum(bool(row) and not row.startswith(COMMENT_MARKS) for row in rows)
