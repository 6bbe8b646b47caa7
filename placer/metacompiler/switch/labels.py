"""Labels that the switch puts on packets."""

from __future__ import annotations

from collections.abc import Sequence

from placer.metacompiler.switch.headers import NSH_BASE, NSH_TYPE
from placer.metacompiler.switch.program import Assign, Body, FieldComparison, If, MatchTable, SetValid, Value


def labelled_packets(control: Body, tables: Sequence[MatchTable]) -> Body:
    """A control flow that puts labels on packets: where it says so, or at its end where actions of tables say so."""
    if any("to_device" in table.actions for table in tables):
        put = If(FieldComparison("m.label", ">", 0), _label("m.label"), note="the next NF is on another device")
        return (Assign("m.label", 0), *control, put)
    return _labels_put(control)


def _labels_put(body: Body) -> Body:
    found: Body = ()
    for one in body:
        match one:
            case If(condition, then, otherwise, note):
                found += (If(condition, _labels_put(then), _labels_put(otherwise), note),)
            case Assign("m.label", word):
                found += _label(word)
            case _:
                found += (one,)
    return found


def _label(word: Value) -> Body:
    return (
        SetValid("outer"),
        Assign("h.outer.destination", "h.ethernet.destination"),
        Assign("h.outer.source", "h.ethernet.source"),
        Assign("h.outer.type", NSH_TYPE),
        SetValid("nsh"),
        Assign("h.nsh.base", NSH_BASE),
        Assign("h.nsh.path", word),
    )
