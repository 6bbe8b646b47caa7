"""A P4 program that runs: its parser, control and deparser, its tables and registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from placer.metacompiler.p4.checker import parsed
from placer.metacompiler.p4.checker.syntax import tree
from placer.metacompiler.p4.checker.syntax.printer import printed_expression
from placer.metacompiler.p4.run.expressions import ExpressionRun, PacketRun, Step, Value, refusal, type_name
from placer.metacompiler.p4.run.operators import ValueTest, value_test, width_of

MOST_STATES = 100
"""That a packet passes in the parser."""


@dataclass(frozen=True)
class _RunTable:
    """A table as it is looked up."""

    keys: Sequence[Value]
    kinds: Sequence[str]
    entries: Sequence[tuple[Sequence[ValueTest], str, Mapping[str, int]]]
    exact: Mapping[tuple[int, ...], tuple[str, Mapping[str, int]]]
    default: tuple[str, Mapping[str, int]]
    learns: bool


class P4Machine(ExpressionRun):
    """A program with its tables and registers.

    Parameters
    ----------
    text
        That the checker accepts.
    unset
        The bits that metadata has, and fields of headers that are not valid, until they are written: P4 leaves them
        open, so a program must do the same whatever they are.

    Raises
    ------
    P4SyntaxError, NotRun
        When the text is no program, or uses what is not interpreted.
    """

    def __init__(self, text: str, unset: int = 0) -> None:
        program = parsed(text)
        types = {one.name: one for one in program.declarations if isinstance(one, tree.FieldsDeclaration)}
        super().__init__(types, unset)
        blocks = [
            one for one in program.declarations if isinstance(one, tree.ParserDeclaration | tree.ControlDeclaration)
        ]
        parser, _, main, deparser = blocks
        self.learnt: dict[str, dict[tuple[int, ...], tuple[str, Mapping[str, int]]]] = {}
        self._headers = {one.name: self.types[type_name(one.type)] for one in self.types["headers_t"].fields}
        self.widths |= {f"meta.{one.name}": width_of(one.type) for one in self.types["metadata_t"].fields}
        for header, declared in self._headers.items():
            self.widths |= {f"hdr.{header}.{one.name}": width_of(one.type) for one in declared.fields}
        self._actions: dict[str, tuple[Sequence[tree.ParameterDeclaration], Step]] = {}
        self._tables: dict[str, _RunTable] = {}
        assert isinstance(parser, tree.ParserDeclaration)
        assert isinstance(main, tree.ControlDeclaration)
        self._states = {one.name: self._state(one) for one in parser.states}
        for local in main.locals if isinstance(main, tree.ControlDeclaration) else ():
            self._local(local)
        self._apply = self._block(main.body)
        self._emitted = self._emits(deparser)

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
        for _ in range(MOST_STATES):
            if state in ("accept", "reject") or packet.short:
                return
            steps, transition = self._states[state]
            for step in steps:
                step(packet)
            state = transition(packet)
        raise AssertionError("the parser does not end")

    def _state(self, one: tree.StateDeclaration) -> tuple[Sequence[Step], Callable[[PacketRun], str]]:
        return [self._statement(statement) for statement in one.statements], self._transition(one.transition)

    def _transition(self, one: tree.Transition | None) -> Callable[[PacketRun], str]:
        if one is None or one.state is not None:
            state = "reject" if one is None or one.state is None else one.state
            return lambda packet: state
        keys = [self.value(key)[0] for key in one.keys]
        cases = [([value_test(value) for value in case.values], case.state) for case in one.cases]

        def transition(packet: PacketRun) -> str:
            found = [key(packet) for key in keys]
            for tests, target in cases:
                if all(test(value) for test, value in zip(tests, found, strict=False)):
                    return target
            return "reject"

        return transition

    def _extract(self, of: tree.CallUse) -> Step:
        name = printed_expression(of.arguments[0].value).removeprefix("hdr.")
        length = self.value(of.arguments[1].value)[0] if len(of.arguments) > 1 else None
        declared = self._headers[name]

        def step(packet: PacketRun) -> None:
            if length is not None:
                wide = length(packet) // 8
                packet.varying[name] = packet.frame[packet.at : packet.at + wide]
            else:
                wide = self.read(packet, declared, f"hdr.{name}.")
            packet.short = packet.at + wide > len(packet.frame)
            if not packet.short:
                packet.at += wide
                packet.valid.add(name)

        return step

    def _emits(self, deparser: tree.ParserDeclaration | tree.ControlDeclaration) -> Sequence[str]:
        assert isinstance(deparser, tree.ControlDeclaration)
        calls = [one.call for one in deparser.body.statements if isinstance(one, tree.CallStatement)]
        return [printed_expression(call.arguments[0].value).removeprefix("hdr.") for call in calls]

    def _bytes(self, packet: PacketRun, header: str) -> bytes:
        word, total = 0, 0
        for one in self._headers[header].fields:
            if isinstance(one.type, tree.SizedType) and one.type.kind == "varbit":
                return packet.varying.get(header, b"")
            width = self.widths[f"hdr.{header}.{one.name}"]
            unset = self.unset & ((1 << width) - 1)
            word, total = word << width | packet.fields.get(f"hdr.{header}.{one.name}", unset), total + width
        return word.to_bytes(total // 8, "big")

    # the control

    def _local(self, one: tree.ControlLocal) -> None:
        match one:
            case tree.InstanceDeclaration() if one.type.name == "Register":
                size, first = (self.value(argument.value)[0](PacketRun(b"", 0)) for argument in one.arguments)
                self.registers[one.name] = [first] * size
            case tree.ActionDeclaration():
                self.arguments = {each.name: width_of(each.type) for each in one.parameters}
                self._actions[one.name] = one.parameters, self._block(one.body)
                self.arguments = {}
            case tree.TableDeclaration():
                self._tables[one.name] = self._table(one)
            case _:
                raise refusal(one)

    def _table(self, one: tree.TableDeclaration) -> _RunTable:
        entries = [
            ([value_test(value) for value in each.values], *self._call(each.action)) for each in one.entries or ()
        ]
        kinds = [element.match_kind for element in one.key]
        if kinds == ["lpm"]:
            entries.sort(key=lambda entry: -entry[0][0].bits)
        exact = {tuple(test.value for test in tests): (name, values) for tests, name, values in entries}
        assert one.default is not None
        return _RunTable(
            [self.value(element.expression)[0] for element in one.key],
            kinds,
            entries,
            exact if set(kinds) == {"exact"} else {},
            self._call(one.default),
            any(part.name == "add_on_miss" for part in one.properties),
        )

    def _call(self, use: tree.ActionUse) -> tuple[str, Mapping[str, int]]:
        values = [self.value(argument.value)[0](PacketRun(b"", 0)) for argument in use.arguments]
        names = [one.name for one in self._actions[use.name][0]] if use.name in self._actions else []
        return use.name, dict(zip(names, values, strict=True))

    def _look_up(self, name: str) -> Step:
        def step(packet: PacketRun) -> None:
            table = self._tables[name]
            key = tuple(one(packet) for one in table.keys)
            packet.missed = name, key
            action, packet.arguments = self._found(name, table, key)
            self._actions[action][1](packet)

        return step

    def _found(self, name: str, table: _RunTable, key: tuple[int, ...]) -> tuple[str, Mapping[str, int]]:
        if table.learns:
            return self.learnt.get(name, {}).get(key, table.default)
        if table.exact:
            return table.exact.get(key, table.default)
        for tests, action, values in table.entries:
            if all(test(value) for test, value in zip(tests, key, strict=True)):
                return action, values
        return table.default

    def _block(self, one: tree.Statement) -> Step:
        statements = one.statements if isinstance(one, tree.BlockStatement) else (one,)
        steps = [self._statement(each) for each in statements]

        def step(packet: PacketRun) -> None:
            for each in steps:
                each(packet)

        return step

    def _statement(self, one: tree.Statement) -> Step:
        match one:
            case tree.Assignment(target=target, value=value):
                return self._assign(printed_expression(target), self.value(value)[0])
            case tree.CallStatement(call=call):
                return self._called(call)
            case tree.IfStatement(condition=condition, yes=yes, no=no):
                return self._if(self.value(condition)[0], self._block(yes), None if no is None else self._block(no))
            case tree.BlockStatement():
                return self._block(one)
        raise refusal(one)

    def _assign(self, to: str, value: Value) -> Step:
        mask = (1 << self.widths[to]) - 1

        def step(packet: PacketRun) -> None:
            packet.fields[to] = value(packet) & mask

        return step

    def _if(self, condition: Value, yes: Step, no: Step | None) -> Step:
        def step(packet: PacketRun) -> None:
            if condition(packet):
                yes(packet)
            elif no is not None:
                no(packet)

        return step

    def _called(self, call: tree.CallUse) -> Step:
        function = printed_expression(call.function)
        base, _, method = function.rpartition(".")
        if function == "drop_packet":
            return lambda packet: None
        if function == "send_to_port":
            return self._send(self.value(call.arguments[0].value)[0])
        if function == "add_entry":
            return self._learn(call)
        if method == "extract":
            return self._extract(call)
        if method == "apply":
            return self._look_up(base)
        if method == "setValid":
            return self._validate(base.removeprefix("hdr."), True)
        if method == "setInvalid":
            return self._validate(base.removeprefix("hdr."), False)
        if method == "write" and base in self.registers:
            return self._write(self.registers[base], *(self.value(argument.value)[0] for argument in call.arguments))
        raise refusal(call)

    def _validate(self, header: str, valid: bool) -> Step:
        """What a header held before it became valid, or invalid, is gone."""
        paths = [f"hdr.{header}.{one.name}" for one in self._headers[header].fields]

        def step(packet: PacketRun) -> None:
            if valid == (header in packet.valid):
                return
            for path in paths:
                packet.fields.pop(path, None)
            if valid:
                packet.valid.add(header)
            else:
                packet.valid.discard(header)

        return step

    def _send(self, port: Value) -> Step:
        def step(packet: PacketRun) -> None:
            packet.sent_to = port(packet)

        return step

    def _write(self, numbers: list[int], place: Value, value: Value) -> Step:
        def step(packet: PacketRun) -> None:
            numbers[place(packet)] = value(packet)

        return step

    def _learn(self, call: tree.CallUse) -> Step:
        by_name = {argument.name: argument.value for argument in call.arguments}
        action, values = by_name["action_name"], by_name["action_params"]
        if not (isinstance(action, tree.TextLiteral) and isinstance(values, tree.ListUse)):
            raise refusal(call)
        name, items = action.text, [self.value(item)[0] for item in values.items]

        def step(packet: PacketRun) -> None:
            names = [one.name for one in self._actions[name][0]]
            table, key = packet.missed
            arguments = dict(zip(names, (item(packet) for item in items), strict=True))
            self.learnt.setdefault(table, {})[key] = name, arguments

        return step
