"""A switch program as P4-16 for the Portable NIC Architecture (PNA).

The text means what the DPDK pipeline of `swx/spec.py` means. No P4 compiler has seen it: `checker` reads it and checks
its types, and `run` interprets it.
"""

from collections.abc import Iterable, Iterator, Sequence

from placer.rack.compiler.p4.bodies import (
    BODY_INDENT,
    INDEX_BITS,
    METERS_NAME,
    REGISTER_BITS,
    BodyWriter,
    P4Names,
    exclusive_tables,
    field_text,
    number,
    p4_names,
    plain,
    registers_in,
    with_arithmetic,
)
from placer.rack.compiler.switch.program import (
    ActionCall,
    HeaderType,
    MatchTable,
    ParserEdge,
    SwitchAction,
    SwitchProgram,
)
from placer.rack.rack import MatchKind

VARYING_FIELD = "bytes"  # the field of a header whose length follows from another one


def p4_text(program: SwitchProgram, *, entries: bool = True) -> str:
    """The program as text. `entries`: with the entries of its tables; else the control plane gives them."""
    program = with_arithmetic(program)
    names = p4_names(program)
    parts = [
        [f"// {note}" for note in program.notes],
        ["#include <core.p4>", "#include <pna.p4>"],
        *([*_header(header)] for header in program.headers),
        [*_struct("headers_t", ((f"{header.name}_t", plain(header.name)) for header in program.headers))],
        [*_struct("metadata_t", ((f"bit<{bits}>", plain(name)) for name, bits in program.metadata.items()))],
        [*_parser(program)],
        [*_pre_control()],
        [*_control(program, names, entries)],
        [*_deparser(program)],
        ["PNA_NIC(MainParser(), PreControl(), MainControl(), MainDeparser()) main;"],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _header(header: HeaderType) -> Iterator[str]:
    yield f"header {header.name}_t {{"
    for name, bits in header.fields.items():
        yield f"{BODY_INDENT}bit<{bits}> {plain(name)};"
    if header.most_bytes:
        yield f"{BODY_INDENT}varbit<{8 * header.most_bytes}> {VARYING_FIELD};"
    yield "}"


def _struct(name: str, fields: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f"struct {name} {{"
    for kind, field in fields:
        yield f"{BODY_INDENT}{kind} {field};"
    yield "}"


def _block(word: str, name: str, parameters: Sequence[str]) -> Iterator[str]:
    yield f"{word} {name}("
    for parameter in parameters[:-1]:
        yield f"{BODY_INDENT}{parameter},"
    yield f"{BODY_INDENT}{parameters[-1]})"
    yield "{"


# The parser


def _parser(program: SwitchProgram) -> Iterator[str]:
    yield from _block(
        "parser",
        "MainParser",
        ("packet_in packet", "out headers_t hdr", "inout metadata_t meta", "in pna_main_parser_input_metadata_t istd"),
    )
    headers = {header.name: header for header in program.headers}
    states = dict.fromkeys(["start", *(state for edge in program.parser for state in (edge.source, edge.target))])
    for at, state in enumerate(states):
        if at:
            yield ""
        yield f"{BODY_INDENT}state {_state(state)} {{"
        for line in _state_lines(program, state, headers.get(state)):
            yield BODY_INDENT * 2 + line
        yield f"{BODY_INDENT}}}"
    yield "}"


def _state(name: str) -> str:
    return name if name == "start" else f"parse_{name}"


def _state_lines(program: SwitchProgram, state: str, header: HeaderType | None) -> Iterator[str]:
    if header is not None and header.most_bytes:
        yield f"packet.extract(hdr.{plain(state)}, ((bit<32>) (hdr.ipv4.version_words & 0xf) - 5) << 5);"
    elif header is not None:
        yield f"packet.extract(hdr.{plain(state)});"
    edges = [edge for edge in program.parser if edge.source == state]
    tested = [edge for edge in edges if edge.tests]
    otherwise = next((_state(edge.target) for edge in edges if not edge.tests), "accept")
    if not tested:
        yield f"transition {otherwise};"
        return
    fields = list(dict.fromkeys(test.field for edge in tested for test in edge.tests))
    yield f"transition select({', '.join(_test(field, state) for field in fields)}) {{"
    for edge in tested:
        values = [_case(edge, field) for field in fields]
        yield f"{BODY_INDENT}{_tuple(values)}: {_state(edge.target)};"
    yield f"{BODY_INDENT}default: {otherwise};"
    yield "}"


def _test(field: str, state: str) -> str:
    """Before anything is extracted, a header is looked at ahead."""
    place, header, *name = field.split(".")
    if place == "h" and state == "start":
        return f"packet.lookahead<{header}_t>().{plain(name[0])}"
    return field_text(field)


def _case(edge: ParserEdge, field: str) -> str:
    tests = [test for test in edge.tests if test.field == field]
    if not tests:
        return "_"
    if any(test.mask is None for test in tests):
        return f"{next(test.value for test in tests if test.mask is None):#x}"
    value, mask = 0, 0
    for test in tests:
        value, mask = value | test.value, mask | (test.mask or 0)
    return f"{value:#x} &&& {mask:#x}"


def _tuple(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"({', '.join(values)})"


# Controls


def _pre_control() -> Iterator[str]:
    yield from _block(
        "control",
        "PreControl",
        (
            "in headers_t hdr",
            "inout metadata_t meta",
            "in pna_pre_input_metadata_t istd",
            "inout pna_pre_output_metadata_t ostd",
        ),
    )
    yield f"{BODY_INDENT}apply {{"
    yield f"{BODY_INDENT}}}"
    yield "}"


def _control(program: SwitchProgram, names: P4Names, entries: bool) -> Iterator[str]:
    yield from _block(
        "control",
        "MainControl",
        (
            "inout headers_t hdr",
            "inout metadata_t meta",
            "in pna_main_input_metadata_t istd",
            "inout pna_main_output_metadata_t ostd",
        ),
    )
    writer = BodyWriter(program, names, {})
    for lines in (_registers(program, names), [*_meters(program, names)], *_control_parts(program, names, entries)):
        yield from (BODY_INDENT + line for line in lines)
        if lines:
            yield ""
    yield f"{BODY_INDENT}apply {{"
    yield f"{BODY_INDENT * 2}meta.port = (bit<32>) istd.input_port;"
    for line in writer.body(program.control):
        yield BODY_INDENT * 2 + line
    yield f"{BODY_INDENT * 2}if (meta.drop == 1) {{"
    yield f"{BODY_INDENT * 3}drop_packet();"
    yield f"{BODY_INDENT * 2}}} else {{"
    yield f"{BODY_INDENT * 3}send_to_port((PortId_t) meta.port);"
    yield f"{BODY_INDENT * 2}}}"
    yield f"{BODY_INDENT}}}"
    yield "}"


def _registers(program: SwitchProgram, names: P4Names) -> list[str]:
    """Those that something counts in, or takes numbers from."""
    bodies = (program.control, *(action.body for action in program.actions))
    used = {name for body in bodies for name in registers_in(body)}
    kind = f"Register<bit<{REGISTER_BITS}>, bit<{INDEX_BITS}>>"
    return [
        f"{kind}({register.size}, {number(register.first)}) {names.registers[register.name]};"
        for register in program.registers
        if register.name in used
    ]


def _meters(program: SwitchProgram, names: P4Names) -> Iterator[str]:
    """The meters; the control plane sets their rates."""
    for at, meter in enumerate(program.meters):
        rate, burst = f"{float(1000 * meter.mbps):g} kbit/s", f"burst {float(meter.mbps * meter.burst_us / 8):g} bytes"
        yield f"// {METERS_NAME} {at}: t_max of {meter.chain}, {rate}, {burst}"
    if program.meters:
        size = len(program.meters)
        yield f"Meter<bit<{INDEX_BITS}>>({size}, PNA_MeterType_t.BYTES) {names.registers[METERS_NAME]};"


def _control_parts(program: SwitchProgram, names: P4Names, entries: bool) -> Iterator[list[str]]:
    for action in program.actions:
        yield [*_action(program, names, action)]
    exclusive: dict[str, list[str]] = {}
    for table, other in exclusive_tables(program.control):
        exclusive.setdefault(table, []).append(names.tables[other])
    for match_table in program.tables:
        others = list(dict.fromkeys(exclusive.get(match_table.name, ())))
        yield [*_table(names, match_table, others, entries)]


def _action(program: SwitchProgram, names: P4Names, action: SwitchAction) -> Iterator[str]:
    arguments = ", ".join(f"bit<{bits}> {plain(name)}" for name, bits in action.arguments.items())
    yield f"action {names.actions[action.name]}({arguments}) {{"
    for line in BodyWriter(program, names, action.arguments).body(action.body):
        yield BODY_INDENT + line
    yield "}"


def _table(names: P4Names, table: MatchTable, exclusive: Sequence[str], entries: bool) -> Iterator[str]:
    if table.of:
        yield f"// {table.of}"
    if exclusive:
        others = ", ".join(f'"{name}"' for name in exclusive)
        yield f"@mutually_exclusive({others})"
    yield f"table {names.tables[table.name]} {{"
    if table.keys:
        yield f"{BODY_INDENT}key = {{"
        for key in table.keys:
            yield f"{BODY_INDENT * 2}{field_text(key.field)}: {key.match.value};"
        yield f"{BODY_INDENT}}}"
    yield f"{BODY_INDENT}actions = {{"
    for action in dict.fromkeys([*table.actions, table.default.action]):
        yield f"{BODY_INDENT * 2}{_limit(table, action)}{names.actions[action]};"
    yield f"{BODY_INDENT}}}"
    yield f"{BODY_INDENT}const default_action = {_call(names, table.default)};"
    if table.learns_for_s:
        yield f"{BODY_INDENT}add_on_miss = true;"
        yield f"{BODY_INDENT}idle_timeout_with_auto_delete = true;"
        yield f"{BODY_INDENT}default_idle_timeout_for_data_plane_added_entries = 1; // {table.learns_for_s} s"
    elif entries and table.entries:
        yield f"{BODY_INDENT}const entries = {{"
        yield from (BODY_INDENT * 2 + line for line in dict.fromkeys(_entries(names, table)))
        yield f"{BODY_INDENT}}}"
    yield f"{BODY_INDENT}size = {max(table.size, len(table.entries), 1)};"
    yield "}"


def _limit(table: MatchTable, action: str) -> str:
    """What a learning table learns, and what it runs when it learns."""
    if not table.learns_for_s:
        return ""
    return "@defaultonly " if action == table.default.action else "@tableonly "


def _call(names: P4Names, call: ActionCall) -> str:
    return f"{names.actions[call.action]}({', '.join(map(number, call.arguments))})"


def _entries(names: P4Names, table: MatchTable) -> Iterator[str]:
    """Entries in order; of several with one key, the first decides, and the others are left out."""
    seen: set[str] = set()
    for entry in table.entries:
        values = [
            _entry_value(key.match, key.bits, value, mask)
            for key, (value, mask) in zip(table.keys, entry.key, strict=True)
        ]
        text = _tuple(values)
        if text not in seen:
            seen.add(text)
            yield f"{text}: {_call(names, entry.call)};"


def _entry_value(match: MatchKind, bits: int, value: int, mask: int) -> str:
    full = (1 << bits) - 1
    if match is MatchKind.EXACT or mask & full == full:
        return f"{value:#x}"
    return f"{value & mask:#x} &&& {mask:#x}" if mask else "_"


def _deparser(program: SwitchProgram) -> Iterator[str]:
    yield from _block(
        "control",
        "MainDeparser",
        ("packet_out packet", "in headers_t hdr", "in metadata_t meta", "in pna_main_output_metadata_t ostd"),
    )
    yield f"{BODY_INDENT}apply {{"
    for header in program.headers:
        yield f"{BODY_INDENT * 2}packet.emit(hdr.{plain(header.name)});"
    yield f"{BODY_INDENT}}}"
    yield "}"
