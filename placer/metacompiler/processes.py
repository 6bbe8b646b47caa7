"""The processes of a rack, and the links between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SWITCH_PROGRAM, SERVER_PROGRAM, NIC_PROGRAM = "nf-switch", "nf-server", "nf-nic"
PROGRAMS = (SWITCH_PROGRAM, SERVER_PROGRAM, NIC_PROGRAM)
BUILT = Path(__file__).resolve().parents[2] / "build" / "nfs" / "rack"
VARIABLE = "NF_RACK_PROGRAMS"
"""The environment variable that names a folder of programs built elsewhere."""
OPENFLOW = "openflow"
OPENFLOW_MODULE = "placer.metacompiler.openflow.process"
"""What plays an OpenFlow switch, a module of Python."""
RUN = "run"
"""The folder of links and reports."""


@dataclass(frozen=True)
class Process:
    """A process.

    Parameters
    ----------
    name
        Of its device; its report is `run/NAME.json`.
    folder
        Where it runs, in the directory of the rack.
    program
        A program of C, or a module of Python.
    arguments
        IN and OUT stand for the captures.
    """

    name: str
    program: str
    folder: str
    arguments: tuple[str, ...]


def processes_of(
    ports: Sequence[str], servers: Sequence[str], nics: Mapping[str, str], *, openflow: bool = False
) -> Iterator[Process]:
    """The processes: servers and SmartNICs first, then the switch.

    Parameters
    ----------
    ports
        Servers at the ports of the switch, from port 1 on.
    servers
        Those that run NFs.
    nics
        SmartNICs that do, with their servers.
    openflow
        Whether the switch is an OpenFlow switch, emulated.
    """
    nic_of = {server: name for name, server in nics.items()}
    for name in servers:
        link = f"{name}.host.link" if name in nic_of else f"{name}.link"
        folder = f"servers/{name}"
        chain = ("--chain", "server.chain", "--link", f"../../{RUN}/{link}")
        yield Process(name, SERVER_PROGRAM, folder, (*chain, *_report(folder, name), "--cores", "1"))
    for name, server in nics.items():
        folder = f"nics/{name}"
        host = ("--host", f"../../{RUN}/{server}.host.link") if server in servers else ()
        wire = ("--program", "nic.o", "--wire", f"../../{RUN}/{server}.link")
        yield Process(name, NIC_PROGRAM, folder, (*wire, *host, *_report(folder, name)))
    links = tuple(word for name in ports for word in ("--link", f"{name}=../{RUN}/{name}.link"))
    common = ("--in", "IN", "--out", "OUT", *links, *_report("switch", "switch"))
    if openflow:
        texts = tuple(word for name in ("flows", "groups", "names", "labels") for word in (f"--{name}", name))
        yield Process("switch", OPENFLOW_MODULE, OPENFLOW, (*texts, *common))
    else:
        texts = ("--spec", "switch.spec", "--entries", "switch.entries", "--names", "switch.names")
        yield Process("switch", SWITCH_PROGRAM, "switch", (*texts, *common))


def _report(folder: str, name: str) -> tuple[str, str]:
    return "--report", f"{'../' * (folder.count('/') + 1)}{RUN}/{name}.json"
