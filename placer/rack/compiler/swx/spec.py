"""A switch program as the text of a DPDK pipeline (`.spec`), and its table entries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from placer.rack.compiler.switch.program import (
    ActionCall,
    Body,
    HeaderType,
    If,
    Learn,
    ParserEdge,
    Registers,
    Statement,
    SwitchProgram,
    TableKey,
    UpdateChecksum,
)
from placer.rack.compiler.swx.code import (
    AHEAD_REGISTER,
    ARRIVAL_FIELDS,
    ARRIVAL_HEADER,
    METER_FIELDS,
    SUMMANDS_FIELD,
    TIMES_REGISTER,
    SpecCode,
)
from placer.rack.rack import MatchKind

LEAST_SIZE = 16  # of a table: room for entries


def spec_text(program: SwitchProgram) -> str:
    """The pipeline of a program."""
    parts = [_comments(program), _structs(program), _registers(program), _actions(program), _tables(program)]
    return "\n".join([*parts, _apply(program)])


def entries_text(program: SwitchProgram) -> str:
    """The entries of its tables, one in a line; of ternary tables the first has the highest priority.

    DPDK keeps one entry for a key, whatever its priority, and a later one replaces it: only the first is written.
    """
    lines = []
    for table in program.tables:
        ternary = any(_match_word(key.match) == "wildcard" for key in table.keys)
        first = {entry.key: at for at, entry in reversed(list(enumerate(table.entries)))}
        for at, entry in enumerate(table.entries):
            if first[entry.key] != at:
                continue
            keys = zip(table.keys, entry.key, strict=True)
            key = " ".join(f"{value:#x}/{mask:#x}" if ternary else f"{value:#x}" for _, (value, mask) in keys)
            priority = f" priority {at}" if ternary else ""
            lines.append(f"{table.name} match {key}{priority} {_call(program, entry.call)}")
    return "".join(f"{line}\n" for line in lines)


def names_text(program: SwitchProgram) -> str:
    """What the places of its registers stand for."""
    lines = [f"function {at} {name}" for at, name in enumerate(program.functions)]
    lines += [f"reason {at} {name}" for at, name in enumerate(program.reasons)]
    lines += [f"rules {first} {name} {count}" for name, first, count in program.rules]
    return "".join(f"{line}\n" for line in lines)


def _call(program: SwitchProgram, call: ActionCall) -> str:
    action = next(action for action in program.actions if action.name == call.action)
    values = "".join(f" {name} {value:#x}" for name, value in zip(action.arguments, call.arguments, strict=True))
    return f"action {call.action}{values}"


def _comments(program: SwitchProgram) -> str:
    return "".join(f"; {note}\n" for note in program.notes)


def _summands(program: SwitchProgram) -> Mapping[str, str]:
    """Metadata that checksums are updated with, and where it is instead; keys and what is learnt stay metadata."""
    kept = {key.field for table in program.tables for key in table.keys}
    updates = []
    for inner_statement in _statements(
        (*program.control, *(statement for action in program.actions for statement in action.body))
    ):
        match inner_statement:
            case UpdateChecksum():
                updates.append(inner_statement)
            case Learn(_, arguments):
                kept.update(arguments)
    values = dict.fromkeys(value for update in updates for value in (update.before, update.after))
    return {name: f"h.{SUMMANDS_FIELD}.{name[2:]}" for name in values if name.startswith("m.") and name not in kept}


def _statements(body: Body) -> Iterator[Statement]:
    """All statements, also those of branches."""
    for statement in body:
        yield statement
        if isinstance(statement, If):
            yield from _statements((*statement.then, *statement.otherwise))


def _structs(program: SwitchProgram) -> str:
    parts = []
    arrival = [HeaderType(ARRIVAL_HEADER, ARRIVAL_FIELDS)] if program.meters else []
    for header in (*arrival, *program.headers):
        fields = dict(header.fields)
        lines = [f"\tbit<{bits}> {name}\n" for name, bits in fields.items()]
        if header.most_bytes:
            lines.append(f"\tvarbit<{8 * header.most_bytes}> bytes\n")
        parts.append(
            f"struct {header.name}_h {{\n{''.join(lines)}}}\n\nheader {header.name} instanceof {header.name}_h\n"
        )
    moved = [name[2:] for name in _summands(program)]
    if any(isinstance(statement, UpdateChecksum) for statement in _statements(program.control)):
        summands = "".join(f"\tbit<{program.metadata[name]}> {name}\n" for name in moved)
        summands += "\tbit<32> before\n\tbit<32> after\n"
        parts.append(
            f"struct {SUMMANDS_FIELD}_h {{\n{summands}}}\n\nheader {SUMMANDS_FIELD} instanceof {SUMMANDS_FIELD}_h\n"
        )
    metadata = {name: bits for name, bits in program.metadata.items() if name not in moved}
    if any(header.most_bytes for header in program.headers):
        metadata["length"] = 32
    if any(table.learns_for_s for table in program.tables):
        metadata["timeout"] = 32
    metadata |= METER_FIELDS if program.meters else {}
    metadata["test"] = 64
    rows = "".join(f"\tbit<{bits}> {name}\n" for name, bits in metadata.items())
    parts.append(f"struct metadata_t {{\n{rows}}}\n\nmetadata instanceof metadata_t\n")
    return "\n".join(parts)


def _registers(program: SwitchProgram) -> str:
    meters = [Registers(name, len(program.meters)) for name in (AHEAD_REGISTER, TIMES_REGISTER) if program.meters]
    return "".join(
        f"regarray {register.name} size {register.size} initval {register.first:#x}\n"
        for register in (*program.registers, *meters)
    )


def _actions(program: SwitchProgram) -> str:
    parts = []
    for action in program.actions:
        arguments = "none"
        if action.arguments:
            fields = "".join(f"\tbit<{bits}> {name}\n" for name, bits in action.arguments.items())
            parts.append(f"struct {action.name}_arguments {{\n{fields}}}\n")
            arguments = f"instanceof {action.name}_arguments"
        code = SpecCode(_summands(program))
        code.body(action.body)
        code.instruction("return")
        parts.append(f"action {action.name} args {arguments} {{\n{code.text()}}}\n")
    return "\n".join(parts)


def _match_word(match: MatchKind) -> str:
    return "exact" if match is MatchKind.EXACT else "wildcard"


def _key(key: TableKey, learns: bool) -> str:
    return f"\t\t{key.field}\n" if learns else f"\t\t{key.field} {_match_word(key.match)}\n"


def _tables(program: SwitchProgram) -> str:
    parts = []
    for table in program.tables:
        keys = "".join(_key(key, bool(table.learns_for_s)) for key in table.keys)
        actions = "".join(f"\t\t{name}\n" for name in table.actions)
        action = next(action for action in program.actions if action.name == table.default.action)
        values = " ".join(
            f"{name} {value:#x}" for name, value in zip(action.arguments, table.default.arguments, strict=True)
        )
        note = f"; {table.of}\n" if table.of else ""
        word = "learner" if table.learns_for_s else "table"
        timeout = f"\ttimeout {{\n\t\t{table.learns_for_s}\n\t}}\n" if table.learns_for_s else ""
        parts.append(
            f"{note}{word} {table.name} {{\n\tkey {{\n{keys}\t}}\n\tactions {{\n{actions}\t}}\n"
            f"\tdefault_action {table.default.action} args {values or 'none'}\n"
            f"\tsize {max(len(table.entries), table.size, LEAST_SIZE)}\n{timeout}}}\n"
        )
    return "\n".join(parts)


def _apply(program: SwitchProgram) -> str:
    code = SpecCode(_summands(program), program.meters)
    code.instruction("rx m.port")
    if program.meters:
        code.instruction(f"extract h.{ARRIVAL_HEADER}")
    _parse(program, code)
    code.body(program.control)
    drop = code.new_label("DROP")
    code.instruction(f"jmpneq {drop} m.drop 0")
    for header in program.headers:
        code.instruction(f"emit h.{header.name}")
    code.instruction("tx m.port")
    code.put(drop)
    code.instruction("drop")
    return f"apply {{\n{code.text()}}}\n"


def _parse(program: SwitchProgram, code: SpecCode) -> None:
    """States behind one another, in an order in which packets may pass them."""
    headers = {header.name: header for header in program.headers}
    order = _states(program.parser)
    labels = {state: code.new_label(f"PARSE_{state.upper()}") for state in order}
    done = code.new_label("PARSED")
    for state in order:
        code.put(labels[state])
        header = headers.get(state)
        if header and header.most_bytes:
            code.instruction("mov m.length h.ipv4.version_words")
            code.instruction("and m.length 0xf")
            code.instruction("sub m.length 5")
            code.instruction("shl m.length 2")
            code.instruction(f"extract h.{state} m.length")
        elif header:
            code.instruction(f"extract h.{state}")
        edges = [edge for edge in program.parser if edge.source == state]
        if state == "start":
            edges = _ahead(edges, headers, code)
        _edges(edges, labels, done, code)
    code.put(done)


def _ahead(edges: Sequence[ParserEdge], headers: Mapping[str, HeaderType], code: SpecCode) -> list[ParserEdge]:
    """Looks at the first header ahead: as that of packets to which no test applies, since it is then valid."""
    otherwise = headers[next(edge.target for edge in edges if not edge.tests)]
    found = []
    for edge in edges:
        tests = []
        for test in edge.tests:
            _, name, field = test.field.split(".")
            assert headers[name].fields == otherwise.fields
            tests.append(replace(test, field=f"h.{otherwise.name}.{field}"))
        found.append(replace(edge, tests=tuple(tests)))
    if any(edge.tests for edge in edges):
        code.instruction(f"lookahead h.{otherwise.name}")
    return found


def _edges(edges: Sequence[ParserEdge], labels: dict[str, str], done: str, code: SpecCode) -> None:
    """Where the parser goes on; what is most common is tested first, and tests that several edges share once."""
    otherwise = next((labels[edge.target] for edge in edges if not edge.tests), done)
    tested = [edge for edge in edges if edge.tests]
    if len({edge.tests[0].field for edge in tested}) == 1 and all(len(edge.tests) == 1 for edge in tested):
        tested.sort(key=lambda edge: edge.target != "ipv4")
    for shared, group in groupby(tested, key=lambda edge: edge.tests[:-1]):
        other = code.new_label("NOT")
        for test in shared:
            code.jump_unless(test, other)
        for edge in group:
            code.jump_if(edge.tests[-1], labels[edge.target])
        code.put(other)
    code.instruction(f"jmp {otherwise}")


def _states(edges: Sequence[ParserEdge]) -> list[str]:
    """The states, each behind those that lead to it."""
    sources: dict[str, set[str]] = {"start": set()}
    for edge in edges:
        sources.setdefault(edge.target, set()).add(edge.source)
        sources.setdefault(edge.source, set())
    order: list[str] = []
    while len(order) < len(sources):
        order.append(next(source for source in sources if source not in order and sources[source] <= set(order)))
    return order
