"""Runs a compiled rack on a capture: one process for each device, joined by links in shared memory."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from placer.rack.compiler.branch_counts import WAY_SIGN, CountedWay, count_ways
from placer.rack.compiler.directory import (
    BUILT_FOLDER,
    NIC_PROGRAM,
    OPENFLOW_FOLDER,
    OPENFLOW_MODULE,
    PLAN_FILE,
    PROGRAMS_VARIABLE,
    ROUTING_FILE,
    RUN_FOLDER,
    SOURCES_FOLDER,
    Process,
    processes_of,
)
from placer.rack.compiler.ebpf.limits import CLANG, compile_command
from placer.rack.compiler.ebpf.source import COUNT_RULES
from placer.rack.compiler.openflow.open_vswitch import EMULATED_SWITCH, check_open_vswitch
from placer.rack.files.plan_file import read_plan
from placer.rack.files.sources import read_source
from profiler.testbed import TestbedError
from profiles import Fault, InputError
from profiles.aside import file_aside
from profiles.faults import collect_faults

POLL_S = 0.02
PATIENCE_S = 5.0  # after a process has failed, what the others have to end
REFUSED_STATUS = 2
LEFT_MESSAGE = "the process at the other end has left"  # what a process says that failed because another one did
PCAP_US, PCAP_NS, PCAP_NG = bytes.fromhex("a1b2c3d4"), bytes.fromhex("a1b23c4d"), bytes.fromhex("0a0d0d0a")
CAPTURE_MAGICS = (PCAP_US, PCAP_US[::-1], PCAP_NS, PCAP_NS[::-1], PCAP_NG)  # how captures begin


class ExecutionError(TestbedError):
    """A process of the rack failed: which, with its messages."""


class _Server(BaseModel):
    model_config = ConfigDict(strict=True)

    cores: int
    functions: dict[str, str]


class _Nic(BaseModel):
    model_config = ConfigDict(strict=True)

    server: str


class _Way(BaseModel):
    model_config = ConfigDict(strict=True)

    to: str
    match: str


class _Nf(BaseModel):
    model_config = ConfigDict(strict=True)

    name: str
    ways: list[_Way] = []
    rules: list[int] = []  # of which rule each entry is a part that devices count; empty: of its own


class RackFile(BaseModel):
    """What `routing.json` says of the processes."""

    model_config = ConfigDict(strict=True)

    routing: int
    switch: str
    ports: list[str]
    servers: dict[str, _Server]
    nics: dict[str, _Nic]
    nfs: list[_Nf]

    def processes(self) -> list[Process]:
        nics = {name: one.server for name, one in self.nics.items()}
        return list(processes_of(self.ports[1:], list(self.servers), nics, openflow=self.switch == OPENFLOW_FOLDER))


@dataclass
class NfCounts:
    """Frames that entered an NF, that it sent on, and that it dropped."""

    entered: int = 0
    sent: int = 0
    dropped: int = 0


@dataclass
class RackRun:
    """What became of packets. `received`, `sent`: from and to the world.

    `branches`: ways behind NFs that have several. `rules`: by NF, packets by the number of its rule or route, where the
    device counts them: servers do only those of ACLs.
    """

    received: int = 0
    sent: int = 0
    nfs: dict[str, NfCounts] = field(default_factory=dict)  # by `chain/nf`
    dropped: Counter[str] = field(default_factory=Counter)  # by reason, outside of NFs
    branches: list[CountedWay] = field(default_factory=list)
    rules: dict[str, Counter[int]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def dropped_by_nfs(self) -> int:
        return sum(nf.dropped for nf in self.nfs.values())

    @property
    def is_explained(self) -> bool:
        """Whether every packet has left, or was dropped for a reason that is counted."""
        return self.received == self.sent + self.dropped_by_nfs + self.dropped.total()


def read_rack_file(directory: Path) -> RackFile:
    """What a directory says of its processes. Raises InputError when it is none that `placer chain compile` wrote."""
    file = directory / ROUTING_FILE
    try:
        return RackFile.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        hint = "`placer chain compile PLAN --out DIR` writes such a directory"
        if not directory.exists():
            raise InputError.of(str(directory), "does not exist", hint=hint) from None
        if not file.exists():
            raise InputError.of(str(directory), f"is no compiled rack: it has no {ROUTING_FILE}", hint=hint) from None
        raise InputError.of(str(directory), f"is no compiled rack: {_first_line(error)}", hint=hint) from None


def check_sources(directory: Path) -> None:
    """Refuse a directory whose copies of own data are not those that its programs were made of.

    Raises InputError with every copy that is missing or changed.
    """
    if not (directory / SOURCES_FOLDER).exists():
        return
    sources = read_plan(directory / PLAN_FILE).sources
    hint = "change the source, and run `placer chain place` and `placer chain compile` again"
    faults: list[Fault] = []
    for name, source in sources.items():
        copy = directory / SOURCES_FOLDER / source.path.name
        with collect_faults(faults):
            if read_source(name, copy).sha256 != source.sha256:
                faults.append(Fault(str(copy), None, None, "is not the copy that programs were made of", hint))
    if faults:
        raise InputError(faults)


def execute_rack(
    directory: Path,
    source: Path,
    target: Path,
    *,
    openflow: str = EMULATED_SWITCH,
    attach: bool = False,
    on_wait: Callable[[], None] = lambda: None,
) -> RackRun:
    """Send the packets of a capture through the rack, and write those that leave it.

    `openflow`: what runs the rules of an OpenFlow switch, "emulated" or "ovs". `attach`: the programs of SmartNICs are
    attached to network interfaces. Raises InputError when the directory or
    the capture cannot be used, or Open vSwitch cannot run. Raises ExecutionError when a process fails.
    """
    rack = read_rack_file(directory)
    check_sources(directory)
    refuse_options(rack, directory, openflow, attach)
    # refuse what is no capture before anything is started
    try:
        with source.open("rb") as content:
            magic = content.read(4)
    except OSError as error:
        raise InputError.of(str(source), error.strerror or str(error)) from None
    if magic not in CAPTURE_MAGICS:
        raise InputError.of(str(source), "is no capture", hint="pcap or pcapng, as tcpdump writes it")
    programs = find_programs(bool(rack.nics))
    begun = time.monotonic()
    with copy_programs(directory, rack) as running, file_aside(target) as aside:
        ends = {"IN": str(source.resolve()), "OUT": str(aside)}
        commands = {process: command_of(process, programs, ends, openflow, attach) for process in rack.processes()}
        _run(commands, running, str(source.resolve()), on_wait)
        result = add_reports(rack, [(process.name, read_report(running, process)) for process in rack.processes()])
        shutil.copytree(
            running / RUN_FOLDER, directory / RUN_FOLDER, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.link")
        )
    result.seconds = time.monotonic() - begun
    return result


def find_programs(with_nics: bool) -> Path:
    """The folder of the programs: the one that the environment names, else the one built here.

    Raises InputError when one of them is missing.
    """
    folder = Path(os.environ.get(PROGRAMS_VARIABLE) or BUILT_FOLDER)
    for process in ("nf-switch", "nf-server", *([NIC_PROGRAM] if with_nics else [])):
        if not os.access(folder / process, os.X_OK):
            raise InputError.of(str(folder / process), "the program is not built", hint="make deps nfs")
    return folder


@contextmanager
def copy_programs(directory: Path, rack: RackFile) -> Iterator[Path]:
    """A copy of the programs to run in, all built: two runs at a time do not meet."""
    with tempfile.TemporaryDirectory(prefix="rack-") as folder:
        running = Path(folder) / "rack"
        shutil.copytree(directory, running, ignore=shutil.ignore_patterns(RUN_FOLDER))
        (running / RUN_FOLDER).mkdir()
        for name in rack.nics:
            build_nic(running / "nics" / name)
        yield running


def build_nic(folder: Path) -> None:
    """Compile the program of a SmartNIC so that it counts its rules; where that cannot be done, as it is for a card.

    Raises InputError without clang where nothing is compiled yet, ExecutionError when clang refuses the program.
    """
    command = compile_command(folder / "nic.c", folder / "nic.o")
    counts = COUNT_RULES in (folder / "nic.c").read_text(encoding="utf-8") and shutil.which(CLANG)
    if counts and not subprocess.run([*command, f"-D{COUNT_RULES}"], capture_output=True, check=False).returncode:
        return
    if not (folder / "nic.o").exists():
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise InputError.of("clang", "is not installed", hint="make deps") from None
        if done.returncode:
            raise ExecutionError(f"{command[0]} refuses {folder.name}/nic.c: {done.stderr.strip()}")


def _run(commands: Mapping[Process, Sequence[str]], folder: Path, capture: str, on_wait: Callable[[], None]) -> None:
    """Start all processes, and wait until all have ended."""
    started: list[tuple[Process, subprocess.Popen[bytes]]] = []
    try:
        for rack_process, command in commands.items():
            cwd = folder / rack_process.folder
            with log_of(folder, rack_process).open("wb") as log:
                started.append((rack_process, subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stderr=log)))
        failed = _wait(started, on_wait)
    finally:
        for _, process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for _, process in started:
            _end(process)
    if failed:
        messages = {one.name: message_of(folder, one) for one, _ in failed}
        # the one that refused its input, or failed by itself, not those that then missed it
        one, code = min(failed, key=lambda pair: (pair[1] != REFUSED_STATUS, LEFT_MESSAGE in messages[pair[0].name]))
        _raise_for_capture(messages[one.name], capture)
        raise ExecutionError(
            f"{one.program} of {one.name} {how_ended(code)}: {messages[one.name] or 'it says nothing'}"
        )


def refuse_options(rack: RackFile, directory: Path, openflow: str, attach: bool) -> None:
    """Raises InputError where Open vSwitch is asked for and cannot run, or a SmartNIC to attach is not there."""
    if openflow != EMULATED_SWITCH:
        if rack.switch != OPENFLOW_FOLDER:
            raise InputError.of(str(directory), "its switch is no OpenFlow switch")
        check_open_vswitch()
    if attach and not rack.nics:
        raise InputError.of("--attach", f"no SmartNIC of {directory} runs a program")


def command_of(process: Process, programs: Path, ends: Mapping[str, str], openflow: str, attach: bool) -> list[str]:
    """The command of a process. `ends`: what stands for IN and OUT."""
    arguments = [ends.get(word, word) for word in process.arguments]
    arguments += ["--attach"] * (attach and process.program == NIC_PROGRAM)
    if process.program != OPENFLOW_MODULE:
        return [str(programs / process.program), *arguments]
    alone = [] if openflow == EMULATED_SWITCH else ["unshare", "--net"]
    return [*alone, sys.executable, "-m", OPENFLOW_MODULE, "--switch", openflow, *arguments]


def how_ended(code: int) -> str:
    """How a process has ended, by its exit status."""
    return f"was ended by signal {-code}" if code < 0 else f"failed with {code}"


def _raise_for_capture(message: str, capture: str) -> None:
    """Faults of the capture are those of the user's input."""
    head = f"{capture}: "
    faults = [line.removeprefix(head) for line in message.splitlines() if line.startswith(head)]
    hint = next((line.removeprefix("hint: ") for line in message.splitlines() if line.startswith("hint: ")), None)
    if faults:
        raise InputError([Fault(capture, None, None, fault, hint) for fault in faults])


def _wait(
    started: Sequence[tuple[Process, subprocess.Popen[bytes]]], on_wait: Callable[[], None]
) -> list[tuple[Process, int]]:
    """Until all have ended; once one fails, the others get little time. Those that failed by themselves come back."""
    limit: float | None = None
    while None in [process.poll() for _, process in started]:
        if limit is None and any(process.returncode for _, process in started):
            limit = time.monotonic() + PATIENCE_S
        if limit is not None and time.monotonic() > limit:
            break
        on_wait()
        time.sleep(POLL_S)
    return [(one, process.returncode) for one, process in started if process.returncode]


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def log_of(folder: Path, process: Process) -> Path:
    """The file that has what a process writes to stderr."""
    return folder / RUN_FOLDER / f"{process.name}.log"


def message_of(folder: Path, process: Process) -> str:
    """What a process has written to stderr."""
    return log_of(folder, process).read_text(encoding="utf-8", errors="replace").strip()


def read_report(folder: Path, process: Process) -> Mapping[str, Any]:
    """The last report of a process."""
    found: Mapping[str, Any] = json.loads((folder / RUN_FOLDER / f"{process.name}.json").read_text(encoding="utf-8"))
    return found


def add_reports(rack: RackFile, reports: Iterable[tuple[str, Mapping[str, Any]]]) -> RackRun:
    """The reports of all processes, added up: by device, several where one was started again."""
    result = RackRun(nfs={nf.name: NfCounts() for nf in rack.nfs})
    counted: dict[str, Counter[str]] = {}
    for device, report in reports:
        result.dropped.update({reason: count for reason, count in report["dropped"].items() if count})
        if device == "switch" and "world" in report["received"]:
            result.received += report["received"]["world"]
            result.sent += report["sent"]["world"]
        names = rack.servers[device].functions if device in rack.servers else None
        for function in report["functions"]:
            _add_function(result, function, names, counted)
        for name, rules in report.get("rules", {}).items():
            _add_rules(result, name, rules)
        for name, ways in report.get("ways", {}).items():
            counted.setdefault(name, Counter()).update(ways)
    result.branches = _branches(rack, result, counted)
    result.rules = dict(_rules(rack, result.rules))
    return result


def _rules(rack: RackFile, counts: Mapping[str, Mapping[int, int]]) -> Iterator[tuple[str, Counter[int]]]:
    """The packets of each rule as its author wrote it: a rule about TCP and UDP is two entries of a table."""
    for nf in rack.nfs:
        found = Counter[int]()
        for entry, count in sorted(counts.get(nf.name, {}).items()):
            found[nf.rules[entry - 1] if nf.rules else entry] += count
        if found:
            yield nf.name, found


def _branches(rack: RackFile, result: RackRun, counted: Mapping[str, Mapping[str, int]]) -> list[CountedWay]:
    """The ways behind NFs that have several. `counted`: those that devices count, by NF and number."""
    ways = [
        CountedWay(nf.name, way.to, way.match, counted.get(nf.name, {}).get(str(at)))
        for nf in rack.nfs
        for at, way in enumerate(nf.ways)
    ]
    entered, sent = ({name: getattr(nf, what) for name, nf in result.nfs.items()} for what in ("entered", "sent"))
    packets = count_ways(ways, entered, sent, result.dropped)
    several = {nf.name for nf in rack.nfs if len(nf.ways) > 1 or any(way.match for way in nf.ways)}
    return [replace(way, packets=count) for way, count in zip(ways, packets, strict=True) if way.nf in several]


def _add_rules(result: RackRun, name: str, rules: Mapping[str, int]) -> None:
    result.rules.setdefault(name, Counter()).update({int(entry): count for entry, count in rules.items()})


def _add_function(
    result: RackRun, one: Mapping[str, Any], names: Mapping[str, str] | None, counted: dict[str, Counter[str]]
) -> None:
    """Add the counters of a function to those of its NF; one that only sorts packets has none of its own.

    `counted`: gets those of ways behind NFs.
    """
    name = str(one["name"])
    if names is not None:
        if name not in names:
            if one["dropped"]:
                result.dropped["rate_limit"] += int(str(one["dropped"]))
            return
        if name.partition(".")[0].endswith("__sort"):
            return
        name = names[name]
    nf, sign, way = name.rpartition(WAY_SIGN)
    if sign and name not in result.nfs:
        counted.setdefault(nf, Counter())[way] += int(str(one["entered"]))
        return
    if "rules" in one:
        _add_rules(result, name, one["rules"])
    counts = result.nfs.setdefault(name, NfCounts())
    counts.entered += int(str(one["entered"]))
    counts.sent += int(str(one["sent"]))
    counts.dropped += int(str(one["dropped"]))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
