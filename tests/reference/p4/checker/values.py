"""Types of expressions, and statements: what is assigned, compared and handed over has the width that is wanted."""

from __future__ import annotations

from collections.abc import Sequence

from profiles.faults import suggestion
from tests.reference.p4.checker import tree
from tests.reference.p4.checker.scope import BOOL, INDEX, NUMBER, PORT, REGISTER, UNKNOWN, ProgramScope, ValueType, bits
from tests.reference.p4.checker.tokens import SourcePosition

COMPARISONS = ("==", "!=", "<", ">")
SHIFTS = ("<<", ">>")


def expect_type(scope: ProgramScope, of: tree.Expression, wanted: ValueType, what: str = "") -> None:
    """A fault, which begins with `what`, if an expression cannot stand where this type is wanted."""
    found = find_type(scope, of)
    if found == wanted or UNKNOWN in (found, wanted):
        return
    prefix = f"{what}: " if what else ""
    if isinstance(of, tree.NumberLiteral) and wanted.is_bits:
        check_fits(scope, of.at, of.value, wanted, prefix)
    else:
        scope.fault(of.at, f"{prefix}expected {wanted}, found {found}")


def check_fits(scope: ProgramScope, at: SourcePosition, value: int, kind: ValueType, prefix: str = "") -> None:
    """A fault if a number has more bits than its type."""
    if kind != UNKNOWN and value >> kind.width:
        scope.fault(at, f"{prefix}{value} does not fit {kind}")


def find_type(scope: ProgramScope, of: tree.Expression) -> ValueType:
    """The type of an expression that is read; what is wrong in it goes to the scope."""
    match of:
        case tree.NumberLiteral():
            return NUMBER
        case tree.PathUse():
            return _read_path(scope, of)
        case tree.CastUse():
            return _find_cast(scope, of)
        case tree.BinaryUse():
            return _find_binary(scope, of)
        case tree.ValidityUse():
            scope.find(scope.headers, of.header, of.at, "header")
            return BOOL
        case tree.RegisterRead():
            return _check_register(scope, of)
        case tree.LookaheadUse():
            fields = scope.find(scope.header_types, of.type, of.at, "type")
            return UNKNOWN if fields is None else _find_field(scope, f"header {of.type}", fields, of.field, of.at)


def _read_path(scope: ProgramScope, of: tree.PathUse) -> ValueType:
    match of.path.split("."):
        case ["istd", "input_port"]:
            return PORT
        case ["meta", name]:
            scope.fields_read.setdefault(name, of.at)
        case ["hdr", header, _]:
            scope.headers_read.setdefault(header, of.at)
    return find_path(scope, of)


def find_path(scope: ProgramScope, of: tree.PathUse) -> ValueType:
    """The type of a field of a header or of the metadata, or of an argument."""
    match of.path.split("."):
        case ["meta", name]:
            return _find_field(scope, "struct metadata_t", scope.metadata, name, of.at)
        case ["hdr", header, name]:
            fields = scope.find(scope.headers, header, of.at, "header")
            return UNKNOWN if fields is None else _find_field(scope, f"header {header}", fields, name, of.at)
        case ["hdr", header]:
            scope.fault(of.at, f"hdr.{header} is a header, no value")
            return UNKNOWN
    return scope.find(scope.arguments, of.path, of.at, "value") or UNKNOWN


def _find_field(
    scope: ProgramScope, owner: str, fields: dict[str, ValueType], name: str, at: SourcePosition
) -> ValueType:
    if name not in fields:
        scope.fault(at, f"{owner} has no field {name}", suggestion(name, fields) if fields else None)
    return fields.get(name, UNKNOWN)


def _find_cast(scope: ProgramScope, of: tree.CastUse) -> ValueType:
    """Between widths, and of a port to bits of its own width."""
    kind, found = scope.resolve_width(of.width, of.at), find_type(scope, of.operand)
    if isinstance(of.operand, tree.NumberLiteral):
        check_fits(scope, of.operand.at, of.operand.value, kind)
    elif UNKNOWN not in (kind, found) and not found.is_bits and (found, kind) != (PORT, bits(PORT.width)):
        scope.fault(of.at, f"cannot cast {found} to {kind}")
    return kind


def _find_binary(scope: ProgramScope, of: tree.BinaryUse) -> ValueType:
    left = find_type(scope, of.left)
    if not left.is_bits and left != UNKNOWN:
        scope.fault(of.at, f"'{of.sign}' needs bit<N> on its left, found {left}")
        left = UNKNOWN
    if of.sign not in SHIFTS:
        expect_type(scope, of.right, left, f"the right side of '{of.sign}'")
        return BOOL if of.sign in COMPARISONS else left
    right = find_type(scope, of.right)
    if isinstance(of.right, tree.NumberLiteral):
        if left != UNKNOWN and of.right.value >= left.width:
            scope.fault(of.at, f"{left} shifted by {of.right.value} is always 0")
    elif not right.is_bits and right != UNKNOWN:
        scope.fault(of.at, f"'{of.sign}' shifts by bit<N> or a number, found {right}")
    return left


def _check_register(scope: ProgramScope, of: tree.RegisterRead | tree.RegisterWrite) -> ValueType:
    """The type of the numbers of a register; a constant index lies within its size."""
    register = scope.find(scope.registers, of.register, of.at, "register")
    if register is None:
        return UNKNOWN
    expect_type(scope, of.index, INDEX, f"the index of {of.register}")
    if isinstance(of.index, tree.NumberLiteral) and of.index.value >= register.size.value:
        scope.fault(of.index.at, f"{of.register} has {register.size.value} elements, but no {of.index.value}")
    return REGISTER


def check_statements(scope: ProgramScope, body: Sequence[tree.Statement], *, in_action: bool) -> None:
    """Check statements of an action or of the main control, one after the other."""
    for statement in body:
        match statement:
            case tree.Assignment():
                _check_assignment(scope, statement)
            case tree.ValidityChange():
                scope.find(scope.headers, statement.header, statement.at, "header")
                if statement.valid:
                    scope.headers_made.setdefault(statement.header, statement.at)
            case tree.RegisterWrite():
                expect_type(scope, statement.value, _check_register(scope, statement))
            case tree.EntryLearning():
                _check_learning(scope, statement, in_action)
            case tree.TableApply():
                if scope.find(scope.tables, statement.table, statement.at, "table") and in_action:
                    scope.fault(statement.at, "an action applies no tables")
            case tree.PacketSend():
                expect_type(scope, statement.port, bits(PORT.width), "cannot cast the port")
            case tree.IfStatement():
                expect_type(scope, statement.condition, BOOL, "the condition of if")
                check_statements(scope, (*statement.yes, *statement.no), in_action=in_action)


def _check_assignment(scope: ProgramScope, statement: tree.Assignment) -> None:
    target = statement.target
    place, _, name = target.path.partition(".")
    if place == "meta":
        scope.fields_written.add(name)
    elif place != "hdr":
        scope.fault(target.at, f"{target.path} cannot be written")
        return
    expect_type(scope, statement.value, find_path(scope, target))


def _check_learning(scope: ProgramScope, statement: tree.EntryLearning, in_action: bool) -> None:
    if not in_action:
        scope.fault(statement.at, "add_entry stands only in an action")
    action = scope.find(scope.actions, statement.action, statement.at, "action")
    if action is not None:
        check_arguments(scope, statement.at, action, statement.values)


def check_arguments(
    scope: ProgramScope, at: SourcePosition, action: tree.ActionDeclaration, arguments: Sequence[tree.Expression]
) -> None:
    """An action gets a value of the right width for each parameter."""
    wanted = action.parameters
    if len(arguments) != len(wanted):
        scope.fault(at, f"action {action.name} takes {len(wanted)} arguments, found {len(arguments)}")
        return
    for parameter, argument in zip(wanted, arguments, strict=True):
        what = f"{parameter.name} of action {action.name}"
        expect_type(scope, argument, bits(parameter.width), what)
