"""Statements of a switch program as P4-16: every value is cast to the width of what it is written to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from placer.rack.compiler.switch.program import (
    Apply,
    Assign,
    Body,
    Compute,
    Condition,
    Count,
    FieldComparison,
    If,
    IsOverRate,
    IsValid,
    Learn,
    Operation,
    SetValid,
    Statement,
    SwitchProgram,
    TakeNumber,
    UpdateChecksum,
    Value,
)

_P4_KEYWORDS = """
    abstract action actions apply bit bool const control default else entries enum error exit extern false header
    header_union if in inout int key match_kind out package parser return select state string struct switch table
    this transition true tuple type typedef varbit valueset void _
"""
P4_KEYWORDS = frozenset(_P4_KEYWORDS.split())
"""Reserved words of the language, and those of a table's parts; of these, `ALSO_NAMES` may also be names."""

ALSO_NAMES = frozenset({"actions", "apply", "entries", "key", "state", "type"})

_ARCHITECTURE_NAMES = """
    ClassOfServiceUint_t ClassOfService_t Counter ExpireTimeProfileIdUint_t ExpireTimeProfileId_t FlowIdUint_t
    FlowId_t Hash InterfaceIdUint_t InterfaceId_t InternetChecksum Meter MirrorSessionIdUint_t MirrorSessionId_t
    MirrorSlotIdUint_t MirrorSlotId_t MulticastGroupUint_t MulticastGroup_t MulticastInstanceUint_t
    MulticastInstance_t NoAction PNA_CounterType_t PNA_Direction_t PNA_HashAlgorithm_t PNA_IdleTimeout_t
    PNA_MeterColor_t PNA_MeterType_t PNA_NIC PNA_PacketPath_t PacketLengthUint_t PacketLength_t ParserError_t
    PassNumberUint_t PassNumber_t PortIdUint_t PortId_t Register SecurityAssocIdUint_t SecurityAssocId_t
    TimestampUint_t Timestamp_t add_entry allocate_flow_id drop_packet packet_in packet_out
    pna_main_input_metadata_t pna_main_output_metadata_t pna_main_parser_input_metadata_t pna_pre_input_metadata_t
    pna_pre_output_metadata_t recirculate restart_expire_timer send_to_port set_entry_expire_time verify
"""
ARCHITECTURE_NAMES = frozenset(_ARCHITECTURE_NAMES.split())
"""Types, externs, functions and packages of `core.p4` and `pna.p4`."""


OWN_NAMES = "hdr meta istd ostd packet main MainParser PreControl MainControl MainDeparser headers_t metadata_t"
RESERVED_NAMES = frozenset({*(P4_KEYWORDS - ALSO_NAMES), *ARCHITECTURE_NAMES, *OWN_NAMES.split()})
"""Names that stand for something else in every program."""
FIELD_PLACES = {"h": "hdr.", "m": "meta.", "t": ""}  # where headers, metadata and an action's arguments stand


@dataclass(frozen=True)
class P4Names:
    """What tables, actions and registers are called in the text, by what the switch program calls them.

    They may share names there, but not in P4: a name that is taken gets `_` behind it.
    """

    tables: Mapping[str, str]
    actions: Mapping[str, str]
    registers: Mapping[str, str]


def p4_names(program: SwitchProgram) -> P4Names:
    taken = set(RESERVED_NAMES)
    taken |= {f"{header.name}_t" for header in program.headers}
    taken |= {plain(argument) for action in program.actions for argument in action.arguments}
    return P4Names(
        _free((table.name for table in program.tables), taken),
        _free((action.name for action in program.actions), taken),
        _free((METERS_NAME, *(register.name for register in program.registers)), taken),
    )


def _free(names: Iterable[str], taken: set[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in names:
        found[name] = name
        while found[name] in taken:
            found[name] += "_"
        taken.add(found[name])
    return found


def plain(name: str) -> str:
    """The name of a header, field or argument; reserved ones get `_` behind them."""
    return f"{name}_" if name in RESERVED_NAMES else name


def field_text(name: str) -> str:
    """A field as the text calls it: `hdr.ipv4.ttl` of `h.ipv4.ttl`."""
    place, *parts = name.split(".")
    return FIELD_PLACES[place] + ".".join(map(plain, parts))


BODY_INDENT = "    "
OPERATION_SIGNS = {
    Operation.ADD: "+",
    Operation.SUBTRACT: "-",
    Operation.AND: "&",
    Operation.OR: "|",
    Operation.XOR: "^",
    Operation.SHIFT_LEFT: "<<",
    Operation.SHIFT_RIGHT: ">>",
}
SHIFT_OPERATIONS = (Operation.SHIFT_LEFT, Operation.SHIFT_RIGHT)
REGISTER_BITS, INDEX_BITS = 64, 32
METERS_NAME = "limits"
WIDEST_BITS = 64


def number(value: int) -> str:
    """A number as people write it: long ones in hexadecimal."""
    return str(value) if value < 256 else f"{value:#x}"


@dataclass(frozen=True)
class BodyWriter:
    """Writes bodies of one program."""

    program: SwitchProgram
    names: P4Names
    arguments: Mapping[str, int]  # bits of the arguments of the action that is written

    def bits(self, name: str) -> int:
        """Width of a field."""
        place, _, rest = name.partition(".")
        if place == "m":
            return self.program.metadata[rest]
        if place == "t":
            return self.arguments[rest]
        header, field = rest.split(".")
        return next(header_type for header_type in self.program.headers if header_type.name == header).fields[field]

    def value(self, of: Value, bits: int) -> str:
        if isinstance(of, int):
            return number(of % (1 << bits))
        text = field_text(of)
        return text if self.bits(of) == bits else f"(bit<{bits}>) {text}"

    def target(self, name: str) -> str:
        """A field that is written."""
        return self.value(name, self.bits(name))

    def body(self, body: Body) -> Iterator[str]:
        """Its lines."""
        for statement in body:
            yield from self.statement(statement)

    def statement(self, one: Statement) -> Iterator[str]:
        """The lines of one statement."""
        match one:
            case Assign(to, value):
                yield f"{self.target(to)} = {self.value(value, self.bits(to))};"
            case Compute():
                yield self._compute(one)
            case SetValid(header, valid):
                yield f"hdr.{plain(header)}.{'setValid' if valid else 'setInvalid'}();"
            case Count(registers, index):
                place, name = self.value(index, INDEX_BITS), self.names.registers[registers]
                yield f"{name}.write({place}, {name}.read({place}) + 1);{self._count(registers, index)}"
            case TakeNumber(registers, index, to):
                yield from self._take(self.names.registers[registers], self.value(index, INDEX_BITS), to)
            case Learn(action, arguments):
                yield self._learnt(action, arguments)
            case Apply(table):
                yield f"{self.names.tables[table]}.apply();"
            case If():
                yield from self._if(one, "if")

    def _compute(self, one: Compute) -> str:
        to, bits = self.target(one.to), self.bits(one.to)
        if one.operation not in SHIFT_OPERATIONS:
            return f"{to} = {to} {OPERATION_SIGNS[one.operation]} {self.value(one.value, bits)};"
        if isinstance(one.value, int):
            by = f"{to} {OPERATION_SIGNS[one.operation]} {one.value}" if one.value < bits else "0"
            return f"{to} = {by};"
        return f"{to} = {to} {OPERATION_SIGNS[one.operation]} {self.value(one.value, self.bits(one.value))};"

    def _count(self, registers: str, index: Value) -> str:
        if not isinstance(index, int):
            return ""
        if registers == "reasons":
            return f" // dropped: {self.program.reasons[index]}"
        if registers in ("entered", "sent"):
            return f" // {registers}: {self.program.functions[index]}"
        return ""

    def _take(self, name: str, place: str, to: str) -> Iterator[str]:
        bits = self.bits(to)
        read = f"{name}.read({place})"
        yield f"{self.target(to)} = {read if bits == REGISTER_BITS else f'(bit<{bits}>) {read}'};"
        yield f"{name}.write({place}, {read} + 1);"

    def _learnt(self, action: str, arguments: Sequence[str]) -> str:
        wanted = next(wanted_action for wanted_action in self.program.actions if wanted_action.name == action).arguments
        values = [self.value(name, bits) for name, bits in zip(arguments, wanted.values(), strict=True)]
        parts = [
            f'action_name = "{self.names.actions[action]}"',
            f"action_params = {{{', '.join(values)}}}",
            "expire_time_profile_id = (ExpireTimeProfileId_t) 1",
        ]
        return f"add_entry({', '.join(parts)});"

    def _if(self, one: If, word: str) -> Iterator[str]:
        note = f" // {one.note}" if one.note else ""
        yield f"{word} ({self._condition(one.condition)}) {{{note}"
        for line in self.body(one.then):
            yield BODY_INDENT + line
        if len(one.otherwise) == 1 and isinstance(one.otherwise[0], If):
            yield from self._if(one.otherwise[0], "} else if")
            return
        if one.otherwise:
            yield "} else {"
            for line in self.body(one.otherwise):
                yield BODY_INDENT + line
        yield "}"

    def _condition(self, one: Condition) -> str:
        if isinstance(one, IsOverRate):
            return f"{self.names.registers[METERS_NAME]}.execute({one.meter}) == PNA_MeterColor_t.RED"
        if isinstance(one, IsValid):
            return f"hdr.{plain(one.header)}.isValid()"
        bits = self.bits(one.left)
        if isinstance(one.right, str):
            bits = max(bits, self.bits(one.right))
        elif one.right >> bits:
            bits = WIDEST_BITS
        return f"{self.value(one.left, bits)} {one.relation} {self.value(one.right, bits)}"


def tables_in(body: Body) -> Iterator[str]:
    """Tables that a body applies, in order."""
    for statement in body:
        match statement:
            case Apply(table):
                yield table
            case If(_, then, otherwise):
                yield from tables_in(then)
                yield from tables_in(otherwise)


def registers_in(body: Body) -> Iterator[str]:
    """Registers that a body reads or writes."""
    for statement in body:
        match statement:
            case Count(registers) | TakeNumber(registers):
                yield registers
            case If(_, then, otherwise):
                yield from registers_in(then)
                yield from registers_in(otherwise)


def exclusive_tables(body: Body) -> Iterator[tuple[str, str]]:
    """Pairs of tables of which a packet meets at most one, the one that stands first in front."""
    for statement in body:
        if isinstance(statement, If):
            others = [*tables_in(statement.otherwise)]
            yield from ((table, other) for table in tables_in(statement.then) for other in others)
            yield from exclusive_tables(statement.then)
            yield from exclusive_tables(statement.otherwise)


# Updates of checksums as arithmetic: P4 has no operator for them.


SUM_FIELD, CARRY_FIELD = "m.sum", "m.carry"
SUM_METADATA: Mapping[str, int] = {"sum": 32, "carry": 32}


def with_arithmetic(program: SwitchProgram) -> SwitchProgram:
    """The same program without `UpdateChecksum`."""
    control = _lower(program.control)
    actions = tuple(replace(action, body=_lower(action.body)) for action in program.actions)
    if (control, actions) == (program.control, tuple(program.actions)):
        return program
    return replace(program, control=control, actions=actions, metadata={**program.metadata, **SUM_METADATA})


def _lower(body: Body) -> Body:
    found: Body = ()
    for statement in body:
        match statement:
            case If(condition, then, otherwise, note):
                found += (If(condition, _lower(then), _lower(otherwise), note),)
            case UpdateChecksum():
                found += _update(statement)
            case _:
                found += (statement,)
    return found


def _update(one: UpdateChecksum) -> Body:
    """~(~checksum + ~before + after), by words of 16 bits (RFC 1624, equation 3)."""
    checksum = one.checksum
    fold: Body = (
        Assign(CARRY_FIELD, SUM_FIELD),
        Compute(Operation.SHIFT_RIGHT, CARRY_FIELD, 16),
        Compute(Operation.AND, SUM_FIELD, 0xFFFF),
        Compute(Operation.ADD, SUM_FIELD, CARRY_FIELD),
    )
    body: Body = (
        Assign(SUM_FIELD, checksum),
        Compute(Operation.XOR, SUM_FIELD, 0xFFFF),
        *_add(one.before, inverted=True, high=True),
        *_add(one.before, inverted=True, high=False),
        *_add(one.after, inverted=False, high=True),
        *_add(one.after, inverted=False, high=False),
        *fold,
        *fold,
        Compute(Operation.XOR, SUM_FIELD, 0xFFFF),
        Assign(checksum, SUM_FIELD),
    )
    if one.never_zero:
        body += (If(FieldComparison(checksum, "==", 0), (Assign(checksum, 0xFFFF),)),)
    return body


def _add(value: str, *, inverted: bool, high: bool) -> Body:
    """Adds half of a value of 32 bits; one of 16 bits has zeros in its upper half, whose inverse is 0, too."""
    half = Compute(Operation.SHIFT_RIGHT, CARRY_FIELD, 16) if high else Compute(Operation.AND, CARRY_FIELD, 0xFFFF)
    inverse = (Compute(Operation.XOR, CARRY_FIELD, 0xFFFF),) if inverted else ()
    return (Assign(CARRY_FIELD, value), half, *inverse, Compute(Operation.ADD, SUM_FIELD, CARRY_FIELD))
