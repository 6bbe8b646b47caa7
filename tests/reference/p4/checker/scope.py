"""What the names of a program stand for, its faults so far, and which fields and headers it reads and writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from profiles.faults import Fault, printable, suggestion
from tests.reference.p4.checker.reader import Node, SourcePosition

Declaration = TypeVar("Declaration")

MAX_BITS = 2048  # of a type


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a value."""

    name: str  # as messages name it
    width: int  # bits; of `varbit`, at most

    def __str__(self) -> str:
        return self.name

    @property
    def is_bits(self) -> bool:
        """Whether it is `bit<N>`, with which numbers and operators go."""
        return self == bits(self.width)


def bits(width: int) -> ValueType:
    """`bit<width>`."""
    return ValueType(f"bit<{width}>", width)


BOOL = ValueType("bool", 1)
PORT = ValueType("PortId_t", 32)  # mixes with no other type without a cast
REGISTER, INDEX = bits(64), bits(32)  # the numbers of a register, and their indexes
NUMBER = ValueType("a number", 0)
UNKNOWN = ValueType("unknown", 0)  # what is wrong with such a value was said before

_PNA_WIDTHS = """
    ClassOfService ExpireTimeProfileId FlowId InterfaceId MirrorSessionId MirrorSlotId MulticastGroup MulticastInstance
    PacketLength PassNumber PortId SecurityAssocId Timestamp
"""
_PNA_OTHERS = """
    Counter Hash InternetChecksum Meter PNA_MeterColor_t PNA_MeterType_t NoAction PNA_CounterType_t PNA_Direction_t
    PNA_HashAlgorithm_t PNA_IdleTimeout_t PNA_NIC PNA_PacketPath_t ParserError_t Register add_entry
    allocate_flow_id drop_packet packet_in packet_out pna_main_input_metadata_t pna_main_output_metadata_t
    pna_main_parser_input_metadata_t pna_pre_input_metadata_t pna_pre_output_metadata_t recirculate
    restart_expire_timer send_to_port set_entry_expire_time verify
"""
PNA_NAMES = frozenset(_PNA_OTHERS.split()) | {
    name + suffix for name in _PNA_WIDTHS.split() for suffix in ("_t", "Uint_t")
}
"""What core.p4 and pna.p4 declare (PNA in the variant for DPDK)."""

_COMMON = "hdr meta istd ostd packet main MainParser PreControl MainControl MainDeparser headers_t metadata_t"
COMMON_NAMES = frozenset(_COMMON.split())  # what every emitted program declares


@dataclass(frozen=True, slots=True)
class P4Fault(Fault):
    """One thing that is wrong in a P4 program; its text is `FILE:LINE:COLUMN: what is wrong`."""

    def __str__(self) -> str:
        return printable(f"{self.file}:{self.line}:{self.column}: {self.message}")


@dataclass(slots=True)
class ProgramScope:
    """What is known of a program while it is checked.

    `headers`: the fields of each header of the packet; None for one of a type that is not known. `fields_read`,
    `headers_read`: fields of the metadata, and headers, of which a value is read, and where first. `fields_written`,
    `headers_made`: fields of the metadata that get a value; headers that are extracted or set valid, and where first.
    """

    file: str  # the program's file as its user named it
    faults: list[P4Fault] = field(default_factory=list)
    declared: dict[str, SourcePosition] = field(default_factory=dict)  # where each name was declared
    used: set[str] = field(default_factory=set)  # names that something else names
    header_types: dict[str, dict[str, ValueType]] = field(default_factory=dict)  # the fields of the types of headers
    headers: dict[str, dict[str, ValueType] | None] = field(default_factory=dict)
    metadata: dict[str, ValueType] = field(default_factory=dict)
    registers: dict[str, Node] = field(default_factory=dict)
    meters: dict[str, Node] = field(default_factory=dict)
    actions: dict[str, Node] = field(default_factory=dict)
    tables: dict[str, Node] = field(default_factory=dict)
    arguments: dict[str, ValueType] = field(default_factory=dict)  # those of the action that is checked
    fields_read: dict[str, SourcePosition] = field(default_factory=dict)
    fields_written: set[str] = field(default_factory=set)
    headers_read: dict[str, SourcePosition] = field(default_factory=dict)
    headers_made: dict[str, SourcePosition] = field(default_factory=dict)

    def fault(self, at: SourcePosition, message: str, hint: str | None = None) -> None:
        """Add a fault."""
        self.faults.append(P4Fault(self.file, at.line, str(at.column), message, hint))

    def declare(self, name: str, at: SourcePosition) -> None:
        """Make a name known; a fault if it stands for something already."""
        self.check_new(name, at)
        self.declared.setdefault(name, at)

    def check_new(self, name: str, at: SourcePosition) -> None:
        """A fault if a name stands for something already."""
        if name in self.declared:
            self.fault(at, f"{name} is declared already, in line {self.declared[name].line}")
        elif name in PNA_NAMES or name in COMMON_NAMES:
            where = "by the architecture" if name in PNA_NAMES else "by every program"
            self.fault(at, f"{name} is declared already, {where}")

    def find(self, known: Mapping[str, Declaration], name: str, at: SourcePosition, what: str) -> Declaration | None:
        """What a name stands for, which counts as used; None, and a fault, if it is not known."""
        self.used.add(name)
        if name not in known:
            self.fault(at, f"there is no {what} {name}", suggestion(name, known) if known else None)
        return known.get(name)

    def resolve_width(self, width: int, at: SourcePosition) -> ValueType:
        """`bit<width>`; a fault if there is none."""
        if 1 <= width <= MAX_BITS:
            return bits(width)
        self.fault(at, f"a width is 1 to {MAX_BITS}, found {width}")
        return UNKNOWN

    def resolve_fields(self, owner: str, fields: Sequence[Node]) -> dict[str, ValueType]:
        """The types of declared fields; a fault for each that is there twice."""
        found: dict[str, ValueType] = {}
        for declared in fields:
            if declared.name in found:
                self.fault(declared.at, f"{owner} has field {declared.name} twice")
            kind = self.resolve_width(declared.width, declared.at)
            found[declared.name] = ValueType(f"var{kind}", kind.width) if declared.word == "varbit" else kind
        return found
