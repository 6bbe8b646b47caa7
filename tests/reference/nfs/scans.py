"""PacketFilter, FlowMonitor and NIDS: what payloads match, decided by Python's own engine.

The expressions are data: they stand nowhere but in the table of nfs/core/rules.c, and are read from there. What they
match is decided here by `re`, not by the function's engine.
"""

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from tests.reference.nfs.flows import FlowTable
from tests.reference.nfs.headers import ACK, RST, SYN, TCP, URG, Flow, Headers, flow_of
from tests.reference.nfs.ipv6 import OPAQUE, read_ip_headers
from tests.reference.nfs.model import Bounds, FirstRun, FunctionModel, Left
from tests.reference.nfs.streams import Stream, Taken, stream_frames
from tests.reference.nfs.traffic import NUMBERS, Mix, Sent, mixed_frames, random_payload

TABLE = Path(__file__).resolve().parents[3] / "nfs" / "core" / "rules.c"
CLASSES = ("peer_to_peer", "remote", "chat", "mail", "media", "store", "web", "network")
ENTRY = re.compile(r'\{"([\w-]+)", RULE_(\w+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\}')
BUFFER = 2048  # bytes of a frame in its first buffer: of a longer frame only these are scanned
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True)
class Rule:
    """An expression, its class, and bytes that match it."""

    name: str
    kind: str
    expression: re.Pattern[bytes]
    witness: bytes


def read_strings(strings: str) -> bytes:
    """The bytes of string literals in C, one behind the other."""
    return b"".join(ast.literal_eval("b" + string) for string in STRING.findall(strings))


def find_literal(expression: bytes) -> bytes:
    """The longest run of plain characters outside of groups, classes and repetitions."""
    best = run = b""
    at, depth = 0, 0
    while at < len(expression):
        char = expression[at : at + 1]
        step, plain = 1, char.isalnum() or char in b" -_/:=<>,;@\"'!~%&"
        if char == b"\\":
            step = 4 if expression[at + 1 : at + 2] == b"x" else 2
            escaped = expression[at + 1 : at + step]
            plain = step == 4 or not escaped.isalnum()
            char = bytes([int(escaped[1:], 16)]) if step == 4 else escaped
        elif char == b"[":
            step, plain = expression.index(b"]", at + 2) - at + 1, False
        elif char == b"{":
            step, plain = expression.index(b"}", at) - at + 1, False
        elif char in b"()":
            depth, plain = depth + (1 if char == b"(" else -1), False
        if expression[at + step : at + step + 1] in (b"?", b"*", b"{"):
            plain = False
        run = run + char if plain and depth == 0 else b""
        best = max(best, run, key=len)
        at += step
    return best


def find_literals(expression: bytes) -> list[bytes]:
    """Bytes of which every match has at least one: a run outside of groups, or one from each choice of a group."""
    if b"|" in re.sub(rb"\([^()]*\)|\[[^]]*\]|\\.", b"", expression):
        return [b""]
    groups = re.findall(rb"(?<!\\)\(((?!\?)[^()\\]*)\)(?![?*{])", expression)
    choices = [[find_literal(choice) for choice in group.split(b"|")] for group in groups]
    return max([[find_literal(expression)], *choices], key=lambda literals: min(len(literal) for literal in literals))


@cache
def rules() -> tuple[Rule, ...]:
    """All rules of the table."""
    return tuple(
        Rule(name, kind.lower(), re.compile(read_strings(expression), re.DOTALL), read_strings(witness))
        for name, kind, expression, witness in ENTRY.findall(TABLE.read_text(encoding="utf-8"))
    )


@cache
def searches() -> tuple[list[tuple[bytes, Rule]], list[tuple[bytes, Rule]]]:
    """Literals and their rules; those of rules that ignore case are in lower case, and come second."""
    found: tuple[list[tuple[bytes, Rule]], list[tuple[bytes, Rule]]] = [], []
    for rule in rules():
        ignores = bool(rule.expression.flags & re.IGNORECASE)
        for literal in find_literals(rule.expression.pattern):
            found[ignores].append((literal.lower() if ignores else literal, rule))
    return found


def find_matches(payload: bytes) -> list[Rule]:
    exact, ignoring = searches()
    lower = payload.lower()
    likely = [rule for literal, rule in exact if literal in payload]
    likely += [rule for literal, rule in ignoring if literal in lower]
    return [rule for rule in dict.fromkeys(likely) if rule.expression.search(payload)]


def scan_payload(rng: random.Random) -> bytes:
    """A payload that often matches a rule, or is close to one."""
    chance, payload = rng.random(), random_payload(rng)
    if chance < 0.6:
        return payload
    rule = rng.choice(rules()).witness
    if chance < 0.7:
        at = rng.randrange(len(rule))
        rule = rule[:at] + bytes([rule[at] ^ 1 << rng.randrange(8)]) + rule[at + 1 :]
    if chance > 0.95:
        rule += rng.choice(rules()).witness
    at = rng.randrange(len(payload) + 1)
    return payload[:at] + rule + payload[at:]


class ScanModel(FunctionModel):
    """What functions that scan UDP, TCP and ICMP payloads have in common."""

    def prepare(self) -> None:
        self.counted.update(dict.fromkeys(("other", "malformed", "scanned", "partial", "fragments", "matches"), 0))

    def mix(self) -> Mix:
        return Mix(flows=20000, payload=scan_payload, ipv6=0.5)

    def scan(self, frame: bytes, headers: Headers, before: bytes = b"", behind: bytes = b"") -> tuple[list[Rule], bool]:
        """The rules that an IP packet matches with what is around it, and whether bytes of it were not scanned."""
        self.counted["fragments"] += headers.later
        if headers.payload == 0:
            return [], headers.later
        whole = frame[headers.payload : headers.end]
        scanned = frame[headers.payload : min(headers.end, BUFFER)]
        partial = len(scanned) < len(whole)
        self.counted["partial"] += partial
        self.counted["scanned"] += len(scanned) > 0
        matched = find_matches(before + scanned + behind) if scanned else []
        self.counted["matches"] += len(matched)
        return matched, headers.later or partial

    def take(self, sent: Sent) -> Left:
        headers = read_ip_headers(sent.frame)
        hidden = headers.protocol in OPAQUE and self.settings.get("unknown", self.unknown) == "drop"
        if headers.kind not in ("ipv4", "ipv6") or hidden:
            return [sent.frame] * self.passes(headers.kind), []
        return [sent.frame] * self.lets_pass(sent, headers), []

    def lets_pass(self, sent: Sent, headers: Headers) -> bool:
        """Scan an IP packet; whether it passes."""
        raise NotImplementedError

    def counters(self) -> dict[str, int | Bounds]:
        return {**self.counted, "failed": 0}


class StreamScanModel(ScanModel):
    """A segment of TCP is scanned with those bytes before and behind it that came earlier.

    A function that drops packets frees those of which it is not known what their receiver makes of them. No stream is
    given up for another one: there are fewer than `streams`.
    """

    AROUND: ClassVar[int] = 147
    """One less than the widest rule, that of XMPP, has."""
    KEPT: ClassVar[int] = 1024

    def prepare(self) -> None:
        super().prepare()
        self.counted.update(dict.fromkeys(("differing", "outside", "behind"), 0))
        self.streams: dict[Flow, Stream] = {}

    def traffic(self, seed: int, n: int, run: FirstRun) -> Iterator[Sent]:
        if self.number("streams", 4096) == 0:
            return mixed_frames(seed, n, self.mix())
        mix = Mix(flows=1000, payload=scan_payload, protocols=(TCP,) * 9 + (17,), ipv6=0.5)
        return stream_frames(seed, n, mix, pauses=self.number("timeout_s", 86400) > 60)  # few flows age at once

    def drops(self) -> bool:
        """Whether packets that match are dropped."""
        return True

    def count(self, counter: str) -> tuple[bytes, bytes] | None:
        """Count a segment that is freed, or scanned by itself."""
        self.counted[counter] += 1
        return None if self.drops() else (b"", b"")

    def find_stream(self, key: Flow, sequence: int, opens: bool, now_us: int) -> Stream | None:
        """The stream of a segment, which may begin with it; None if its receiver may ignore the segment."""
        stream = self.streams.get(key)
        if stream and opens and stream.ignores(sequence, now_us):
            return None
        if not stream or (opens and sequence != stream.origin):
            stream = self.streams[key] = Stream(sequence, now_us, kept=self.KEPT)
        stream.begun |= opens
        return stream

    def find_around(self, sent: Sent, headers: Headers) -> tuple[bytes, bytes] | None:
        """What is scanned before and behind a packet; None if it is freed."""
        frame = sent.frame
        payload = frame[headers.payload : headers.end]
        whole = headers.protocol == TCP and headers.payload and not headers.fragment and headers.end <= BUFFER
        flags = frame[headers.l4 + 13] if whole else 0
        opens = bool(flags & SYN)
        if self.number("streams", 4096) == 0 or not whole or not (payload or opens):
            return b"", b""
        if flags & RST:  # whose bytes no host takes, as those without ACK
            return b"", b""
        if not flags & (SYN | ACK) or flags & URG:
            return self.count("outside")
        key = flow_of(frame, headers)
        sequence = (int.from_bytes(frame[headers.l4 + 4 : headers.l4 + 8], "big") + opens) % NUMBERS
        stream = self.find_stream(key, sequence, opens, sent.time_us)
        if not stream:
            return self.count("outside")
        gone, rest = (stream.first - sequence) % NUMBERS, payload
        asks = gone == len(payload) == 1  # whether the other end is there
        behind = 0 < gone < NUMBERS // 2
        if behind and (asks or gone <= (stream.first - stream.origin) % NUMBERS):
            rest = payload[gone:]
            sequence = (sequence + len(payload) - len(rest)) % NUMBERS
            behind = False
            self.counted["behind"] += not rest
        taken = Taken.OUTSIDE if behind else stream.take(sequence, rest, read_all)
        if taken is Taken.OUTSIDE:
            alone = self.count("outside")
            if stream.begun and (self.drops() or stream.goes_on(sent.time_us)):
                return alone
            stream = self.streams[key] = Stream(sequence, sent.time_us, kept=self.KEPT)
            stream.take(sequence, rest, read_all)
        elif taken is Taken.DIFFERING and self.count("differing") is None:
            return None
        stream.last_us = sent.time_us
        at = (sequence - stream.first) % NUMBERS
        before = stream.before(at) if rest == payload else b""
        return (before[-self.AROUND :], stream.behind(at + len(rest))[: self.AROUND]) if rest else (b"", b"")

    def counters(self) -> dict[str, int | Bounds]:
        return {**super().counters(), "unfollowed": 0, "given_up": 0}


def read_all(stream: Stream) -> str:
    """Read what has come."""
    stream.read = len(stream.text)
    return "waits"


class PacketFilterModel(StreamScanModel):
    """Drops packets whose payload matches a rule, and those that could not be scanned completely."""

    nf = "PacketFilter"
    unknown = "drop"
    variants: ClassVar[tuple[dict[str, str], ...]] = ({}, {"streams": "0"})

    def lets_pass(self, sent: Sent, headers: Headers) -> bool:
        around = self.find_around(sent, headers)
        if around is None:
            return False
        matched, missed = self.scan(sent.frame, headers, *around)
        drops = bool(matched) or missed
        self.counted["dropped"] += drops
        return not drops


class FlowMonitorModel(ScanModel):
    """Counts packets, bytes and rule matches of every flow, with aging."""

    nf = "FlowMonitor"
    variants: ClassVar[tuple[dict[str, str], ...]] = ({"timeout_s": "2"},)

    def prepare(self) -> None:
        super().prepare()
        self.flows = FlowTable.of(self)

    def lets_pass(self, sent: Sent, headers: Headers) -> bool:
        seen = self.flows.count(flow_of(sent.frame, headers), len(sent.frame), sent.time_us)
        if self.scan(sent.frame, headers)[0] and not seen.mark:
            seen.mark = 1
            self.counted["matching_flows"] += 1
        return True

    def counters(self) -> dict[str, int | Bounds]:
        return {**super().counters(), **self.flows.counters()}


class NidsModel(StreamScanModel):
    """Alerts about flows whose payloads match rules, once per flow and class.

    A packet that matches a rule of the class to drop is dropped, and one that is not scanned completely. A flow that is
    removed may raise alerts again.
    """

    nf = "NIDS"
    variants = (
        {"timeout_s": "2", "dropped_class": "7"},
        {"timeout_s": "0.05", "flows": "32768", "streams": "0"},
        {"flows": "900", "streams": "0"},
        {"timeout_s": "2"},
        {"timeout_s": "86400"},
    )

    def prepare(self) -> None:
        super().prepare()
        self.flows = FlowTable.of(self)
        if self.number("dropped_class", 0):
            self.settings = {"unknown": "drop", **self.settings}
        self.counted.update({"alerts": 0, "dropped": 0, **{f"alerts_{kind}": 0 for kind in CLASSES}})

    def lets_pass(self, sent: Sent, headers: Headers) -> bool:
        seen = self.flows.count(flow_of(sent.frame, headers), len(sent.frame), sent.time_us)
        around = self.find_around(sent, headers)
        if around is None:
            return False
        matched, missed = self.scan(sent.frame, headers, *around)
        kinds = {rule.kind for rule in matched}
        for kind in kinds:
            bit = 1 << CLASSES.index(kind)
            if not seen.mark & bit:
                seen.mark |= bit
                self.counted["alerts"] += 1
                self.counted[f"alerts_{kind}"] += 1
        dropped = self.number("dropped_class", 0)
        drops = dropped > 0 and (missed or CLASSES[dropped - 1] in kinds)
        self.counted["dropped"] += drops
        return not drops

    def drops(self) -> bool:
        return self.number("dropped_class", 0) > 0

    def counters(self) -> dict[str, int | Bounds]:
        return {**super().counters(), **self.flows.counters()}
