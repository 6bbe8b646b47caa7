"""Keeps the devices of a compiled rack up, between network interfaces: one process each, started again when it dies.

A device takes orders on its stdin (`nfs/rack/control.h`), among them one for a report. What died had counted up to its
last report, and that is kept.
"""

import re
import select
import selectors
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

from placer.rack.compiler.directory import RUN_FOLDER, Process
from placer.rack.compiler.execute import (
    PATIENCE_S,
    ExecutionError,
    RackFile,
    RackRun,
    add_reports,
    build_nic,
    check_sources,
    command_of,
    copy_programs,
    find_programs,
    how_ended,
    log_of,
    message_of,
    read_rack_file,
    read_report,
    refuse_options,
)
from placer.rack.compiler.live_socket import answer_update
from profiles import InputError

INTERFACE_PREFIX = "af_packet:"
NEXT_FOLDER = "next"  # of a device: files that it prepares
FIXED_FILES = (".spec", "routing.json", "groups", "meters", "labels")
"""Of a device: what cannot change while it runs."""
TABLE_SIZE = re.compile(r"^\tsize \d+$", re.MULTILINE)
TABLES_PATIENCE_S = 300.0  # for a device to read tables, and to take them
REPORT_S = 1.0  # between two reports of all devices
LOOK_S = 0.05
END_PATIENCE_S = 60.0  # for what is inside to leave
ENDED_STATUSES = (0, 130, 143, -signal.SIGINT, -signal.SIGTERM)  # at the end of all, also where all got the signal
SIGNALS_S = 1.0  # within which a signal to all has ended the switch
MOST_STARTS = 5  # in a row, of a device that does not come up
SWITCH = "switch"  # the name of the device that begins and ends everything
SWITCH_RULES = "rules"  # the name of the process that runs the rules of an OpenFlow switch
DEVICE_HINT = "`ip link` lists the network interfaces"


@dataclass
class _Device:
    """A device, and the process that plays it now. `past`: the last reports of those that died."""

    process: Process
    running: subprocess.Popen[bytes]
    failed_starts: int = 0  # before this one, in a row
    is_ready: bool = False
    asked: deque[list[bool]] = field(default_factory=deque)  # where the answers to orders go, in turn
    unread: bytes = b""
    past: list[Mapping[str, Any]] = field(default_factory=list)


class LiveRack:
    """The devices of a rack that is up. `counts`: what became of packets, by the last reports; `restarts`: by device.

    `say`: takes a line for people.
    """

    def __init__(
        self, rack: RackFile, folder: Path, command: Callable[[Process], list[str]], say: Callable[[str], None]
    ) -> None:
        self.counts = RackRun()
        self.restarts: Counter[str] = Counter()
        self._rack, self._folder, self._command, self._say = rack, folder, command, say
        self._looked = selectors.DefaultSelector()
        self._devices: dict[str, _Device] = {}
        self._is_ending, self._is_over, self._begun = False, False, time.monotonic()

    def start(self) -> None:
        """Start all devices, and wait until they are ready. Raises ExecutionError when one fails."""
        for process in self._rack.processes():
            self._start(process)
            self.restarts[process.name] = 0
        while not all(device.is_ready for device in self._devices.values()):
            self._look()

    def _start(self, process: Process, past: Iterable[Mapping[str, Any]] = (), failed_starts: int = 0) -> None:
        with log_of(self._folder, process).open("wb") as log:
            running = subprocess.Popen(
                [*self._command(process), "--control"],
                cwd=self._folder / process.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                process_group=0,  # Ctrl-C ends devices in order, not all at once
            )
        self._devices[process.name] = _Device(process, running, failed_starts, past=list(past))
        assert running.stdout is not None
        self._looked.register(running.stdout, selectors.EVENT_READ, process.name)

    def _look(self) -> None:
        """Take the answers that come within a moment, and start again what has died."""
        for key, _ in self._looked.select(LOOK_S):
            device = self._devices[key.data]
            assert device.running.stdout is not None
            if text := device.running.stdout.read(4096):
                *lines, device.unread = (device.unread + text).split(b"\n")
                for line in lines:
                    if line == b"ready":
                        device.is_ready = True
                    elif line in (b"done", b"failed") and device.asked:
                        device.asked.popleft().append(line == b"done")
            else:
                self._looked.unregister(device.running.stdout)
                self._bury(device)

    def _bury(self, device: _Device) -> None:
        """A device has ended: in order at the end of all, else it is started again.

        Raises ExecutionError when it does not come up at first, or several times in a row.
        """
        name, code = device.process.name, device.running.wait()
        if self._is_ending and self._has_ended(name, code):
            return
        how, message = how_ended(code), message_of(self._folder, device.process)
        failed_starts = 0 if device.is_ready else device.failed_starts + 1
        if failed_starts and (failed_starts == MOST_STARTS or not self.restarts[name]):
            raise ExecutionError(f"{device.process.program} of {name} {how}: {message or 'it says nothing'}")
        self.restarts[name] += 1
        last = f": {message.splitlines()[-1]}" if message else ""
        self._say(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {name} {how}, and is started again{last}")
        past = [*device.past, *self._reports_of(device)]
        (self._folder / RUN_FOLDER / f"{name}.json").unlink(missing_ok=True)
        self._start(device.process, past, failed_starts)
        if self._is_ending and name == SWITCH:
            self._send(self._devices[SWITCH], "end")

    def _has_ended(self, name: str, code: int) -> bool:
        """Whether a device has ended as it was to, at the end of all; by a signal it has where the switch has, too."""
        if not self._is_over and code in ENDED_STATUSES:
            with suppress(subprocess.TimeoutExpired):
                switch_code = self._devices[SWITCH].running.wait(SIGNALS_S)
                self._is_over = switch_code in ENDED_STATUSES
                for device in self._devices.values():
                    if self._is_over and switch_code:  # it lets out nothing more
                        device.running.terminate()
        return self._is_over or (code == 0 and name != SWITCH)

    def order(self, word: str, names: Iterable[str] | None = None, deaths: int | None = None) -> dict[str, bool]:
        """Give devices, all by default, an order; whether each has done it. One that dies meanwhile has not.

        `deaths`: with more of them nothing is waited for. One that hangs is killed, to be started again, unless it may
        wait for another one: for one that starts, or when it drains.
        """
        patience_s = TABLES_PATIENCE_S if word in ("prepare", "swap") else PATIENCE_S
        asked = {name: self._devices[name] for name in (self._devices if names is None else names)}
        answers: dict[str, list[bool]] = {name: [] for name in asked}
        for name, device in asked.items():
            device.asked.append(answers[name])
            self._send(device, word)
        begun = settled = time.monotonic()
        while late := [it for name, it in asked.items() if not answers[name] and self._devices[name] is it]:
            if deaths is not None and self.restarts.total() > deaths:
                break
            now = time.monotonic()
            if not all(device.is_ready for device in self._devices.values()):
                settled = now
            if now - begun > patience_s:
                if word == "drain" or (settled > now - patience_s and word != "swap"):
                    break
                for device in late:
                    device.running.kill()
            self._look()
        return {name: answer == [True] for name, answer in answers.items()}

    def _send(self, device: _Device, word: str) -> None:
        assert device.running.stdin is not None
        with suppress(BrokenPipeError):  # it has died, which shows at its stdout
            device.running.stdin.write(f"{word}\n".encode())

    def watch(self, until: Callable[[], bool], updates: socket.socket) -> None:
        """Keep the devices up, count, and take updates from a socket, until it is time to end."""
        asked = 0.0
        while not until():
            if select.select([updates], [], [], 0)[0]:
                answer_update(updates, self.update)
            if time.monotonic() - asked >= REPORT_S:
                asked = time.monotonic()
                self.order("report", [name for name, device in self._devices.items() if not device.asked])
                self.counts = self._count()
            self._look()

    def update(self, texts: Mapping[str, str]) -> Mapping[str, float]:
        """Replace the tables of all devices between two packets; how long that took, empty if they have them.

        `texts`: what the files of the directory are to be. `prepare_ms`: for how long devices read tables, which may
        let packets wait meanwhile. `paused_ms`: for how long nothing was let in then. A packet meets the old tables of
        all devices or the new ones: those that are inside leave first. Raises InputError where more than tables
        changes, or a device refuses or dies: nothing has changed then.
        """
        changed = self._changed(texts)
        touched = [
            name
            for name, device in self._devices.items()
            if any(path.startswith(f"{device.process.folder}/") for path in changed)
        ]
        if not touched:
            return {}
        for name in touched:
            if self._devices[name].asked:  # it may still read the files of an update that was given up
                raise InputError.of(name, "has not answered its last order", hint="update again later")
        for name in touched:
            self._write_next(self._folder / self._devices[name].process.folder, changed)
        logged = {name: log_of(self._folder, self._devices[name].process).stat().st_size for name in touched}
        asked, before = time.monotonic(), self.restarts.copy()
        deaths = before.total()
        for name, is_prepared in self.order("prepare", touched).items():
            if not is_prepared:
                raise self._refusal(name, logged, before)
        begun = time.monotonic()
        is_drained = self.order("drain", [SWITCH], deaths)[SWITCH]
        try:
            if not is_drained or self.restarts.total() > deaths:
                raise InputError.of(SWITCH, "a device died or hangs; the tables are the old ones")
            self._exchange(touched)
            # first the switch, which may refuse what fits no more; what dies from now on starts with the new files
            first = {name: self._devices[name] for name in touched if name in (SWITCH, SWITCH_RULES)}
            for name, is_done in self.order("swap", first).items():
                if not is_done and self._devices[name] is first[name]:
                    self._exchange(touched)
                    for other in [other for other in touched if self.restarts[other] > before[other]]:
                        self._devices[other].running.kill()  # it had started with the new files
                        self._look()
                    raise self._refusal(name, logged, before)
            self._swap_rest([name for name in touched if name not in first])
            for device in map(self._devices.__getitem__, touched):  # the numbers of rules are others now
                device.past = [_without_rules(report) for report in device.past]
        finally:
            self.order("go", [SWITCH])
        took = {"prepare_ms": 1000 * (begun - asked), "paused_ms": 1000 * (time.monotonic() - begun)}
        self.order("report", touched)  # else one that dies leaves counts of the old rules
        return took

    def _swap_rest(self, names: Iterable[str]) -> None:
        """Let devices take their tables; those that do not are started again with the new files."""
        devices = {name: self._devices[name] for name in names}
        for name, is_done in self.order("swap", devices).items():
            while not is_done and self._devices[name] is devices[name]:
                devices[name].running.kill()
                self._look()

    def _refusal(self, name: str, logged: Mapping[str, int], restarts: Mapping[str, int]) -> InputError:
        """`logged`: bytes of the logs of devices before they were asked; `restarts`: of devices, by then."""
        if self.restarts[name] > restarts[name]:
            message = "it died"
        else:
            text = log_of(self._folder, self._devices[name].process).read_bytes()[logged[name] :]
            message = text.decode(errors="replace").strip() or "it does not say why"
        return InputError.of(name, f"does not take the tables: {message}")

    def _changed(self, texts: Mapping[str, str]) -> dict[str, str]:
        """The files that change: entries, rules, files of functions and programs of SmartNICs.

        Raises InputError where anything else does.
        """
        changed = {}
        for path, text in texts.items():
            file = self._folder / path
            before = file.read_text(encoding="utf-8") if file.is_file() else None
            if before == text:
                continue
            # a running switch has room for more entries
            is_size = path.endswith(".spec") and TABLE_SIZE.sub("", before or "") == TABLE_SIZE.sub("", text)
            if before is None or (path.endswith(FIXED_FILES) and not is_size):
                raise InputError.of(path, "changes, not only tables", hint="end `placer chain run`, and start it again")
            changed[path] = text
        return changed

    def _write_next(self, folder: Path, changed: Mapping[str, str]) -> None:
        """The folder `next` of a device: its files as they are to be."""
        shutil.rmtree(folder / NEXT_FOLDER, ignore_errors=True)
        shutil.copytree(folder, folder / NEXT_FOLDER, ignore=shutil.ignore_patterns(NEXT_FOLDER))
        for path, text in changed.items():
            if path.startswith(f"{folder.relative_to(self._folder)}/"):
                (folder / NEXT_FOLDER / Path(path).name).write_text(text, encoding="utf-8")
        if (folder / "nic.c").exists():
            (folder / NEXT_FOLDER / "nic.o").unlink()
            try:
                build_nic(folder / NEXT_FOLDER)
            except ExecutionError as error:
                raise InputError.of(folder.name, str(error)) from None

    def _exchange(self, names: Iterable[str]) -> None:
        """Let files of `next` take the places of those that devices read when they start, and those theirs."""
        for name in names:
            folder = self._folder / self._devices[name].process.folder
            for file in list((folder / NEXT_FOLDER).iterdir()):
                (folder / file.name).rename(folder / f".{file.name}")
                file.rename(folder / file.name)
                (folder / f".{file.name}").rename(file)

    def end(self) -> None:
        """Let nothing more in, and wait until all that is inside has left and the devices have ended.

        Raises ExecutionError when they have not within END_PATIENCE_S.
        """
        self._is_ending, limit = True, time.monotonic() + END_PATIENCE_S
        self._send(self._devices[SWITCH], "end")
        while self._looked.get_map():
            self._look()
            if time.monotonic() > limit:
                late = [name for name, device in self._devices.items() if device.running.poll() is None]
                raise ExecutionError(f"{', '.join(late)}: not ended after {END_PATIENCE_S:.0f} s; all are killed")
        self.counts = self._count()

    def _count(self) -> RackRun:
        reports = [
            (name, report)
            for name, device in self._devices.items()
            for report in [*device.past, *self._reports_of(device)]
        ]
        return replace(add_reports(self._rack, reports), seconds=time.monotonic() - self._begun)

    def _reports_of(self, device: _Device) -> list[Mapping[str, Any]]:
        """The report of the process that plays a device now, if it has written one."""
        try:
            return [read_report(self._folder, device.process)]
        except FileNotFoundError:
            return []

    def kill(self) -> None:
        """End what still runs, with all that is inside."""
        for device in self._devices.values():
            device.running.terminate()
        for device in self._devices.values():
            try:
                device.running.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                device.running.kill()
                device.running.wait()
            for pipe in (device.running.stdin, device.running.stdout):
                assert pipe is not None
                pipe.close()
        self._looked.close()


def _without_rules(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """A report without the counts of rules; servers have them by function."""
    functions = [{key: value for key, value in function.items() if key != "rules"} for function in report["functions"]]
    return {**report, "functions": functions, "rules": {}}


@contextmanager
def start_live_rack(
    directory: Path, source: str, target: str, say: Callable[[str], None], *, openflow: str, attach: bool
) -> Iterator[LiveRack]:
    """The devices of a compiled rack, up between two network interfaces; what still runs behind the block is killed.

    `openflow`: what runs the rules of an OpenFlow switch. `attach`: the programs of SmartNICs are attached to
    interfaces of their own. Raises InputError when the directory or an interface cannot be used, ExecutionError when a
    device does not start.
    """
    rack = read_rack_file(directory)
    check_sources(directory)
    refuse_options(rack, directory, openflow, attach)
    ends = {"IN": _interface_of("--in", source), "OUT": _interface_of("--out", target)}
    programs = find_programs(bool(rack.nics))
    with copy_programs(directory, rack) as folder:
        live = LiveRack(rack, folder, lambda process: command_of(process, programs, ends, openflow, attach), say)
        try:
            live.start()
            yield live
        finally:
            live.kill()


def _interface_of(option: str, name: str) -> str:
    try:
        socket.if_nametoindex(name)
    except OSError:
        raise InputError.of(option, f"there is no network interface {name}", hint=DEVICE_HINT) from None
    return INTERFACE_PREFIX + name


@contextmanager
def heed_signals() -> Iterator[threading.Event]:
    """What SIGINT or SIGTERM sets in the block. A second one ends the block as Ctrl-C does."""
    is_time = threading.Event()

    def set_or_interrupt(number: int, frame: FrameType | None) -> None:
        if is_time.is_set():
            raise KeyboardInterrupt
        is_time.set()

    former = {number: signal.signal(number, set_or_interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield is_time
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
