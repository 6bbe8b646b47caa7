"""The OpenFlow switch as a process of a rack, in place of `nf-switch`: emulated, or Open vSwitch.

It reads a capture, exchanges packets with servers over links, and writes what leaves to another capture. When nothing
moves it sends a flush on every link and waits until all have come back; after rounds in which no packet moved it ends.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from placer.rack.compiler.openflow.emulated_switch import EmulatedOpenFlowSwitch
from placer.rack.compiler.openflow.headers import FrameType, has_too_many_tags, read_headers
from placer.rack.compiler.openflow.interface import INTERFACE_PREFIX, Interface, Orders
from placer.rack.compiler.openflow.link_end import CaptureWriter, LinkEnd, LinkError, MessageKind, read_capture
from placer.rack.compiler.openflow.open_vswitch import EMULATED_SWITCH, OPENFLOW_SWITCHES, OpenVSwitch
from placer.rack.compiler.openflow.pipeline import (
    TOO_MANY_TAGS,
    UNKNOWN_PATH,
    WORLD_PORT,
    read_labels,
    with_service_header,
    with_vlan_label,
)
from profiles import InputError
from profiles.aside import file_aside

INTERRUPTED_STATUS = 130
QUIET_ROUNDS = 8  # as `nf-switch` has them: a server and its SmartNIC exchange packets that the switch does not see
BATCH_PACKETS, MOST_WAITING = 32, 512
RATE_LIMIT_NAME = "reason rate_limit"
NEXT_FOLDER = Path("next")  # of rules to prepare
ROUND_PATIENCE_S = 0.5  # behind it a process that was started again has missed a round
IDLE_S, PATIENCE_S = 50e-6, 30.0
LOOK_S = 0.1  # how often an idle switch looks whether the other processes are still there


Source = Interface | Iterator[tuple[int, bytes]]
Sink = Interface | CaptureWriter


class SwitchProcess:
    """A switch between the world and links; ports are 0 for the world, then the links in their order."""

    def __init__(self, switch: LabelledSwitch, links: Sequence[tuple[str, LinkEnd]], source: Source, out: Sink) -> None:
        self._switch, self._links, self._source, self._out = switch, links, source, out
        self._packets = source.frames() if isinstance(source, Interface) else source
        self._answers = [0] * len(links)
        self._malformed = self._received = self._sent = 0
        self._number = self._quiet = self._moved = 0  # of rounds, and packets on links when the last one began
        self._begun = 0.0
        self._is_paused = self._is_draining = False

    def run(self, orders: Callable[[], Orders] | None = None, write_report: Callable[[], None] = lambda: None) -> None:
        """Until all packets are through; with `orders`, which are given once all are there, until one says so.

        Raises LinkError when a process at the other end does not come, or ends too early.
        """
        self._meet()
        given = orders() if orders is not None else None
        ended, looked = False, time.monotonic()
        while True:
            if given is not None:
                self._obey(given, write_report)
            moved = self._receive()
            waiting = max((len(link.waiting) for _, link in self._links), default=0)
            if not ended and not self._is_paused and waiting < MOST_WAITING:
                before = self._received
                ended = not self._read()
                moved |= ended or self._received > before
            if moved or any(link.waiting for _, link in self._links):
                continue
            if not (ended or self._is_draining):
                time.sleep(IDLE_S)
            elif any(answer != self._number for answer in self._answers) and (
                given is None or time.monotonic() - self._begun < ROUND_PATIENCE_S
            ):
                looked = self._idle(looked, alone=given is not None and not given.has_ended)
            elif self._begin_round(given is not None):
                if given is None or not self._is_draining:
                    break
                self._is_draining, self._quiet = False, 0
                given.answer(True)
        for _, link in self._links:
            link.send(MessageKind.END)
            link.pump()

    def _begin_round(self, stays: bool) -> bool:
        """Send the next flush, unless nothing moved in enough of them: then true."""
        now = sum(link.sent + link.received for _, link in self._links)
        is_quiet = bool(self._number) and now == self._moved and all(one == self._number for one in self._answers)
        self._quiet = self._quiet + 1 if is_quiet else 0
        if self._quiet == QUIET_ROUNDS or not self._links:
            return True
        # one that was started again does not take answers to the one before for its own
        self._number += time.monotonic_ns() if stays and not self._number else 1
        self._moved, self._begun = now, time.monotonic()
        for _, link in self._links:
            link.send(MessageKind.FLUSH, 0, self._number.to_bytes(8, sys.byteorder))
        return False

    def _obey(self, orders: Orders, write_report: Callable[[], None]) -> None:
        """Do what is ordered; what takes time is answered once it is done."""
        order = orders.next()
        if order == "drain":
            self._is_paused = self._is_draining = True
        elif order == "end":
            self._is_paused = False
            if isinstance(self._source, Interface):
                self._source.shut()
        elif order is not None:
            is_done = True
            if order == "report":
                write_report()
            elif order == "go":
                self._is_paused = False
            elif order in ("prepare", "swap"):
                is_done = self._switch.prepare(NEXT_FOLDER) if order == "prepare" else self._switch.swap()
            orders.answer(is_done)

    def _meet(self) -> None:
        limit = time.monotonic() + PATIENCE_S
        for _, link in self._links:
            while not link.is_met:
                if time.monotonic() > limit:
                    raise LinkError(f"{link.path}: no process came to the other end")
                time.sleep(IDLE_S)

    def _receive(self) -> bool:
        """Take all messages and send what waits; whether anything moved."""
        moved = False
        for at, (_, link) in enumerate(self._links):
            for kind, time_us, data in link.messages():
                moved = True
                if kind is MessageKind.FLUSH:
                    self._answers[at] = int.from_bytes(data, sys.byteorder)
                elif kind is MessageKind.PACKET:
                    self._forward(data, 1 + at, time_us)
        for _, link in self._links:
            moved |= link.pump()
        return moved

    def _read(self) -> bool:
        """Let some packets in from the world; False at the end."""
        for _ in range(BATCH_PACKETS):
            try:
                packet = next(self._packets)
            except StopIteration:
                return False
            if packet is None:
                return True
            self._received += 1
            if read_headers(packet[1]).type is FrameType.MALFORMED or has_too_many_tags(packet[1]):
                self._malformed += 1
            else:
                self._forward(packet[1], 0, packet[0])
        return True

    def _forward(self, frame: bytes, port: int, time_us: int) -> None:
        left = self._switch.process(frame, port, time_us)
        if left is None:
            return
        to, made = left
        if to == 0:
            self._sent += self._out.write(time_us, made)
        else:
            self._links[to - 1][1].send(MessageKind.PACKET, time_us, made)

    def _idle(self, looked: float, *, alone: bool) -> float:
        """Sleep for a moment, and now and then look whether the others are there, unless they may die."""
        time.sleep(IDLE_S)
        if alone or time.monotonic() - looked < LOOK_S:
            return looked
        for _, link in self._links:
            if not link.is_alive:
                raise LinkError(f"{link.path}: the process at the other end is gone")
        return time.monotonic()

    def report(self) -> dict[str, Any]:
        """The counters, in the form of `nf-switch`."""
        functions: dict[str, Counter[str]] = {}
        dropped = {"malformed": self._malformed}
        missed = 0
        if isinstance(self._source, Interface):
            dropped["missed"] = missed = self._source.count_missed()
        if isinstance(self._out, Interface):
            dropped["unsent"] = self._out.unsent
        met: dict[str, dict[str, Counter[str]]] = {"rules": {}, "ways": {}}
        for counted, count in self._switch.counters().items():
            name, kind, *entry = counted.split()
            if name == "reason":
                dropped[kind] = count
            elif name == "way":
                met["ways"].setdefault(kind, Counter())[entry[0]] += count
            else:
                functions.setdefault(name, Counter(entered=0, sent=0, dropped=0)).update(
                    {kind: count, "entered": count}
                )
                if entry:
                    met["rules"].setdefault(name, Counter())[entry[0]] += count
        return {
            "program": self._switch.program,
            "received": {"world": self._received + missed, **{name: link.received for name, link in self._links}},
            "sent": {"world": self._sent, **{name: link.sent for name, link in self._links}},
            "functions": [{"name": name, **counts} for name, counts in functions.items()],
            "dropped": dropped,
            **met,
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns its exit status."""
    options = _options().parse_args(arguments)
    links: list[tuple[str, LinkEnd]] = []
    try:
        flows, groups, names, labels = map(_text, (options.flows, options.groups, options.names, options.labels))
        meters = _text(options.meters) if options.meters.exists() else ""
        for text in options.link:
            name, _, path = text.partition("=")
            links.append((name, LinkEnd(Path(path), rejoins=options.control)))
        with ExitStack() as stack:
            rules: RunningRules = (
                EmulatedOpenFlowSwitch(flows, groups, meters)
                if options.switch == EMULATED_SWITCH
                else stack.enter_context(OpenVSwitch(options.flows, options.groups, meters, 1 + len(links)))
            )
            source, target = _interface_of(options.source, receives=True), _interface_of(options.target)
            sink: Sink = target or CaptureWriter(Path(options.target))
            stack.enter_context(sink)
            process = SwitchProcess(
                LabelledSwitch(rules, names, labels),
                links,
                stack.enter_context(source) if source else read_capture(Path(options.source)),
                sink,
            )

            def write_report(interrupted: bool = False) -> None:
                text = json.dumps({**process.report(), "interrupted": interrupted})
                with file_aside(options.report) as aside:
                    aside.write_text(f"{text}\n", encoding="utf-8")

            interrupted = _run_until_interrupt(process, Orders if options.control else None, write_report)
            write_report(interrupted)
        return INTERRUPTED_STATUS if interrupted else 0
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except (LinkError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        for _, link in links:
            link.close()


def _interface_of(text: str, *, receives: bool = False) -> Interface | None:
    """The interface that is named in place of a capture, if one is."""
    name = text.removeprefix(INTERFACE_PREFIX)
    return None if name == text else Interface(name, receives=receives)


def _run_until_interrupt(
    process: SwitchProcess, orders: Callable[[], Orders] | None, write_report: Callable[[], None]
) -> bool:
    """Run a switch; whether it was interrupted: what it has done by then is kept."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        process.run(orders, write_report)
    except KeyboardInterrupt:
        return True
    finally:
        signal.signal(signal.SIGTERM, before)
    return False


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="openflow-switch", description="Plays the OpenFlow switch of a rack.")
    parser.add_argument("--switch", choices=OPENFLOW_SWITCHES, default=EMULATED_SWITCH)
    for name in ("flows", "groups", "names", "labels", "meters", "report"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--in", required=True, dest="source")
    parser.add_argument("--out", required=True, dest="target")
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--link", action="append", default=[], metavar="NAME=FILE")
    return parser


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError.of(str(path), error.strerror or str(error)) from None


# The OpenFlow switch among devices that know service headers.
#
# What leaves the switch has VLAN labels; here stands what a server does first and last: it takes the label for a
# service header, and back.


class RunningRules(Protocol):
    """What runs the rules of a rack."""

    program: str

    def process(self, frame: bytes, port: int, time_us: int) -> list[tuple[int, bytes]]:
        """The ports by which a frame leaves, each with the frame as it is there. `time_us`: when it arrived."""

    def counters(self, names: str) -> Counter[str]:
        """What rules have counted, by the names of their cookies."""


class LabelledSwitch:
    """A switch with ports from 0 on, the world's, as the programmable one of the rack has them."""

    def __init__(self, rules: RunningRules, names: str, labels: str) -> None:
        self._switch, self.program = rules, rules.program
        self._names = names
        self._labels = read_labels(labels)
        self._unknown = 0
        self._next: tuple[str, str] | None = None
        self._past = Counter[str]()

    def prepare(self, folder: Path) -> bool:
        """Read the rules of a folder, and their names; false after printing what is wrong, or where rules must stay."""
        try:
            self._next = _text(folder / "flows"), _text(folder / "names")
        except InputError as error:
            print(error, file=sys.stderr)
            return False
        return isinstance(self._switch, EmulatedOpenFlowSwitch)

    def swap(self) -> bool:
        """Go on with the rules that were prepared; what NFs have counted stays, what rules have does not."""
        if self._next is None or not isinstance(self._switch, EmulatedOpenFlowSwitch):
            return False
        for name, count in self._switch.counters(self._names).items():
            words = name.split()
            if name != RATE_LIMIT_NAME:  # which meters count, and they stay
                self._past[name if words[0] == "way" else " ".join(words[:2])] += count
        (flows, self._names), self._next = self._next, None
        self._switch.replace_rules(flows)
        return True

    def process(self, frame: bytes, port: int, time_us: int) -> tuple[int, bytes] | None:
        """The port by which a frame leaves, and the frame there; None if it is dropped.

        `time_us`: when it arrived.
        """
        arrived = frame if port == 0 else with_vlan_label(frame, self._labels)
        if arrived is None:
            self._unknown += 1
            return None
        left = self._switch.process(arrived, port + WORLD_PORT, time_us)
        if not left:
            return None
        [(to, made)] = left
        served = made if to == WORLD_PORT else with_service_header(made, self._labels)
        return None if served is None else (to - WORLD_PORT, served)

    def counters(self) -> Counter[str]:
        """What rules counted: `NF sent`, `NF dropped` and `reason REASON`."""
        counted = self._switch.counters(self._names)
        counted.update(self._past)
        counted[f"reason {UNKNOWN_PATH}"] += self._unknown
        if not counted[f"reason {TOO_MANY_TAGS}"]:
            del counted[f"reason {TOO_MANY_TAGS}"]
        return counted


if __name__ == "__main__":
    sys.exit(main())
