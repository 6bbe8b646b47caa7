"""Runs the text of a DPDK pipeline: an interpreter of `.spec` files and their entries, for what the compiler writes.

It reads the text, not the program that the text was made from, and shares no code with what writes it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.reference.swx.spec_reader import SpecAction, SpecTable, SpecText, read_spec

MOST_STEPS = 100_000  # of one packet: the pipeline has no loops


@dataclass
class _Packet:
    """A packet on its way through the pipeline."""

    frame: bytes
    port: int
    at: int = 0
    fields: dict[str, int] = field(default_factory=dict)
    varying: dict[str, bytes] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    emitted: list[bytes] = field(default_factory=list)
    missed: tuple[int, ...] = ()
    learner: str = ""
    sent_to: int | None = None


Step = Callable[[_Packet], str | None]  # does one instruction; the label to go to, if it jumps
END = "end"  # in place of a label


class Pipeline:
    """A pipeline with its tables and registers. Raises SpecError when a text cannot be read."""

    def __init__(self, spec: str, entries: str) -> None:
        self.spec: SpecText = read_spec(spec, entries)
        self.registers = {name: [first] * size for name, (size, first) in self.spec.registers.items()}
        self.learnt: dict[str, dict[tuple[int, ...], tuple[str, dict[str, int]]]] = {}
        self._exact = {
            table.name: {tuple(value for value, _ in one.key): (one.action, one.arguments) for one in table.entries}
            for table in self.spec.tables.values()
        }
        self._actions = {name: self._steps(action.code) for name, action in self.spec.actions.items()}
        self._apply = self._steps(self.spec.apply)

    def process(self, frame: bytes, port: int, time_us: int = 0) -> tuple[int, bytes] | None:
        """What becomes of a frame from a port: the port where it leaves, and the frame; None if it is dropped."""
        if "arrival" in self.spec.headers:
            frame = time_us.to_bytes(8, "big") + len(frame).to_bytes(4, "big") + frame
        packet = _Packet(frame, port)
        self._run(self._apply, packet)
        if packet.sent_to is None:
            return None
        return packet.sent_to, b"".join(packet.emitted) + frame[packet.at :]

    def _run(self, code: tuple[list[Step], dict[str, int]], packet: _Packet) -> None:
        steps, labels = code
        at = 0
        for _ in range(MOST_STEPS):
            if at == len(steps):
                return
            to = steps[at](packet)
            if to == END:
                return
            at = at + 1 if to is None else labels[to]
        raise AssertionError("the pipeline does not end")

    def _steps(self, code: Sequence[tuple[str, list[str]]]) -> tuple[list[Step], dict[str, int]]:
        labels = {label: at for at, (label, _) in enumerate(code) if label}
        return [self._step(words) for _, words in code], labels

    def _step(self, words: list[str]) -> Step:
        name, *operands = words
        if name in ARITHMETIC:
            return self._compute(ARITHMETIC[name], *operands)
        if name in COMPARISONS:
            return self._jump_where(COMPARISONS[name], *operands)
        makers: dict[str, Callable[..., Step]] = {
            "rx": self._receive,
            "tx": self._transmit,
            "drop": lambda: lambda packet: END,
            "return": lambda: lambda packet: END,
            "extract": self._extract,
            "lookahead": self._look_ahead,
            "emit": self._emit,
            "validate": lambda header: lambda packet: packet.valid.add(header),
            "invalidate": lambda header: lambda packet: packet.valid.discard(header),
            "ckadd": lambda to, operand: self._change_checksum(to, operand, 1),
            "cksub": lambda to, operand: self._change_checksum(to, operand, -1),
            "table": self._table,
            "learn": self._learn,
            "regadd": self._add_to_register,
            "regrd": self._read_register,
            "regwr": self._write_register,
            "jmp": lambda to: lambda packet: to,
            "jmpv": lambda to, header: lambda packet: to if header in packet.valid else None,
            "jmpnv": lambda to, header: lambda packet: None if header in packet.valid else to,
        }
        return makers[name](*operands)

    # operands

    def _value(self, operand: str) -> Callable[[_Packet], int]:
        if operand[0].isdigit():
            number = int(operand, 0)
            return lambda packet: number
        return lambda packet: packet.fields.get(operand, 0)

    def _mask(self, name: str) -> int:
        return (1 << self.spec.bits[name]) - 1

    # instructions, each with its operands as text

    def _compute(self, operation: Operation, to: str, operand: str) -> Step:
        value, mask = self._value(operand), self._mask(to)

        def step(packet: _Packet) -> None:
            packet.fields[to] = operation(packet.fields.get(to, 0), value(packet)) & mask

        return step

    def _change_checksum(self, to: str, operand: str, sign: int) -> Step:
        """In ones' complement: the remainder modulo 65,535, as DPDK has it, which never writes 0."""
        value = self._value(operand)

        def step(packet: _Packet) -> None:
            sum_ = 0xFFFF - packet.fields.get(to, 0) + sign * value(packet)
            packet.fields[to] = (0xFFFF - sum_ % 0xFFFF) % 0xFFFF or 0xFFFF

        return step

    def _receive(self, to: str) -> Step:
        def step(packet: _Packet) -> None:
            packet.fields[to] = packet.port

        return step

    def _transmit(self, operand: str) -> Step:
        port = self._value(operand)

        def step(packet: _Packet) -> str:
            packet.sent_to = port(packet)
            return END

        return step

    def _extract(self, header: str, length: str = "") -> Step:
        size = self._value(length) if length else None

        def step(packet: _Packet) -> None:
            self._read(packet, header, size(packet) if size else None)
            packet.valid.add(header)

        return step

    def _read(self, packet: _Packet, header: str, length: int | None) -> None:
        """Reads the fields of a header, and goes past it."""
        for name, bits in self.spec.headers[header]:
            wide = bits // 8
            packet.fields[f"{header}.{name}"] = int.from_bytes(packet.frame[packet.at : packet.at + wide], "big")
            packet.at += wide
        if length is not None:
            packet.varying[header] = packet.frame[packet.at : packet.at + length]
            packet.at += length

    def _look_ahead(self, header: str) -> Step:
        def step(packet: _Packet) -> None:
            at = packet.at
            self._read(packet, header, None)
            packet.at = at
            packet.valid.add(header)  # as in DPDK

        return step

    def _emit(self, header: str) -> Step:
        def step(packet: _Packet) -> None:
            if header not in packet.valid:
                return
            for name, bits in self.spec.headers[header]:
                packet.emitted.append(packet.fields[f"{header}.{name}"].to_bytes(bits // 8, "big"))
            packet.emitted.append(packet.varying.get(header, b""))

        return step

    def _table(self, name: str) -> Step:
        table = self.spec.tables[name]
        keys = [self._value(key) for key in table.keys]

        def step(packet: _Packet) -> None:
            key = tuple(one(packet) for one in keys)
            packet.missed, packet.learner = key, name
            action, arguments = self._found(table, key)
            packet.fields.update({f"t.{argument}": value for argument, value in arguments.items()})
            self._run(self._actions[action], packet)

        return step

    def _found(self, table: SpecTable, key: tuple[int, ...]) -> tuple[str, dict[str, int]]:
        """The action for a key, with its arguments."""
        if table.is_learner:
            return self.learnt.get(table.name, {}).get(key, table.default)
        if not table.is_ternary:
            return self._exact[table.name].get(key, table.default)
        for entry in table.entries:
            if all(one & mask == wanted & mask for (wanted, mask), one in zip(entry.key, key, strict=True)):
                return entry.action, entry.arguments
        return table.default

    def _learn(self, action: str, *operands: str) -> Step:
        arguments = self._arguments(self.spec.actions[action], operands[0] if len(operands) > 1 else "")

        def step(packet: _Packet) -> None:
            values = {name: value(packet) for name, value in arguments.items()}
            self.learnt.setdefault(packet.learner, {})[packet.missed] = action, values

        return step

    def _arguments(self, action: SpecAction, first: str) -> dict[str, Callable[[_Packet], int]]:
        """The arguments of a learnt action: metadata fields that stand behind one another, from the first one on."""
        if not first:
            return {}
        at = self.spec.metadata.index(first)
        names = self.spec.metadata[at : at + len(action.arguments)]
        return {name: self._value(one) for name, one in zip(action.arguments, names, strict=True)}

    def _add_to_register(self, name: str, index: str, operand: str) -> Step:
        at, value = self._value(index), self._value(operand)

        def step(packet: _Packet) -> None:
            self.registers[name][at(packet)] += value(packet)

        return step

    def _write_register(self, name: str, index: str, operand: str) -> Step:
        at, value = self._value(index), self._value(operand)

        def step(packet: _Packet) -> None:
            self.registers[name][at(packet)] = value(packet)

        return step

    def _read_register(self, to: str, name: str, index: str) -> Step:
        at, mask = self._value(index), self._mask(to)

        def step(packet: _Packet) -> None:
            packet.fields[to] = self.registers[name][at(packet)] & mask

        return step

    def _jump_where(self, holds: Callable[[int, int], bool], to: str, one: str, other: str) -> Step:
        left, right = self._value(one), self._value(other)
        return lambda packet: to if holds(left(packet), right(packet)) else None


Operation = Callable[[int, int], int]
ARITHMETIC: dict[str, Operation] = {
    "mov": lambda before, value: value,
    "add": operator.add,
    "sub": operator.sub,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
}
COMPARISONS = {"jmpeq": operator.eq, "jmpneq": operator.ne, "jmplt": operator.lt, "jmpgt": operator.gt}
