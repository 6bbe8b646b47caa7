"""What the author of an NF for the switch gives: its headers, tables and state, and what it does with a packet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from placer.metacompiler.instances import NfInstance
from placer.metacompiler.switch.program import (
    Assign,
    Body,
    MatchTable,
    ParserEdge,
    Registers,
    SwitchAction,
)
from profiles.registry import Registry

DROP: Body = (Assign("m.drop", 1),)
"""The packet goes no further."""
PASS_ACTION = SwitchAction("pass_on", ())
DROP_ACTION = SwitchAction("drop_it", DROP)


@dataclass(frozen=True)
class Block:
    """One NF, standing alone.

    Parameters
    ----------
    body
        What happens to a packet; it goes on to the next NF unless `m.drop` is set to 1.
    parser
        The ways to the headers that it looks at.
    metadata
        Bits by name, of the NF alone.
    node_field
        Metadata by which tables that several NFs share know the NF; `m.node` unless keys need it elsewhere.
    """

    body: Body
    parser: tuple[ParserEdge, ...]
    tables: tuple[MatchTable, ...] = ()
    actions: tuple[SwitchAction, ...] = ()
    registers: tuple[Registers, ...] = ()
    metadata: Mapping[str, int] = field(default_factory=dict)
    node_field: str = "m.node"


BlockMaker = Callable[[NfInstance], Block]
"""The block of an instance; names of its tables, actions and metadata begin with `identifier` of its NF."""

BLOCKS: Registry[BlockMaker] = Registry(
    "NF of the switch", "placer.metacompiler.switch.nfs", "placer.switch_nfs", "the rack"
)
"""By kind of NF: the files of `placer/metacompiler/switch/nfs/`, then the entry points of other packages."""
