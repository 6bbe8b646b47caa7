"""The Makefile of a compiled rack."""

from __future__ import annotations

from collections.abc import Iterator

from placer.metacompiler.compile import CompiledRack
from placer.metacompiler.ebpf.build import compile_command
from placer.metacompiler.processes import OPENFLOW_MODULE, Process, processes_of
from placer.metacompiler.routing import switch_ports

HEAD = """\
# Builds and runs this rack, emulated, without any other file:
#     make                              builds the programs of SmartNICs
#     make run IN=in.pcap OUT=out.pcap  sends packets through the rack; counters are then in run/*.json
# PROGRAMS is where nf-switch, nf-server and nf-nic are.
PROGRAMS ?= {programs}
CLANG ?= clang
PYTHON ?= python3

all: {objects}
"""
RULE = """
nics/{name}/nic.o: nics/{name}/nic.c
\t{command}
"""
RUN = """
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
    return HEAD.format(programs=programs, objects=objects) + rules + RUN.format(starts=starts, objects=objects)


def _rule(name: str) -> str:
    _, *words = compile_command("$<", "$@")
    return RULE.format(name=name, command=" ".join(["$(CLANG)", *words]))


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
