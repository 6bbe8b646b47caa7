"""Sets of values: of the entries of a table, and of the cases of `select`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from placer.metacompiler.p4.checker.faults import SourcePosition
from placer.metacompiler.p4.checker.rules.expressions import ExpressionRules
from placer.metacompiler.p4.checker.rules.types import UNKNOWN, BitsType, P4Type, bits_of, mismatch
from placer.metacompiler.p4.checker.syntax import tree

EntryFaults: TypeAlias = Iterator[tuple[SourcePosition, str]]
KnownSet: TypeAlias = tuple[object, ...]
"""A set of values whose ends are known: `("any",)`, `("one", value)`, `("mask", value, mask)`, `("range", a, b)`."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """Type and match kind of one key; the kind of a key of `select` is empty."""

    type: P4Type
    match_kind: str = ""


def entry_faults(
    rules: ExpressionRules, columns: Sequence[KeyColumn], entries: Sequence[tree.TableEntry]
) -> EntryFaults:
    """What is wrong with the values of the entries of a table: arity, types, kinds, and equal ones."""
    seen: dict[tuple[object, ...], SourcePosition] = {}
    for entry in entries:
        if len(entry.values) != len(columns) and not _is_any(entry.values):
            yield entry.at, f"expected {len(columns)} values, one for each key, found {len(entry.values)}"
            continue
        for one, column in zip(entry.values, columns, strict=False):
            yield from value_faults(rules, one, column)
        known = tuple(known_set(rules, one) for one in entry.values)
        if known in seen:
            yield entry.at, f"the entry in line {seen[known].line} has the same values"
        elif None not in known:
            seen[known] = entry.at


def _is_any(values: Sequence[tree.ValueSet]) -> bool:
    return len(values) == 1 and isinstance(values[0], tree.AnyValue)


def value_faults(rules: ExpressionRules, one: tree.ValueSet, column: KeyColumn) -> EntryFaults:
    """What is wrong with the values for one key."""
    match one:
        case tree.AnyValue():
            if column.match_kind == "exact":
                yield one.at, "a key of kind exact needs one value, found _"
            return
        case tree.MaskedValue():
            yield from _masked_faults(rules, one, column)
            return
        case tree.ValueRange():
            if column.match_kind not in ("", "range"):
                yield one.at, f"a key of kind {column.match_kind} takes no range of values"
            yield from _constant_faults(rules, one.low, column.type)
            yield from _constant_faults(rules, one.high, column.type)
            low, high = _constant(rules, one.low), _constant(rules, one.high)
            if isinstance(low, int) and isinstance(high, int) and low > high:
                yield one.at, f"no value lies in {low} .. {high}"
            return
    yield from _constant_faults(rules, one, column.type)


def _masked_faults(rules: ExpressionRules, one: tree.MaskedValue, column: KeyColumn) -> EntryFaults:
    if column.match_kind not in ("", "ternary", "lpm"):
        yield one.at, f"a key of kind {column.match_kind} takes no mask"
    if column.type != UNKNOWN and not isinstance(column.type, BitsType):
        yield one.at, f"a mask needs bit<N>, found {column.type}"
        return
    yield from _constant_faults(rules, one.value, column.type)
    yield from _constant_faults(rules, one.mask, column.type)
    value, mask, width = _constant(rules, one.value), _constant(rules, one.mask), bits_of(column.type)
    if not isinstance(value, int) or not isinstance(mask, int) or width is None:
        return
    if value & ~mask:
        yield one.at, f"the value {value:#x} has bits outside its mask {mask:#x}: no packet matches"
    inverse = ~mask & ((1 << width) - 1)
    if column.match_kind == "lpm" and inverse & (inverse + 1):
        yield one.at, f"{mask:#x} is not the mask of a prefix"


def _constant_faults(rules: ExpressionRules, of: tree.Expression, kind: P4Type) -> EntryFaults:
    before = len(rules.context.faults)
    found = rules.value(of)
    if len(rules.context.faults) > before or found.type == UNKNOWN:
        return
    reason = mismatch(found, kind)
    if reason is None and found.constant is None:
        reason = "expected a constant"
    if reason:
        yield of.at, reason


def _constant(rules: ExpressionRules, of: tree.Expression) -> int | bool | str | None:
    """The value of a constant; what is wrong with it was found before."""
    before = len(rules.context.faults)
    constant = rules.value(of).constant
    del rules.context.faults[before:]
    return constant


def known_set(rules: ExpressionRules, one: tree.ValueSet) -> KnownSet | None:
    """The set by its ends; None where they are not known."""
    match one:
        case tree.AnyValue():
            return ("any",)
        case tree.MaskedValue():
            ends = (_constant(rules, one.value), _constant(rules, one.mask))
            return None if None in ends else ("mask", *ends)
        case tree.ValueRange():
            ends = (_constant(rules, one.low), _constant(rules, one.high))
            return None if None in ends else ("range", *ends)
    constant = _constant(rules, one)
    return None if constant is None else ("one", constant)
