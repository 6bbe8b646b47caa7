"""A P4 program that runs: its parser, control and deparser, its tables and registers."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.reference.p4.checker.reader import Node, parse_program

REGISTER_BITS = 64
MAX_SHIFT = 4096  # a shift by more is one by this: all bits are gone

COMPARISONS: Mapping[str, Callable[[int, int], int]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda value, by: value << min(by, MAX_SHIFT),
    ">>": lambda value, by: value >> min(by, MAX_SHIFT),
}


@dataclass
class PacketRun:
    """A packet on its way through the program."""

    frame: bytes
    port: int
    at: int = 0
    fields: dict[str, int] = field(default_factory=dict)
    varying: dict[str, bytes] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    arguments: Mapping[str, int] = field(default_factory=dict)
    missed: tuple[str, tuple[int, ...]] = ("", ())
    sent_to: int | None = None
    short: bool = False

    def read(self, declared: Sequence[Node], prefix: str) -> int:
        """Read the fields of a header that begins here; its bytes."""
        left: int = sum(each.width for each in declared)
        size = left // 8
        word = int.from_bytes(self.frame[self.at : self.at + size].ljust(size, b"\0"), "big")
        for each in declared:
            left -= each.width
            self.fields[prefix + each.name] = word >> left & ((1 << each.width) - 1)
        return size


Value = Callable[[PacketRun], int]
Step = Callable[[PacketRun], None]


class ExpressionRun:
    """Makes functions of expressions.

    `types`: the fields of the types of headers. `unset`: the bits of fields that nothing was written to. `widths`: bits
    of fields, by their path, and of the arguments of the action that is read. `registers`: their numbers. `red`: meters
    that are over their rate.
    """

    def __init__(self, program: Node, unset: int) -> None:
        self.types = {header_type.name: header_type.fields for header_type in program.header_types}
        self.unset = unset
        self.red = set[int]()
        self.widths: dict[str, int] = {}
        self.registers = {register.name: [register.first.value] * register.size.value for register in program.registers}

    def value(self, of: Node) -> tuple[Value, int | None]:
        """How to compute an expression, and its width; None: without one."""
        match of:
            case Node("NumberLiteral", value=value):
                return lambda packet: value, None
            case Node("PathUse", path="istd.input_port"):
                return lambda packet: packet.port, 32
            case Node("PathUse", path=path):
                unset, width = self.unset & ((1 << self.widths[path]) - 1), self.widths[path]
                if "." not in path:
                    return lambda packet: packet.arguments[path], width
                return lambda packet: packet.fields.get(path, unset), width
            case Node("CastUse", width=width, operand=operand):
                mask, value_of = (1 << width) - 1, self.value(operand)[0]
                return lambda packet: value_of(packet) & mask, width
            case Node("BinaryUse", sign=sign, left=left, right=right):
                return self._binary(sign, self.value(left), self.value(right)[0])
            case Node("ValidityUse", header=header):
                return lambda packet: header in packet.valid, None
            case Node("MeterUse", index=index):
                return lambda packet: index.value in self.red, None
            case Node("RegisterRead", register=register, index=index):
                numbers, place = self.registers[register], self.value(index)[0]
                return lambda packet: numbers[place(packet)], REGISTER_BITS
            case _:
                return self._lookahead(self.types[of.type], of.field)

    def _lookahead(self, declared: Sequence[Node], name: str) -> tuple[Value, int]:
        def ahead(packet: PacketRun) -> int:
            packet.read(declared, "ahead.")
            return packet.fields[f"ahead.{name}"]

        return ahead, next(each.width for each in declared if each.name == name)

    def _binary(self, sign: str, left: tuple[Value, int | None], right: Value) -> tuple[Value, int | None]:
        left_value, width = left
        if sign in COMPARISONS:
            compare = COMPARISONS[sign]
            return lambda packet: compare(left_value(packet), right(packet)), None
        assert width is not None, "the left side of an operator has a width"
        mask, compute = (1 << width) - 1, OPERATORS[sign]
        return lambda packet: compute(left_value(packet), right(packet)) & mask, width


def fits(values: Node, value: int) -> bool:
    """Whether a value lies in a set."""
    return bool(value == values.value if values.mask is None else value & values.mask == values.value)


def _prefix_length(values: Node) -> int:
    """Bits that decide, of a mask that is a prefix."""
    return REGISTER_BITS if values.mask is None else int(values.mask).bit_count()


MAX_STATES = 100  # that a packet passes in the parser
ChosenAction = tuple[str, Mapping[str, int]]  # an action and its arguments


@dataclass(frozen=True)
class _RunTable:
    """A table as it is looked up: by `exact` if that is not empty, else by the first of the entries that fits."""

    keys: Sequence[Value]
    entries: Sequence[tuple[Sequence[Node], ChosenAction]]
    exact: Mapping[tuple[int, ...], ChosenAction]
    default: ChosenAction
    learns: bool


class P4Machine(ExpressionRun):
    """A program with its tables and registers.

    `text`: that the checker accepts. `unset`: the bits that metadata has, and fields of headers that are not valid,
    until they are written: P4 leaves them open, so a program must do the same whatever they are. Raises P4SyntaxError
    when the text is no program that is emitted.
    """

    def __init__(self, text: str, unset: int = 0) -> None:
        program = parse_program(text)
        super().__init__(program, unset)
        self.learnt: dict[str, dict[tuple[int, ...], ChosenAction]] = {}
        self._headers = {header.name: self.types[header.type] for header in program.headers}
        self.widths |= {f"meta.{each.name}": each.width for each in program.metadata}
        for header, declared in self._headers.items():
            self.widths |= {f"hdr.{header}.{each.name}": each.width for each in declared}
        self._states = {state.name: self._state(state) for state in program.states}
        self._parameters = {action.name: [each.name for each in action.parameters] for action in program.actions}
        self._actions = {action.name: self._action(action) for action in program.actions}
        self._tables = {table.name: self._table(table) for table in program.tables}
        self._apply = self._block(program.body)
        self._emitted = [emit.header for emit in program.emits]

    def process(self, frame: bytes, port: int) -> tuple[int, bytes] | None:
        """What becomes of a frame from a port: the port where it leaves, and the frame; None if it is dropped."""
        packet = PacketRun(frame, port)
        self._parse(packet)
        self._apply(packet)
        if packet.sent_to is None:
            return None
        parts = [self._bytes(packet, header) for header in self._emitted if header in packet.valid]
        return packet.sent_to, b"".join(parts) + frame[packet.at :]

    # the parser and the deparser

    def _parse(self, packet: PacketRun) -> None:
        state = "start"
        for _ in range(MAX_STATES):
            if state == "accept" or packet.short:
                return
            extract, transition = self._states[state]
            if extract is not None:
                extract(packet)
            state = transition(packet)
        raise AssertionError("the parser does not end")

    def _state(self, state: Node) -> tuple[Step | None, Callable[[PacketRun], str]]:
        keys = [self.value(key)[0] for key in state.keys]

        def transition(packet: PacketRun) -> str:
            found = [key(packet) for key in keys]
            for case in state.cases:
                if all(map(fits, case.values, found)):
                    return str(case.state)
            return str(state.otherwise)

        return None if state.extract is None else self._extract(state.extract), transition

    def _extract(self, of: Node) -> Step:
        header = of.header
        length = None if of.length is None else self.value(of.length)[0]

        def step(packet: PacketRun) -> None:
            if length is not None:
                size = length(packet) // 8
                packet.varying[header] = packet.frame[packet.at : packet.at + size]
            else:
                size = packet.read(self._headers[header], f"hdr.{header}.")
            packet.short = packet.at + size > len(packet.frame)
            if not packet.short:
                packet.at += size
                packet.valid.add(header)

        return step

    def _bytes(self, packet: PacketRun, header: str) -> bytes:
        word, total = 0, 0
        for each in self._headers[header]:
            if each.word == "varbit":
                return packet.varying.get(header, b"")
            unset = self.unset & ((1 << each.width) - 1)
            word = word << each.width | packet.fields.get(f"hdr.{header}.{each.name}", unset)
            total += each.width
        return word.to_bytes(total // 8, "big")

    # the control

    def _action(self, action: Node) -> Step:
        outside = self.widths
        self.widths = outside | {each.name: each.width for each in action.parameters}
        found = self._block(action.body)
        self.widths = outside
        return found

    def _table(self, table: Node) -> _RunTable:
        entries = [(entry.values, self._choose(entry.action)) for entry in table.entries]
        kinds = [element.match_kind for element in table.key]
        if kinds == ["lpm"]:
            entries.sort(key=lambda entry: _prefix_length(entry[0][0]), reverse=True)
        exact = {tuple(values.value for values in sets): chosen for sets, chosen in entries}
        return _RunTable(
            [self.value(element.field)[0] for element in table.key],
            entries,
            exact if set(kinds) == {"exact"} else {},
            self._choose(table.default),
            table.learns,
        )

    def _choose(self, call: Node) -> ChosenAction:
        values = [argument.value for argument in call.arguments]
        return call.name, dict(zip(self._parameters[call.name], values, strict=True))

    def _look_up(self, name: str) -> Step:
        def step(packet: PacketRun) -> None:
            table = self._tables[name]
            key = tuple(value(packet) for value in table.keys)
            packet.missed = name, key
            action, packet.arguments = self._find(name, table, key)
            self._actions[action](packet)

        return step

    def _find(self, name: str, table: _RunTable, key: tuple[int, ...]) -> ChosenAction:
        if table.learns:
            return self.learnt.get(name, {}).get(key, table.default)
        if table.exact:
            return table.exact.get(key, table.default)
        for sets, chosen in table.entries:
            if all(map(fits, sets, key)):
                return chosen
        return table.default

    def _block(self, body: Sequence[Node]) -> Step:
        steps = [self._statement(statement) for statement in body]

        def step(packet: PacketRun) -> None:
            for inner in steps:
                inner(packet)

        return step

    def _statement(self, statement: Node) -> Step:
        match statement:
            case Node("Assignment", target=target, value=value):
                return self._assign(target.path, self.value(value)[0])
            case Node("ValidityChange", header=header, valid=valid):
                return self._validate(header, valid == "setValid")
            case Node("RegisterWrite", register=register, index=index, value=value):
                return self._write(self.registers[register], self.value(index)[0], self.value(value)[0])
            case Node("EntryLearning"):
                return self._learn(statement.action, [self.value(value)[0] for value in statement.values])
            case Node("TableApply", table=table):
                return self._look_up(table)
            case Node("PacketDrop"):
                return lambda packet: None
            case Node("PacketSend", port=port):
                return self._send(self.value(port)[0])
            case _:
                condition, yes, no = statement.condition, statement.yes, statement.no
                return self._if(self.value(condition)[0], self._block(yes), self._block(no))

    def _assign(self, to: str, value: Value) -> Step:
        mask = (1 << self.widths[to]) - 1

        def step(packet: PacketRun) -> None:
            packet.fields[to] = value(packet) & mask

        return step

    def _if(self, condition: Value, yes: Step, no: Step) -> Step:
        def step(packet: PacketRun) -> None:
            (yes if condition(packet) else no)(packet)

        return step

    def _validate(self, header: str, valid: bool) -> Step:
        """What a header held before it became valid, or invalid, is gone."""
        paths = [f"hdr.{header}.{each.name}" for each in self._headers[header]]

        def step(packet: PacketRun) -> None:
            if valid == (header in packet.valid):
                return
            for path in paths:
                packet.fields.pop(path, None)
            packet.valid ^= {header}

        return step

    def _send(self, port: Value) -> Step:
        def step(packet: PacketRun) -> None:
            packet.sent_to = port(packet)

        return step

    def _write(self, numbers: list[int], place: Value, value: Value) -> Step:
        def step(packet: PacketRun) -> None:
            numbers[place(packet)] = value(packet)

        return step

    def _learn(self, action: str, items: Sequence[Value]) -> Step:
        def step(packet: PacketRun) -> None:
            table, key = packet.missed
            arguments = dict(zip(self._parameters[action], (item(packet) for item in items), strict=True))
            self.learnt.setdefault(table, {})[key] = action, arguments

        return step
