"""Traffic expressions as conditions in C over `struct fields` (nfs/xdp/fields.h)."""

from __future__ import annotations

from placer.metacompiler.traffic.expression import (
    And,
    End,
    Everything,
    Expression,
    HasAddress,
    HasPort,
    HasProtocol,
    HasTag,
    IsIp,
    Not,
    Or,
)

NAMES = {End.SOURCE: ("source",), End.DESTINATION: ("destination",), End.EITHER: ("source", "destination")}


def condition_of(expression: Expression) -> str:
    """The condition, in parentheses where it has several parts."""
    match expression:
        case Everything():
            return "true"
        case IsIp():
            return "fields.ip"
        case HasTag(None):
            return "fields.tagged"
        case HasTag(vlan):
            return f"(fields.tagged && fields.vlan == {vlan})"
        case HasProtocol(protocol):
            return f"(fields.ip && fields.protocol == {protocol})"
        case HasAddress(end, prefix, _):
            tests = [f"(fields.{name} & {expression.mask:#x}) == {prefix:#x}" for name in NAMES[end]]
            return f"(fields.ip && ({' || '.join(tests)}))"
        case HasPort(end, low, high):
            return f"(fields.has_ports && ({' || '.join(_port(name, low, high) for name in NAMES[end])}))"
        case Not(of):
            return f"!{condition_of(of)}"
        case And(parts):
            return f"({' && '.join(map(condition_of, parts))})"
        case Or(parts):
            return f"({' || '.join(map(condition_of, parts))})"


def _port(name: str, low: int, high: int) -> str:
    field = f"fields.{name}_port"
    return f"{field} == {low}" if low == high else f"({field} >= {low} && {field} <= {high})"
