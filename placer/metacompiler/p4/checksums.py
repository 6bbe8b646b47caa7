"""Updates of checksums as arithmetic: P4 has no operator for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from placer.metacompiler.switch.program import (
    Assign,
    Body,
    Compute,
    FieldComparison,
    If,
    Operation,
    SwitchProgram,
    UpdateChecksum,
)

SUM, CARRY = "m.sum", "m.carry"
METADATA: Mapping[str, int] = {"sum": 32, "carry": 32}


def with_arithmetic(program: SwitchProgram) -> SwitchProgram:
    """The same program without `UpdateChecksum`."""
    control = _lowered(program.control)
    actions = tuple(replace(one, body=_lowered(one.body)) for one in program.actions)
    if (control, actions) == (program.control, tuple(program.actions)):
        return program
    return replace(program, control=control, actions=actions, metadata={**program.metadata, **METADATA})


def _lowered(body: Body) -> Body:
    found: Body = ()
    for one in body:
        match one:
            case If(condition, then, otherwise, note):
                found += (If(condition, _lowered(then), _lowered(otherwise), note),)
            case UpdateChecksum():
                found += _updated(one)
            case _:
                found += (one,)
    return found


def _updated(one: UpdateChecksum) -> Body:
    """~(~checksum + ~before + after), by words of 16 bits (RFC 1624, equation 3)."""
    checksum = one.checksum
    fold: Body = (
        Assign(CARRY, SUM),
        Compute(Operation.SHIFT_RIGHT, CARRY, 16),
        Compute(Operation.AND, SUM, 0xFFFF),
        Compute(Operation.ADD, SUM, CARRY),
    )
    body: Body = (
        Assign(SUM, checksum),
        Compute(Operation.XOR, SUM, 0xFFFF),
        *_added(one.before, inverted=True, high=True),
        *_added(one.before, inverted=True, high=False),
        *_added(one.after, inverted=False, high=True),
        *_added(one.after, inverted=False, high=False),
        *fold,
        *fold,
        Compute(Operation.XOR, SUM, 0xFFFF),
        Assign(checksum, SUM),
    )
    if one.never_zero:
        body += (If(FieldComparison(checksum, "==", 0), (Assign(checksum, 0xFFFF),)),)
    return body


def _added(value: str, *, inverted: bool, high: bool) -> Body:
    """Adds half of a value of 32 bits; one of 16 bits has zeros in its upper half, whose inverse is 0, too."""
    half = Compute(Operation.SHIFT_RIGHT, CARRY, 16) if high else Compute(Operation.AND, CARRY, 0xFFFF)
    inverse = (Compute(Operation.XOR, CARRY, 0xFFFF),) if inverted else ()
    return (Assign(CARRY, value), half, *inverse, Compute(Operation.ADD, SUM, CARRY))
