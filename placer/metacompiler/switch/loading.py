"""Copies fields of headers to metadata where something looks at the copy, and only there.

Tables that sort packets look at the metadata of their flow (`headers.FLOW`): it equals the headers, by whatever writes
either. So it can be loaded anywhere; most packets of most chains need little of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from placer.metacompiler.switch.flow import flow_of
from placer.metacompiler.switch.headers import FLOW
from placer.metacompiler.switch.needed import read_by, written_by
from placer.metacompiler.switch.program import (
    Apply,
    Body,
    FieldComparison,
    If,
    IsValid,
    MatchTable,
    SetValid,
    SwitchAction,
)

METADATA = {f"m.{name}" for name in FLOW}
IMPLIED = {"tcp": "ipv4", "udp": "ipv4", "icmp": "ipv4", "inner_tag": "tag"}
"""A header, and one that stands in front of it."""


@dataclass
class _Known:
    """What holds for all packets that come to a statement: metadata that is loaded, and headers that they have."""

    loaded: set[str] = field(default_factory=set)
    headers: dict[str, bool] = field(default_factory=dict)

    def where(self, condition: FieldComparison | IsValid, holds: bool) -> _Known:
        """What is known in a branch."""
        headers = dict(self.headers)
        if isinstance(condition, IsValid):
            headers[condition.header] = holds
            if holds and condition.header in IMPLIED:
                headers[IMPLIED[condition.header]] = True
        return _Known(set(self.loaded), headers)

    def after(self, one: _Known, other: _Known) -> None:
        """What is known behind two branches."""
        self.loaded = one.loaded & other.loaded
        self.headers = {name: has for name, has in one.headers.items() if other.headers.get(name) is has}


@dataclass(frozen=True)
class _Loader:
    tables: Mapping[str, MatchTable]
    actions: Mapping[str, SwitchAction]

    def body(self, body: Body, known: _Known) -> Body:
        found: Body = ()
        for one in body:
            needed = self.needs(one)
            found += flow_of(needed - known.loaded, known.headers)
            known.loaded |= needed
            match one:
                case If(IsValid(header), then, otherwise) if header in known.headers:
                    found += self.body(then if known.headers[header] else otherwise, known)
                    continue
                case If(condition, then, otherwise, note):
                    yes, no = known.where(condition, True), known.where(condition, False)
                    found += (If(condition, self.body(then, yes), self.body(otherwise, no), note),)
                    known.after(yes, no)
                    continue
                case SetValid(header, valid):
                    known.headers[header] = valid
                case Apply(table):
                    for name in self.tables[table].actions:
                        self.changed(self.actions[name].body, known)
            known.loaded |= METADATA.intersection(written_by((one,)))
            found += (one,)
        return found

    def needs(self, one: object) -> set[str]:
        """Metadata of the flow that a statement looks at, without its branches."""
        match one:
            case Apply(name):
                table = self.tables[name]
                bodies = [self.actions[action].body for action in table.actions]
                read = {key.field for key in table.keys}.union(*map(read_by, bodies))
            case If(condition):
                read = {*read_by((If(condition, ()),))}
            case _:
                read = {*read_by((one,))}  # type: ignore[arg-type]
        return METADATA & read

    def changed(self, body: Body, known: _Known) -> None:
        """Forgets headers that an action sets."""
        for one in body:
            if isinstance(one, SetValid):
                known.headers.pop(one.header, None)


def loaded_where_used(control: Body, tables: Sequence[MatchTable], actions: Sequence[SwitchAction]) -> Body:
    """A control flow in which metadata of the flow is loaded before it is looked at."""
    return _Loader({one.name: one for one in tables}, {one.name: one for one in actions}).body(control, _Known())
