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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from placer.rack.compiler.openflow import pipeline
from placer.rack.compiler.openflow.emulated_switch import EmulatedOpenFlowSwitch
from placer.rack.compiler.openflow.headers import FrameType, has_too_many_tags, read_headers
from placer.rack.compiler.openflow.link_end import CaptureWriter, LinkEnd, LinkError, MessageKind, read_capture
from placer.rack.compiler.openflow.open_vswitch import EMULATED_SWITCH, OPENFLOW_SWITCHES, OpenVSwitch
from profiles import InputError

INTERRUPTED_STATUS = 130
QUIET_ROUNDS = 8  # as `nf-switch` has them: a server and its SmartNIC exchange packets that the switch does not see
BATCH_PACKETS, MOST_WAITING = 32, 512
IDLE_S, PATIENCE_S = 50e-6, 30.0
LOOK_S = 0.1  # how often an idle switch looks whether the other processes are still there


class SwitchProcess:
    """A switch between a capture and links; ports are 0 for the world, then the links in their order."""

    def __init__(self, switch: LabelledSwitch, links: Sequence[tuple[str, LinkEnd]], out: CaptureWriter) -> None:
        self._switch, self._links, self._out = switch, links, out
        self._answers = [0] * len(links)
        self._malformed = self._received = self._sent = 0

    def run(self, packets: Iterator[tuple[int, bytes]]) -> None:
        """Until all packets are through.

        Raises LinkError when a process at the other end does not come, or ends too early.
        """
        self._meet()
        number = quiet = moved_packets = 0
        ended, looked = False, time.monotonic()
        while quiet < QUIET_ROUNDS:
            moved = self._receive()
            if not ended and max((len(link.waiting) for _, link in self._links), default=0) < MOST_WAITING:
                ended = not self._read(packets)
                moved = True
            if moved or any(link.waiting for _, link in self._links):
                continue
            if any(answer != number for answer in self._answers):
                looked = self._idle(looked)
                continue
            now = sum(link.sent + link.received for _, link in self._links)
            quiet = quiet + 1 if number and now == moved_packets else 0
            number, moved_packets = number + 1, now
            for _, link in self._links if quiet < QUIET_ROUNDS else ():
                link.send(MessageKind.FLUSH, 0, number.to_bytes(8, sys.byteorder))
            quiet = quiet if self._links else QUIET_ROUNDS
        for _, link in self._links:
            link.send(MessageKind.END)
            link.pump()

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

    def _read(self, packets: Iterator[tuple[int, bytes]]) -> bool:
        """Let some packets in from the world; False at the end."""
        for _ in range(BATCH_PACKETS):
            packet = next(packets, None)
            if packet is None:
                return False
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
            self._sent += 1
            self._out.write(time_us, made)
        else:
            self._links[to - 1][1].send(MessageKind.PACKET, time_us, made)

    def _idle(self, looked: float) -> float:
        """Sleep for a moment, and now and then look whether the others are there."""
        time.sleep(IDLE_S)
        if time.monotonic() - looked < LOOK_S:
            return looked
        for _, link in self._links:
            if not link.is_alive:
                raise LinkError(f"{link.path}: the process at the other end is gone")
        return time.monotonic()

    def report(self) -> dict[str, Any]:
        """The counters, in the form of `nf-switch`."""
        functions: dict[str, Counter[str]] = {}
        dropped = {"malformed": self._malformed}
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
            "received": {"world": self._received, **{name: link.received for name, link in self._links}},
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
        packets = read_capture(options.source)
        for text in options.link:
            name, _, path = text.partition("=")
            links.append((name, LinkEnd(Path(path))))
        with ExitStack() as stack:
            rules: RunningRules = (
                EmulatedOpenFlowSwitch(flows, groups, meters)
                if options.switch == EMULATED_SWITCH
                else stack.enter_context(OpenVSwitch(options.flows, options.groups, meters, 1 + len(links)))
            )
            process = SwitchProcess(
                LabelledSwitch(rules, names, labels), links, stack.enter_context(CaptureWriter(options.target))
            )
            interrupted = _run_until_interrupt(process, packets)
            report = {**process.report(), "interrupted": interrupted}
        options.report.write_text(json.dumps(report) + "\n", encoding="utf-8")
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


def _run_until_interrupt(process: SwitchProcess, packets: Iterator[tuple[int, bytes]]) -> bool:
    """Run a switch; whether it was interrupted: what it has done by then is kept."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        process.run(packets)
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
    parser.add_argument("--in", type=Path, required=True, dest="source")
    parser.add_argument("--out", type=Path, required=True, dest="target")
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
        self._labels = pipeline.read_labels(labels)
        self._unknown = 0

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
        counted[f"reason {pipeline.UNKNOWN_PATH}"] += self._unknown
        if not counted[f"reason {pipeline.TOO_MANY_TAGS}"]:
            del counted[f"reason {pipeline.TOO_MANY_TAGS}"]
        return counted


if __name__ == "__main__":
    sys.exit(main())
