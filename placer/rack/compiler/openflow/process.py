"""Runs the rules of a rack's OpenFlow switch, emulated or by Open vSwitch, for `nf-switch`, which has its ports."""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from placer.rack.compiler.openflow import pipeline
from placer.rack.compiler.openflow.emulated_switch import EmulatedOpenFlowSwitch
from placer.rack.compiler.openflow.link_end import LinkEnd, LinkError, MessageKind
from placer.rack.compiler.openflow.open_vswitch import EMULATED_SWITCH, OPENFLOW_SWITCHES, OpenVSwitch
from profiles import InputError
from profiles.aside import file_aside

INTERRUPTED_STATUS = 130
BATCH_FRAMES = 32  # between two looks for orders
RATE_LIMIT_NAME = "reason rate_limit"
NEXT_FOLDER = Path("next")  # of rules to prepare
IDLE_S, PATIENCE_S = 50e-6, 30.0
LOOK_S = 0.1  # how often idle rules look whether the switch is still there


class RulesProcess:
    """Runs the rules of a switch: frames come over a link with the port of their arrival, and leave with theirs."""

    def __init__(self, switch: LabelledSwitch, link: LinkEnd) -> None:
        self._switch, self._link = switch, link

    def run(self, orders: Callable[[], Orders] | None = None, write_report: Callable[[], None] = lambda: None) -> None:
        """Until the link ends. `orders`: given once the switch is there; then it may die and be started again.

        Raises LinkError when the switch does not come, or dies.
        """
        limit = time.monotonic() + PATIENCE_S
        while not self._link.is_met:
            if time.monotonic() > limit:
                raise LinkError(f"{self._link.path}: no process came to the other end")
            time.sleep(IDLE_S)
        given, looked = orders() if orders is not None else None, time.monotonic()
        while (moved := self._pass()) is not None:
            if given is not None:
                self._obey(given, write_report)
            if not moved:
                time.sleep(IDLE_S)
            if not moved and (given is None or given.has_ended) and time.monotonic() - looked > LOOK_S:
                looked = time.monotonic()
                if not self._link.is_alive:
                    while left := self._pass():  # what it sent before it ended
                        pass
                    if left is None:
                        return
                    raise LinkError(f"{self._link.path}: the process at the other end is gone")

    def _pass(self) -> bool | None:
        """Let some frames pass the rules; whether anything moved, None at the end."""
        moved = self._link.pump()
        for kind, port, time_us, data in islice(self._link.messages(), BATCH_FRAMES):
            moved = True
            if kind is MessageKind.END:
                return None
            if kind is MessageKind.FLUSH:
                self._link.send(kind, 0, data)
            elif left := self._switch.process(data, port, time_us):
                self._link.send(kind, time_us, left[1], left[0])
            self._link.pump()
        return moved

    def _obey(self, orders: Orders, write_report: Callable[[], None]) -> None:
        """Do what is ordered."""
        order = orders.next()
        if order == "report":
            write_report()
            orders.answer(True)
        elif order == "prepare":
            orders.answer(self._switch.prepare(NEXT_FOLDER))
        elif order == "swap":
            orders.answer(self._switch.swap())

    def report(self) -> dict[str, Any]:
        """The counters, in the form of `nf-switch`, which has those of the ports."""
        functions: dict[str, Counter[str]] = {}
        dropped: dict[str, int] = {}
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
            "functions": [{"name": name, **counts} for name, counts in functions.items()],
            "dropped": dropped,
            **met,
        }


class Orders:
    """Lines on stdin, each answered on stdout (`nfs/rack/control.h`). The end of stdin is an order to `end`."""

    def __init__(self) -> None:
        self.has_ended = False
        self._unread = b""
        print("ready", flush=True)

    def next(self) -> str | None:
        """The next order, if one is there."""
        while not self.has_ended and b"\n" not in self._unread and select.select([0], [], [], 0)[0]:
            text = os.read(0, 4096)
            self._unread, self.has_ended = self._unread + (text or b"end\n"), not text
        word, is_whole, rest = self._unread.partition(b"\n")
        if not is_whole:
            return None
        self._unread = rest
        return word.decode()

    def answer(self, is_done: bool) -> None:
        """Say that an order is done, or has failed."""
        print("done" if is_done else "failed", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The program; returns its exit status."""
    options = _options().parse_args(arguments)
    try:
        flows, groups, names, labels = map(_text, (options.flows, options.groups, options.names, options.labels))
        meters = _text(options.meters) if options.meters.exists() else ""
        link = LinkEnd(options.link, rejoins=options.control)
        with ExitStack() as stack:
            stack.callback(link.close)
            rules: RunningRules = (
                EmulatedOpenFlowSwitch(flows, groups, meters)
                if options.switch == EMULATED_SWITCH
                else stack.enter_context(OpenVSwitch(options.flows, options.groups, meters, options.ports))
            )
            process = RulesProcess(LabelledSwitch(rules, names, labels), link)

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


def _run_until_interrupt(
    process: RulesProcess, orders: Callable[[], Orders] | None, write_report: Callable[[], None]
) -> bool:
    """Run rules; whether that was interrupted: what it has done by then is kept."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        process.run(orders, write_report)
    except KeyboardInterrupt:
        return True
    finally:
        signal.signal(signal.SIGTERM, before)
    return False


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="openflow-rules", description="Runs the rules of a rack's switch.")
    parser.add_argument("--switch", choices=OPENFLOW_SWITCHES, default=EMULATED_SWITCH)
    for name in ("flows", "groups", "names", "labels", "meters", "report"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--ports", type=int, required=True, help="of the switch, the world's among them")
    parser.add_argument("--link", type=Path, required=True)
    parser.add_argument("--control", action="store_true")
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

    def replace_rules(self, flows: str) -> None:
        """Go on with other rules, which count from 0; what was learnt stays.

        Raises InputError where it refuses them: then it goes on with those of before.
        """


class LabelledSwitch:
    """A switch with ports from 0 on, the world's, as the programmable one of the rack has them."""

    def __init__(self, rules: RunningRules, names: str, labels: str) -> None:
        self._switch, self.program = rules, rules.program
        self._names = names
        self._labels = pipeline.read_labels(labels)
        self._unknown = 0
        self._next: tuple[str, str] | None = None
        self._past = Counter[str]()

    def prepare(self, folder: Path) -> bool:
        """Read the rules of a folder, and their names; false after printing what is wrong."""
        self._next = None
        try:
            flows, names = _text(folder / "flows"), _text(folder / "names")
            if isinstance(self._switch, OpenVSwitch):
                self._switch.check_rules(folder / "flows")
            self._next = flows, names
        except InputError as error:
            print(error, file=sys.stderr)
            return False
        return True

    def swap(self) -> bool:
        """Go on with the rules that were prepared; what NFs have counted stays, what rules have does not.

        False after printing why the switch refuses them: then it goes on with those of before.
        """
        if self._next is None:
            return False
        counted = self._switch.counters(self._names)
        (flows, names), self._next = self._next, None
        try:
            self._switch.replace_rules(flows)
        except InputError as error:
            print(error, file=sys.stderr)
            return False
        for name, count in counted.items():
            words = name.split()
            if name != RATE_LIMIT_NAME:  # which meters count, and they stay
                self._past[name if words[0] == "way" else " ".join(words[:2])] += count
        self._names = names
        return True

    def process(self, frame: bytes, port: int, time_us: int) -> tuple[int, bytes] | None:
        """The port by which a frame leaves, and the frame there; None if it is dropped.

        `time_us`: when it arrived.
        """
        arrived = frame if port == 0 else pipeline.with_vlan_label(frame, self._labels)
        if arrived is None:
            self._unknown += 1
            return None
        left = self._switch.process(arrived, port + pipeline.WORLD_PORT, time_us)
        if not left:
            return None
        [(to, made)] = left
        served = made if to == pipeline.WORLD_PORT else pipeline.with_service_header(made, self._labels)
        return None if served is None else (to - pipeline.WORLD_PORT, served)

    def counters(self) -> Counter[str]:
        """What rules counted: `NF sent`, `NF dropped` and `reason REASON`."""
        counted = self._switch.counters(self._names)
        counted.update(self._past)
        counted[f"reason {pipeline.UNKNOWN_PATH}"] += self._unknown
        if not counted[f"reason {pipeline.TOO_MANY_TAGS}"]:
            del counted[f"reason {pipeline.TOO_MANY_TAGS}"]
        return counted


if __name__ == "__main__":
    sys.exit(main())
