"""Names of a switch program in its P4 text: none is a word of the language, and no two are one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placer.metacompiler.p4.checker.rules.architecture import EXTERNS, FUNCTIONS, TYPES
from placer.metacompiler.p4.checker.syntax.lexer import ALSO_NAMES, KEYWORDS
from placer.metacompiler.switch.program import SwitchProgram

OWN = "hdr meta istd ostd packet main MainParser PreControl MainControl MainDeparser headers_t metadata_t"
RESERVED = frozenset(
    {*(KEYWORDS - ALSO_NAMES), *TYPES, *EXTERNS, *(one.name for one in FUNCTIONS), "NoAction", "PNA_NIC", *OWN.split()}
)
"""Names that stand for something else in every program."""
PLACES = {"h": "hdr.", "m": "meta.", "t": ""}
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
    taken = set(RESERVED)
    taken |= {f"{one.name}_t" for one in program.headers}
    taken |= {plain(argument) for action in program.actions for argument in action.arguments}
    return P4Names(
        _free((one.name for one in program.tables), taken),
        _free((one.name for one in program.actions), taken),
        _free((one.name for one in program.registers), taken),
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
    return f"{name}_" if name in RESERVED else name


def field_text(name: str) -> str:
    """A field as the text calls it: `hdr.ipv4.ttl` of `h.ipv4.ttl`."""
    place, *parts = name.split(".")
    return PLACES[place] + ".".join(map(plain, parts))
