"""The switch program of a set of NFs: all their tables, and which of them wait for which.

Dependencies are those of Jose et al., "Compiling packet programs to reconfigurable switches" (NSDI 2015), section 3. A
table lies in stages after all those of a table that writes its key (match) or that changes the same field (action). It
may share a stage, and no earlier one, with a table that decides whether it runs (successor) and with one whose key it
changes (reverse match). NFs that no packet passes both, on other branches or of other chains, depend on nothing of one
another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from placer.rack.chain import Chain
from placer.rack.rack import OWN_PREFIX, MatchKind, SwitchTable
from placer.rack.stages.block_stages import TableId

CLASS_FIELD = "meta.class"
Tables = Mapping[str, Sequence[SwitchTable]]
"""By kind of NF."""


class DependencyKind(StrEnum):
    """Why a table waits for another one."""

    MATCH = "match"
    ACTION = "action"
    SUCCESSOR = "successor"
    REVERSE_MATCH = "reverse match"

    @property
    def is_strict(self) -> bool:
        """Whether the two may not share a stage."""
        return self in (DependencyKind.MATCH, DependencyKind.ACTION)


@dataclass(frozen=True)
class PlacedTable:
    """A table of a program, with the name `chain/NF/table`."""

    name: str
    table: SwitchTable


@dataclass(frozen=True)
class TableDependency:
    """The table with the second index waits for that with the first."""

    before: int
    after: int
    kind: DependencyKind


@dataclass(frozen=True)
class TableProgram:
    """Tables, in an order that their dependencies allow."""

    tables: tuple[PlacedTable, ...]
    dependencies: tuple[TableDependency, ...]


def table_program(
    nfs: frozenset[TableId], chains: Sequence[Chain], tables_of: Tables, *, branches_share: bool = True
) -> TableProgram:
    """The program that runs these NFs; empty without any.

    Parameters
    ----------
    branches_share
        False: NFs follow one another as if each packet passed all of them, and each checks its branch in its key, as in
        a program that is generated NF by NF (Lemur, section 4.2).
    """
    return _Building(nfs, chains, tables_of, branches_share).program() if nfs else TableProgram((), ())


class _Building:
    def __init__(
        self, nfs: frozenset[TableId], chains: Sequence[Chain], tables_of: Tables, branches_share: bool
    ) -> None:
        self.chains, self.branches_share = chains, branches_share
        self.nfs = [(at, nf) for at in sorted({at for at, _ in nfs}) for nf in chains[at].order if (at, nf) in nfs]
        self.tables = [PlacedTable(STEERING_TABLE.name, STEERING_TABLE)]
        self.own: dict[TableId, list[int]] = {}
        for at, nf in self.nfs:
            one = chains[at].nfs[nf]
            placed = [PlacedTable(f"{chains[at].name}/{one.id}/{each.name}", each) for each in tables_of[one.nf]]
            branches = len(chains[at].edges_from(nf))
            if branches > 1:
                by_class = any(CLASS_FIELD in each.table.writes for each in placed)
                split = splitting(by_class, branches)
                placed.append(PlacedTable(f"{chains[at].name}/{one.id}/{split.name}", split))
            self.own[at, nf] = list(range(len(self.tables), len(self.tables) + len(placed)))
            self.tables += placed

    def program(self) -> TableProgram:
        found = [TableDependency(0, number, DependencyKind.MATCH) for number in range(1, len(self.tables))]
        for nf, before in self._pairs():
            found += self._between(before, nf)
        return TableProgram(tuple(self.tables), tuple(found))

    def _pairs(self) -> Iterator[tuple[TableId, TableId]]:
        """Each NF with itself and with all that packets pass before it, without leaving the switch in between."""
        earlier: dict[TableId, set[TableId]] = {}
        for at, nf in self.nfs:
            tails = [(at, edge.tail) for edge in self.chains[at].edges_into(nf)] if self.branches_share else [*earlier]
            direct = {tail for tail in tails if tail in self.own}
            earlier[at, nf] = direct.union(*(earlier[tail] for tail in direct))
            for before in sorted({*earlier[at, nf], (at, nf)}):
                yield (at, nf), before

    def _between(self, first: TableId, second: TableId) -> Iterator[TableDependency]:
        for before in self.own[first]:
            for after in self.own[second]:
                if before < after and (kind := self._kind(before, after, first == second)):
                    yield TableDependency(before, after, kind)

    def _kind(self, before: int, after: int, same_nf: bool) -> DependencyKind | None:
        """The strictest dependency between two tables; None without any."""
        one, other = self.tables[before].table, self.tables[after].table
        fields = [field for field in one.writes if same_nf or not field.startswith(OWN_PREFIX)]
        if any(field in other.key for field in fields):
            return DependencyKind.MATCH
        if any(field in other.writes for field in fields):
            return DependencyKind.ACTION
        if one.name == "split" and not same_nf:
            return DependencyKind.SUCCESSOR if self.branches_share else DependencyKind.MATCH
        if any(field in one.key and (same_nf or not field.startswith(OWN_PREFIX)) for field in other.writes):
            return DependencyKind.REVERSE_MATCH
        return None


# The tables of the NFs that Lemur runs on its switch (Yen et al., table 3), for racks that give none.
#
# Keys and entries are those of plain P4 programs; the NAT is that of the P4 consortium's `simple_nat`, whose key of 99
# bits holds 2,000 entries. A rack file replaces them (`tables` beside `blocks`).


ADDRESS_FIELDS = {"ip.src": 32, "ip.dst": 32}
FLOW_FIELDS = {**ADDRESS_FIELDS, "l4.ports": 32, "ip.protocol": 8}
VLAN_FIELDS = ("vlan.valid", "vlan.id")

STEERING_TABLE = SwitchTable("steering", {**FLOW_FIELDS, "nsh.path": 32}, MatchKind.TERNARY, 512, ("nsh.path",))
"""Finds the chain of a packet and its place there, also of packets that come back from servers (section 4.2)."""


def splitting(by_class: bool, branches: int) -> SwitchTable:
    """What decides on the branch behind an NF: by the class that the NF found, or else by rules of its own (A.2.2)."""
    if by_class:
        return SwitchTable("split", {"meta.class": 16}, MatchKind.EXACT, branches)
    return SwitchTable("split", FLOW_FIELDS, MatchKind.TERNARY, branches)


TABLE_LIBRARY: Mapping[str, tuple[SwitchTable, ...]] = {
    "ACL": (SwitchTable("rules", FLOW_FIELDS, MatchKind.TERNARY, 1024, ("meta.drop",)),),
    "Detunnel": (SwitchTable("pop", {"vlan.valid": 1, "vlan.id": 12}, MatchKind.EXACT, 256, VLAN_FIELDS),),
    "IPv4Fwd": (
        SwitchTable("routes", {"ip.dst": 32}, MatchKind.LPM, 4096, ("meta.next_hop", "ip.ttl")),
        SwitchTable("next_hops", {"meta.next_hop": 32}, MatchKind.EXACT, 1024, ("eth.dst", "port.out")),
        SwitchTable("own_address", {"port.out": 9}, MatchKind.EXACT, 256, ("eth.src",)),
    ),
    "LB": (
        SwitchTable("services", {"ip.dst": 32, "l4.ports": 32}, MatchKind.EXACT, 256, ("meta.bucket",)),
        SwitchTable("servers", {"meta.bucket": 16}, MatchKind.EXACT, 4096, ("ip.dst", "l4.ports")),
    ),
    "Match": (SwitchTable("classes", FLOW_FIELDS, MatchKind.TERNARY, 512, ("meta.class",)),),
    "NAT": (
        SwitchTable("interface", {"port.in": 9}, MatchKind.EXACT, 64, ("meta.side",)),
        SwitchTable(
            "translations",
            {**ADDRESS_FIELDS, "l4.ports": 32, "meta.side": 3},
            MatchKind.TERNARY,
            2000,
            ("meta.found",),
        ),
        SwitchTable("rewrite", {"meta.found": 1}, MatchKind.EXACT, 2, ("ip.src", "ip.dst", "l4.ports")),
    ),
    "Tunnel": (SwitchTable("push", {"ip.dst": 32}, MatchKind.EXACT, 256, VLAN_FIELDS),),
}
"""By kind of NF, in the order in which packets meet them."""
