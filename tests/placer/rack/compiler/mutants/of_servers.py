"""Faults of chain files, and of the filters that sort packets on servers."""

import re
from collections.abc import Mapping
from typing import Any

from placer.rack.compiler import compile as compiler
from placer.rack.compiler.graph import RackNf
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.rack.compiler.routing import Routing
from placer.rack.compiler.server import chain_file
from placer.rack.compiler.traffic import pcap
from tests.placer.rack.compiler.mutants.mutant import Mutant, Patch, replaced, wrapped

WRITER = chain_file._Writer


def _in_text(change: Any) -> Patch:
    return wrapped(WRITER, "text", lambda text, writer: "".join(f"{one}\n" for one in change(text.splitlines())))


def _without_splits(lines: list[str]) -> list[str]:
    return [one for one in lines if not one.startswith("split ")]


def _index_lower(target: str, *_: object) -> str:
    return re.sub(r"nsh (\d+) (\d+)", lambda found: f"nsh {found[1]} {int(found[2]) - 1}", target)


def _path_higher(target: str, *_: object) -> str:
    return re.sub(r"nsh (\d+)", lambda found: f"nsh {int(found[1]) + 1}", target)


def _as_exit_the_nf(target: str, writer: Any, nf: RackNf, way: Any, *_: object) -> str:
    return chain_file._nsh(writer.routing.labels[nf.number]) if way.target is None else target


def _to_first_way(target: str, writer: Any, nf: RackNf, way: Any, end: str, group: Any) -> str:
    first = nf.ways[0]
    return target if way is first else WRITER_TARGET(writer, nf, first, end, group)


WRITER_TARGET = WRITER.target


def _gates_shifted(lines: list[str]) -> list[str]:
    return [
        re.sub(r"\[(\d)\] ->", lambda found: f"[{1 - int(found[1])}] ->" if int(found[1]) < 2 else found[0], one)
        for one in lines
    ]


def _shares_turned(lines: list[str]) -> list[str]:
    """Of each function with several edges with shares, the shares in the other order."""
    places: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        if "->" in line and "/" in line.split()[-1]:
            places.setdefault(line.partition(" ->")[0], []).append(at)
    made = list(lines)
    for found in places.values():
        for at, other in zip(found, found[::-1], strict=True):
            made[at] = f"{lines[at].rpartition(' ')[0]} {lines[other].rpartition(' ')[2]}"
    return made


def _drops_turned(settings: dict[str, str], nf: RackNf) -> dict[str, str]:
    other = {"0": "1", "1": "0"}
    return {name: other[value] if name == "drop_unmatched" else value for name, value in settings.items()}


def _filters_turned(settings: dict[str, str], nf: RackNf) -> dict[str, str]:
    return {name: ";".join(value.split(";")[::-1]) if name == "filters" else value for name, value in settings.items()}


def _one_file_for_all(names: dict[str, str], writer: Any, instance: Any) -> dict[str, str]:
    for suffix, text in instance.kind.server_files(instance.data).items():
        names[suffix] = f"all.{suffix}"
        writer.files.setdefault(names[suffix], text)
    return names


def _rotated(program: Any, *_: object) -> Any:
    if program is None:
        return None
    names, nfs = list(program.functions), list(program.functions.values())
    functions: Mapping[str, str] = dict(zip(names, nfs[1:] + nfs[:1], strict=True))
    return chain_file.ServerProgram(program.chain, program.files, functions, program.cores)


def _first_entry_only(entered: frozenset[int], of: Routing) -> frozenset[int]:
    """No labels of NFs that several others lead to."""
    return frozenset(nf for nf in entered if len(of.graph.before[nf]) < 2)


def _without_settings(kind: str) -> Patch:
    return replaced(type(NF_KINDS[kind]), "server_settings", lambda self, parameters, files: {})


def _next_subgroup_alone(lines: list[str]) -> list[str]:
    """Only the first function behind each function."""
    kept, seen = [], set[str]()
    for line in lines:
        tail, arrow, _ = line.partition(" -> ")
        if arrow and tail in seen:
            continue
        seen.add(tail)
        kept.append(line)
    return kept


MUTANTS = (
    Mutant("a server writes a service index that is one too low", wrapped(WRITER, "target", _index_lower)),
    Mutant("a server writes the next service path", wrapped(WRITER, "target", _path_higher)),
    Mutant(
        "a server sends what leaves the rack back to the NF that it left", wrapped(WRITER, "target", _as_exit_the_nf)
    ),
    Mutant("all ways behind an NF of a server lead where the first one does", wrapped(WRITER, "target", _to_first_way)),
    Mutant("merges have no label on servers", wrapped(Routing, "entered", _first_entry_only)),
    Mutant("gates of what sorts packets are swapped", _in_text(_gates_shifted)),
    Mutant("only the first edge behind a function is written", _in_text(_next_subgroup_alone)),
    Mutant("splits of servers have no salt", _in_text(_without_splits)),
    Mutant("shares of a server's split are taken in the wrong order", _in_text(_shares_turned)),
    Mutant("what no filter matches is dropped where it should pass", wrapped(chain_file, "_sorting", _drops_turned)),
    Mutant("filters are in the wrong order", wrapped(chain_file, "_sorting", _filters_turned)),
    Mutant("all ACLs of a server read the file of the first one", wrapped(WRITER, "files_of", _one_file_for_all)),
    Mutant("counters of a server's functions count for other NFs", wrapped(compiler, "server_program", _rotated)),
    Mutant("settings of Tunnel are not written", _without_settings("Tunnel")),
    Mutant("settings of LB are not written", _without_settings("LB")),
    Mutant("filters look behind one tag only", replaced(pcap, "MOST_TAGS", 1)),
    Mutant(
        "filters look for ports of fragments",
        wrapped(pcap, "_port", lambda text, *_: text.replace("&0x3fff=0", "&0x1fff=0")),
    ),
    Mutant(
        "filters take source for destination", wrapped(pcap, "_ends", lambda ends, end: tuple(1 - one for one in ends))
    ),
    Mutant(
        "filters forget that it is IPv4",
        wrapped(pcap, "_at", lambda text, *_: re.sub(r"ether\[\d+:2\]=0x0800", "len>=0", text)),
    ),
)
