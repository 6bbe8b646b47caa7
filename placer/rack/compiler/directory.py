"""The directory of a compiled rack: a program for each device, and a Makefile that builds and runs them alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from placer.rack.compiler.compile import CompiledRack
from placer.rack.compiler.ebpf.limits import CLANG, NicUse, build, compile_command
from placer.rack.compiler.ebpf.source import source_of
from placer.rack.compiler.graph import NfInstance
from placer.rack.compiler.p4.emit import p4_text
from placer.rack.compiler.routing import Routing, switch_ports
from placer.rack.compiler.swx.spec import entries_text, names_text, spec_text
from placer.rack.files.sources import SourceFile, write_sources
from profiles import InputError
from profiles.aside import directory_aside

ROUTING_FILE = "routing.json"
PLAN_FILE = "plan.json"
SOURCES_FOLDER = "sources"  # the folder of copies of own data


def write_files(rack: CompiledRack) -> dict[str, str]:
    """The texts of all files but the plan, by their path in the directory."""
    files = {
        ROUTING_FILE: json.dumps(routing_document(rack), indent=1) + "\n",
        "Makefile": makefile_text(rack, str(BUILT_FOLDER)),
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
        f"{OPENFLOW_FOLDER}/flows": program.flows_text(),
        f"{OPENFLOW_FOLDER}/groups": program.groups_text(),
        f"{OPENFLOW_FOLDER}/meters": program.meters_text(),
        f"{OPENFLOW_FOLDER}/names": program.names_text(),
        f"{OPENFLOW_FOLDER}/labels": labels.text(),
    }


def write_rack(
    rack: CompiledRack,
    plan: Path,
    out: Path,
    texts: Mapping[str, str] | None = None,
    before: Callable[[], None] = lambda: None,
) -> dict[str, NicUse]:
    """Write the directory; one that this has written before is replaced, after `before` if that raises nothing.

    `texts`: what `write_files` returned, where that is known.
    Programs of SmartNICs are compiled, and held to the limits of the card, where clang is installed. Returns what the
    program of each SmartNIC takes of the card; none without clang. Raises InputError when something else is there, or a
    program does not fit its card.
    """
    if out.exists() and not (out / ROUTING_FILE).is_file() and (not out.is_dir() or any(out.iterdir())):
        hint = "name a new directory, or one that this command has written"
        raise InputError.of(str(out), "something else is there", hint=hint)
    secret = devices_with_keys(rack)
    objects = {name: build(nic) for name, nic in rack.nics.items()} if shutil.which(CLANG) else {}
    with directory_aside(out) as aside:
        for path, text in (write_files(rack) if texts is None else texts).items():
            file = aside / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            if file.parent.name in secret:
                file.chmod(0o600)
        for name, (data, _) in objects.items():
            (aside / "nics" / name / "nic.o").write_bytes(data)
            (aside / "nics" / name / "nic.o").chmod(0o600 if name in secret else 0o644)
        if rack.routing.graph.sources:
            document = json.loads(plan.read_text(encoding="utf-8-sig"))
            document["sources"] = copy_sources(rack.routing.graph.sources, aside, out)
            (aside / PLAN_FILE).write_text(json.dumps(document) + "\n", encoding="utf-8")
        else:
            shutil.copyfile(plan, aside / PLAN_FILE)
        shutil.copymode(plan, aside / PLAN_FILE)  # it may hold keys
        before()
    return {name: use for name, (_, use) in objects.items()}


def devices_with_keys(rack: CompiledRack) -> set[str]:
    """Devices whose programs hold keys of an operator: nobody else may read them."""
    nfs = rack.routing.graph.nfs
    return {nf.place.name for nf in nfs if any(isinstance(data, bytes) for data in nf.own.values())}


def copy_sources(sources: Mapping[str, SourceFile], aside: Path, out: Path) -> dict[str, dict[str, str]]:
    """Copy files with own data into a directory; returns what its plan says of them.

    `aside`: where the directory is written; `out`: where it will be, from where `origin` leads to a file.
    """
    folder = aside / SOURCES_FOLDER
    folder.mkdir()
    recorded: dict[str, dict[str, str]] = {}
    origins = {name: replace(source, path=source.origin or source.path) for name, source in sources.items()}
    for name, of in write_sources(origins, out / PLAN_FILE).items():
        source, number = sources[name], 1
        copy = folder / source.path.name
        while copy.exists():
            number += 1
            copy = folder / f"{source.path.stem}-{number}{source.path.suffix}"
        copy.write_bytes(source.content)
        shutil.copymode(source.path, copy)
        recorded[name] = {"path": f"{SOURCES_FOLDER}/{copy.name}", "sha256": of["sha256"], "origin": of["path"]}
    return recorded


def routing_document(rack: CompiledRack) -> Mapping[str, object]:
    """Who talks to whom, for people and programs: devices, links, labels of NFs, and names of functions."""
    routing = rack.routing
    return {
        "routing": 1,
        "switch": "pisa" if rack.switch is not None else OPENFLOW_FOLDER,
        "ports": ["world", *switch_ports(routing)],
        "servers": {
            name: {
                "cores": server.cores,
                **({"on_cores": server.on_cores} if server.on_cores else {}),
                **({"nics": server.nics} if server.nics else {}),
                "functions": dict(server.functions),
            }
            for name, server in rack.servers.items()
        },
        "nics": {place.name: {"server": place.server} for place in routing.graph.places if place.name in rack.nics},
        "nfs": [_nf(routing, rack.instances[nf]) for nf in range(len(routing.graph.nfs))],
        "paths": [[routing.graph.nfs[nf].name for nf in path] for path in routing.paths],
    }


def _nf(routing: Routing, instance: NfInstance) -> dict[str, object]:
    nf = instance.nf
    label = routing.labels[nf.number]
    found: dict[str, object] = {"name": nf.name, "nf": nf.kind, "on": nf.place.name}
    if nf.number in routing.entered:
        found |= {"path": label.path, "index": label.index}
    if nf.targets:
        names = [routing.graph.nfs[target].name for target in nf.targets]
        found["ways"] = [{"to": to, "match": way.text} for to, way in zip(names, nf.ways, strict=True)]
    if numbers := list(instance.kind.rule_numbers(instance.data)):
        found["rules"] = numbers
    return found


# The Makefile of a compiled rack.


README_HEAD = """\
# Builds and runs this rack, emulated, without any other file:
#     make                              builds the programs of SmartNICs
#     make run IN=in.pcap OUT=out.pcap  sends packets through the rack; counters are then in run/*.json
# PROGRAMS is where nf-switch, nf-server and nf-nic are.
PROGRAMS ?= {programs}
CLANG ?= clang
PYTHON ?= python3

all: {objects}
"""
MAKE_RULE = """
nics/{name}/nic.o: nics/{name}/nic.c
\t{command}
"""
RUN_TARGET = """
run: all
\t@test -n "$(IN)" && test -n "$(OUT)" || {{ echo "usage: make run IN=in.pcap OUT=out.pcap" >&2; exit 2; }}
\t@rm -rf run && mkdir run
\t@input=$$(realpath "$(IN)"); output=$$(realpath "$(OUT)"); trap 'kill 0' INT TERM; \\
{starts}
\tfailed=0; for process in $$processes; do wait $$process || failed=1; done; exit $$failed

clean:
\trm -rf run {objects}

.PHONY: all run clean
"""


def makefile_text(rack: CompiledRack, programs: str) -> str:
    """The Makefile; `programs` is the folder of the programs, unless the environment says another one."""
    objects = " ".join(f"nics/{name}/nic.o" for name in rack.nics)
    rules = "".join(_rule(name) for name in rack.nics)
    starts = "".join(f"\t{line} \\\n" for line in _starts(rack)).rstrip("\n")
    return (
        README_HEAD.format(programs=programs, objects=objects)
        + rules
        + RUN_TARGET.format(starts=starts, objects=objects)
    )


def _rule(name: str) -> str:
    _, *words = compile_command("$<", "$@")
    return MAKE_RULE.format(name=name, command=" ".join(["$(CLANG)", *words]))


def _starts(rack: CompiledRack) -> Iterator[str]:
    """Commands of the shell that start all processes."""
    servers = list(rack.servers)
    nics = {place.name: place.server for place in rack.routing.graph.places if place.name in rack.nics}
    yield "processes=;"
    for process in processes_of(switch_ports(rack.routing), servers, nics, openflow=rack.switch is None):
        yield f'{_command(process)} & processes="$$processes $$!";'


def _command(process: Process) -> str:
    words = {"IN": '"$$input"', "OUT": '"$$output"'}
    shown = " ".join(words.get(word, word) for word in process.arguments)
    program = (
        "$(PYTHON) -m " + OPENFLOW_MODULE if process.program == OPENFLOW_MODULE else f'"$(PROGRAMS)/{process.program}"'
    )
    return f"( cd {process.folder} && exec {program} {shown} )"


# The processes of a rack, and the links between them.


SWITCH_PROGRAM, SERVER_PROGRAM, NIC_PROGRAM = "nf-switch", "nf-server", "nf-nic"
BUILT_FOLDER = Path(__file__).resolve().parents[3] / "build" / "nfs" / "rack"
PROGRAMS_VARIABLE = "NF_RACK_PROGRAMS"  # the environment variable that names a folder of programs built elsewhere
OPENFLOW_FOLDER = "openflow"
OPENFLOW_MODULE = "placer.rack.compiler.openflow.process"  # what plays an OpenFlow switch, a module of Python
RUN_FOLDER = "run"  # the folder of links and reports


@dataclass(frozen=True)
class Process:
    """A process."""

    name: str  # of its device; its report is `run/NAME.json`
    program: str  # a program of C, or a module of Python
    folder: str  # where it runs, in the directory of the rack
    arguments: tuple[str, ...]  # IN and OUT stand for the captures


def processes_of(
    ports: Sequence[str], servers: Sequence[str], nics: Mapping[str, str], *, openflow: bool = False
) -> Iterator[Process]:
    """The processes: servers and SmartNICs first, then the switch.

    `ports`: servers at the ports of the switch, from port 1 on. `servers`: those that run NFs. `nics`: SmartNICs that
    do, with their servers. `openflow`: whether the switch is an OpenFlow switch, whose rules another process runs.
    """
    nic_of = {server: name for name, server in nics.items()}
    for name in servers:
        link = f"{name}.host.link" if name in nic_of else f"{name}.link"
        folder = f"servers/{name}"
        chain = ("--chain", "server.chain", "--link", f"../../{RUN_FOLDER}/{link}")
        yield Process(name, SERVER_PROGRAM, folder, (*chain, *_report(folder, name), "--cores", "1"))
    for name, server in nics.items():
        folder = f"nics/{name}"
        host = ("--host", f"../../{RUN_FOLDER}/{server}.host.link") if server in servers else ()
        wire = ("--program", "nic.o", "--wire", f"../../{RUN_FOLDER}/{server}.link")
        yield Process(name, NIC_PROGRAM, folder, (*wire, *host, *_report(folder, name)))
    links = tuple(word for name in ports for word in ("--link", f"{name}=../{RUN_FOLDER}/{name}.link"))
    common = ("--in", "IN", "--out", "OUT", *links, *_report("switch", "switch"))
    if openflow:
        texts = tuple(word for name in ("flows", "groups", "names", "labels", "meters") for word in (f"--{name}", name))
        link = f"../{RUN_FOLDER}/rules.link"
        more = ("--ports", f"{1 + len(ports)}", "--link", link, *_report(OPENFLOW_FOLDER, "rules"))
        yield Process("rules", OPENFLOW_MODULE, OPENFLOW_FOLDER, (*texts, *more))
        yield Process("switch", SWITCH_PROGRAM, RUN_FOLDER, ("--rules", link, *common))
    else:
        texts = ("--spec", "switch.spec", "--entries", "switch.entries", "--names", "switch.names")
        yield Process("switch", SWITCH_PROGRAM, "switch", (*texts, *common))


def _report(folder: str, name: str) -> tuple[str, str]:
    return "--report", f"{'../' * (folder.count('/') + 1)}{RUN_FOLDER}/{name}.json"
