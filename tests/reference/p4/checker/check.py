"""Whether a text is a program that the compiler may emit: its declarations in order, then what only the whole shows."""

from profiles.faults import suggestion
from tests.reference.p4.checker.paths import HeaderPairs, check_control_paths, check_parser_paths
from tests.reference.p4.checker.reader import Node, P4SyntaxError, SourcePosition, parse_program
from tests.reference.p4.checker.scope import INDEX, REGISTER, UNKNOWN, P4Fault, ProgramScope, ValueType, bits
from tests.reference.p4.checker.tables import check_statements, check_table, check_value_lists, expect_type, find_type

ACCEPT = "accept"  # the state of every parser in which it ends


def check(text: str, file: str) -> list[P4Fault]:
    """All that is wrong in a program, in the order of its lines; empty if it is accepted.

    A syntax error ends reading: it is then the only fault.
    """
    scope = ProgramScope(file)
    try:
        program = parse_program(text)
    except P4SyntaxError as error:
        scope.fault(error.position, error.message)
        return scope.faults
    for header_type in program.header_types:
        _declare_header_type(scope, header_type)
    scope.metadata = scope.resolve_fields("struct metadata_t", program.metadata)
    for header in program.headers:
        fields = scope.find(scope.header_types, header.type, header.at, "type")
        if header.name in scope.headers:
            scope.fault(header.at, f"struct headers_t has field {header.name} twice")
        scope.headers[header.name] = fields
    pairs = _check_parser(scope, program.states)
    _check_control(scope, program)
    _check_headers(scope, program, pairs)
    _check_uses(scope, program)
    return sorted(dict.fromkeys(scope.faults), key=lambda fault: (fault.line, int(fault.column or 0)))


def _declare_header_type(scope: ProgramScope, header: Node) -> None:
    fields = scope.resolve_fields(f"header {header.name}", header.fields)
    varying = [kind for kind in fields.values() if kind.name.startswith("varbit")]
    total = sum(kind.width for kind in fields.values() if kind not in varying)
    if not fields:
        scope.fault(header.at, f"header {header.name} has no fields")
    if len(varying) > 1:
        scope.fault(header.at, f"header {header.name} has more than one varbit field")
    if UNKNOWN not in fields.values() and (total % 8 or any(kind.width % 8 for kind in varying)):
        scope.fault(header.at, f"header {header.name} has {total} bits: not a whole number of bytes")
    scope.declare(header.name, header.at)
    scope.header_types[header.name] = fields


def _check_parser(scope: ProgramScope, states: tuple[Node, ...]) -> HeaderPairs:
    by_name: dict[str, Node] = {}
    for state in states:
        if state.name in (ACCEPT, "reject"):
            scope.fault(state.at, f"{state.name} is a state of every parser")
        elif state.name in by_name:
            scope.fault(state.at, f"state {state.name} is declared already, in line {by_name[state.name].at.line}")
        by_name[state.name] = state
    for state in states:
        _check_state(scope, state, by_name)
    if "start" in by_name:
        return check_parser_paths(scope, by_name)
    scope.fault(states[0].at if states else SourcePosition(1, 1), "the parser has no state start")
    return set()


def _check_state(scope: ProgramScope, state: Node, states: dict[str, Node]) -> None:
    if state.extract is not None:
        _check_extract(scope, state.extract)
    columns: list[tuple[ValueType, str]] = []
    for key in state.keys:
        kind = find_type(scope, key)
        if not kind.is_bits and kind != UNKNOWN:
            scope.fault(key.at, f"a key of select cannot be {kind}")
        columns.append((kind if kind.is_bits else UNKNOWN, ""))
    check_value_lists(scope, state.cases, columns, "case")
    for case in state.cases:
        if all(values.mask == 0 for values in case.values):
            scope.fault(case.at, "no packet comes behind this case: it takes all")
    for target, at in ((state.otherwise, state.at), *((case.state, case.at) for case in state.cases)):
        if target not in states and target != ACCEPT:
            scope.fault(at, f"there is no state {target}", suggestion(target, (*states, ACCEPT)))


def _check_extract(scope: ProgramScope, extract: Node) -> None:
    fields = scope.find(scope.headers, extract.header, extract.at, "header")
    varies = any(kind.name.startswith("varbit") for kind in (fields or {}).values())
    scope.headers_made.setdefault(extract.header, extract.at)
    if extract.length is not None:
        expect_type(scope, extract.length, bits(32), "the length of extract")
    if fields is not None and varies != (extract.length is not None):
        reason = "has a varbit field; its length in bits is a second argument" if varies else "has no varbit field"
        scope.fault(extract.at, f"header {extract.header} {reason}")


def _check_control(scope: ProgramScope, program: Node) -> None:
    for register in program.registers:
        scope.declare(register.name, register.at)
        scope.registers[register.name] = register
        if register.size.value < 1:
            scope.fault(register.size.at, f"register {register.name} has no elements")
        expect_type(scope, register.size, INDEX, f"the size of {register.name}")
        expect_type(scope, register.first, REGISTER, f"the first number of {register.name}")
    for meter in program.meters:
        scope.declare(meter.name, meter.at)
        scope.meters[meter.name] = meter
    for action in program.actions:
        scope.declare(action.name, action.at)
        scope.actions[action.name] = action
    for table in program.tables:
        scope.declare(table.name, table.at)
        scope.tables[table.name] = table
    for action in program.actions:
        for parameter in action.parameters:
            scope.check_new(parameter.name, parameter.at)
        scope.arguments = scope.resolve_fields(f"action {action.name}", action.parameters)
        check_statements(scope, action.body, in_action=True)
    scope.arguments = {}
    for table in program.tables:
        check_table(scope, table)
    check_statements(scope, program.body, in_action=False)
    check_control_paths(scope, program.tables, program.body)


def _check_headers(scope: ProgramScope, program: Node, pairs: HeaderPairs) -> None:
    """Headers that are read but never valid, that are never written out, or written in another order."""
    for header, at in scope.headers_read.items():
        if header not in scope.headers_made:
            scope.fault(at, f"header {header} is read, but nothing extracts it or sets it valid")
    emitted: list[str] = []
    for emit in program.emits:
        header = emit.header
        scope.find(scope.headers, header, emit.at, "header")
        if header in emitted:
            scope.fault(emit.at, f"header {header} is emitted twice")
        for other in emitted:
            if (header, other) in pairs and (other, header) not in pairs:
                scope.fault(emit.at, f"header {header} is emitted behind {other}, but extracted before it")
        if header not in scope.headers_made:
            scope.fault(emit.at, f"header {header} is emitted, but never valid")
        emitted.append(header)
    for header, at in scope.headers_made.items():
        if header not in emitted:
            scope.fault(at, f"header {header} is never emitted: its bytes would be lost")


def _check_uses(scope: ProgramScope, program: Node) -> None:
    """Metadata that is read but never written; declarations that nothing names."""
    for field in program.metadata:
        if field.name in scope.fields_read.keys() - scope.fields_written:
            message = f"field {field.name} of struct metadata_t is read, but nothing gives it a value"
            scope.fault(scope.fields_read[field.name], message)
        elif field.name not in scope.fields_written:
            scope.fault(field.at, f"field {field.name} of struct metadata_t is never used")
    for name, at in scope.declared.items():
        if name not in scope.used:
            scope.fault(at, f"{name} is never used")
