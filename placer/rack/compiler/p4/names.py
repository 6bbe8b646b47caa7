"""Names of a switch program in its P4 text: none is a word of the language, and no two are one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placer.rack.compiler.switch.program import SwitchProgram

# Words that a name in a P4 program must not be: those of the language, and of its architecture for NICs (PNA).


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
    FlowId_t Hash InterfaceIdUint_t InterfaceId_t InternetChecksum MirrorSessionIdUint_t MirrorSessionId_t
    MirrorSlotIdUint_t MirrorSlotId_t MulticastGroupUint_t MulticastGroup_t MulticastInstanceUint_t
    MulticastInstance_t NoAction PNA_CounterType_t PNA_Direction_t PNA_HashAlgorithm_t PNA_IdleTimeout_t PNA_NIC
    PNA_PacketPath_t PacketLengthUint_t PacketLength_t ParserError_t PassNumberUint_t PassNumber_t PortIdUint_t
    PortId_t Register SecurityAssocIdUint_t SecurityAssocId_t TimestampUint_t Timestamp_t add_entry allocate_flow_id
    drop_packet packet_in packet_out pna_main_input_metadata_t pna_main_output_metadata_t
    pna_main_parser_input_metadata_t pna_pre_input_metadata_t pna_pre_output_metadata_t recirculate
    restart_expire_timer send_to_port set_entry_expire_time verify
"""
ARCHITECTURE_NAMES = frozenset(_ARCHITECTURE_NAMES.split())
"""Types, externs, functions and packages of `core.p4` and `pna.p4`."""


OWN_NAMES = "hdr meta istd ostd packet main MainParser PreControl MainControl MainDeparser headers_t metadata_t"
RESERVED_NAMES = frozenset({*(P4_KEYWORDS - ALSO_NAMES), *ARCHITECTURE_NAMES, *OWN_NAMES.split()})
"""Names that stand for something else in every program."""
FIELD_PLACES = {"h": "hdr.", "m": "meta.", "t": ""}
"""Where headers, metadata and an action's arguments stand."""


@dataclass(frozen=True)
class P4Names:
    """What tables, actions and registers are called in the text, by what the switch program calls them.

    They may share names there, but not in P4: a name that is taken gets `_` behind it.
    """

    tables: Mapping[str, str]
    actions: Mapping[str, str]
    registers: Mapping[str, str]


def p4_names(program: SwitchProgram) -> P4Names:
    """The names of a program."""
    taken = set(RESERVED_NAMES)
    taken |= {f"{header.name}_t" for header in program.headers}
    taken |= {plain(argument) for action in program.actions for argument in action.arguments}
    return P4Names(
        _free((table.name for table in program.tables), taken),
        _free((action.name for action in program.actions), taken),
        _free((register.name for register in program.registers), taken),
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
