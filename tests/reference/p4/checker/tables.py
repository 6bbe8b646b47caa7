"""Tables: keys, actions, default action, entries, and what a table learns; and the values of a parser's cases."""

from collections.abc import Sequence

from profiles.faults import suggestion
from tests.reference.p4.checker.reader import Node, SourcePosition, walk_statements
from tests.reference.p4.checker.scope import BOOL, INDEX, NUMBER, PORT, REGISTER, UNKNOWN, ProgramScope, ValueType, bits

COMPARISONS = ("==", "!=", "<", ">")
SHIFTS = ("<<", ">>")


def expect_type(scope: ProgramScope, of: Node, wanted: ValueType, what: str = "") -> None:
    """A fault, which begins with `what`, if an expression cannot stand where this type is wanted."""
    found = find_type(scope, of)
    if found == wanted or UNKNOWN in (found, wanted):
        return
    prefix = f"{what}: " if what else ""
    if of.kind == "NumberLiteral" and wanted.is_bits:
        check_fits(scope, of.at, of.value, wanted, prefix)
    else:
        scope.fault(of.at, f"{prefix}expected {wanted}, found {found}")


def check_fits(scope: ProgramScope, at: SourcePosition, value: int, kind: ValueType, prefix: str = "") -> None:
    """A fault if a number has more bits than its type."""
    if kind != UNKNOWN and value >> kind.width:
        scope.fault(at, f"{prefix}{value} does not fit {kind}")


def find_type(scope: ProgramScope, of: Node) -> ValueType:
    """The type of an expression that is read; what is wrong in it goes to the scope."""
    match of.kind:
        case "NumberLiteral":
            return NUMBER
        case "PathUse":
            match of.path.split("."):
                case ["istd", "input_port"]:
                    return PORT
                case ["meta", name]:
                    scope.fields_read.setdefault(name, of.at)
                case ["hdr", header, _]:
                    scope.headers_read.setdefault(header, of.at)
            return find_path(scope, of)
        case "CastUse":
            return _find_cast(scope, of)
        case "BinaryUse":
            return _find_binary(scope, of)
        case "ValidityUse":
            scope.find(scope.headers, of.header, of.at, "header")
            return BOOL
        case "RegisterRead":
            return _check_register(scope, of)
        case "MeterUse":
            meter = scope.find(scope.meters, of.meter, of.at, "meter")
            if meter is not None and of.index.value >= meter.size.value:
                scope.fault(of.index.at, f"{of.meter} has {meter.size.value} elements, but no {of.index.value}")
            return BOOL
        case _:
            fields = scope.find(scope.header_types, of.type, of.at, "type")
            return UNKNOWN if fields is None else _find_field(scope, f"header {of.type}", fields, of.field, of.at)


def find_path(scope: ProgramScope, of: Node) -> ValueType:
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


def _find_cast(scope: ProgramScope, of: Node) -> ValueType:
    """Between widths, and of a port to bits of its own width."""
    kind, found = scope.resolve_width(of.width, of.at), find_type(scope, of.operand)
    if of.operand.kind == "NumberLiteral":
        check_fits(scope, of.operand.at, of.operand.value, kind)
    elif UNKNOWN not in (kind, found) and not found.is_bits and (found, kind) != (PORT, bits(PORT.width)):
        scope.fault(of.at, f"cannot cast {found} to {kind}")
    return kind


def _find_binary(scope: ProgramScope, of: Node) -> ValueType:
    left = find_type(scope, of.left)
    if not left.is_bits and left != UNKNOWN:
        scope.fault(of.at, f"'{of.sign}' needs bit<N> on its left, found {left}")
        left = UNKNOWN
    if of.sign not in SHIFTS:
        expect_type(scope, of.right, left, f"the right side of '{of.sign}'")
        return BOOL if of.sign in COMPARISONS else left
    right = find_type(scope, of.right)
    if of.right.kind == "NumberLiteral":
        if left != UNKNOWN and of.right.value >= left.width:
            scope.fault(of.at, f"{left} shifted by {of.right.value} is always 0")
    elif not right.is_bits and right != UNKNOWN:
        scope.fault(of.at, f"'{of.sign}' shifts by bit<N> or a number, found {right}")
    return left


def _check_register(scope: ProgramScope, of: Node) -> ValueType:
    """The type of the numbers of a register; a constant index lies within its size."""
    register = scope.find(scope.registers, of.register, of.at, "register")
    if register is None:
        return UNKNOWN
    expect_type(scope, of.index, INDEX, f"the index of {of.register}")
    if of.index.kind == "NumberLiteral" and of.index.value >= register.size.value:
        scope.fault(of.index.at, f"{of.register} has {register.size.value} elements, but no {of.index.value}")
    return REGISTER


def check_statements(scope: ProgramScope, body: Sequence[Node], *, in_action: bool) -> None:
    """Check statements of an action or of the main control, one after the other."""
    for statement in body:
        match statement.kind:
            case "Assignment":
                _check_assignment(scope, statement)
            case "ValidityChange":
                scope.find(scope.headers, statement.header, statement.at, "header")
                if statement.valid == "setValid":
                    scope.headers_made.setdefault(statement.header, statement.at)
            case "RegisterWrite":
                expect_type(scope, statement.value, _check_register(scope, statement))
            case "EntryLearning":
                _check_entry_learning(scope, statement, in_action)
            case "TableApply":
                if scope.find(scope.tables, statement.table, statement.at, "table") and in_action:
                    scope.fault(statement.at, "an action applies no tables")
            case "PacketSend":
                expect_type(scope, statement.port, bits(PORT.width), "cannot cast the port")
            case "IfStatement":
                expect_type(scope, statement.condition, BOOL, "the condition of if")
                check_statements(scope, (*statement.yes, *statement.no), in_action=in_action)


def _check_assignment(scope: ProgramScope, statement: Node) -> None:
    target = statement.target
    place, _, name = target.path.partition(".")
    if place == "meta":
        scope.fields_written.add(name)
    elif place != "hdr":
        scope.fault(target.at, f"{target.path} cannot be written")
        return
    expect_type(scope, statement.value, find_path(scope, target))


def _check_entry_learning(scope: ProgramScope, statement: Node, in_action: bool) -> None:
    if not in_action:
        scope.fault(statement.at, "add_entry stands only in an action")
    action = scope.find(scope.actions, statement.action, statement.at, "action")
    if action is not None:
        check_arguments(scope, statement.at, action, statement.values)


def check_arguments(scope: ProgramScope, at: SourcePosition, action: Node, arguments: Sequence[Node]) -> None:
    """An action gets a value of the right width for each parameter."""
    wanted = action.parameters
    if len(arguments) != len(wanted):
        scope.fault(at, f"action {action.name} takes {len(wanted)} arguments, found {len(arguments)}")
        return
    for parameter, argument in zip(wanted, arguments, strict=True):
        expect_type(scope, argument, bits(parameter.width), f"{parameter.name} of action {action.name}")


MATCH_KINDS = ("exact", "ternary", "lpm")
MAX_TABLE_SIZE = (1 << 31) - 1

KeyColumn = tuple[ValueType, str]  # type and match kind of a key; the kind of a key of `select` is empty


def check_table(scope: ProgramScope, table: Node) -> None:
    """Check a table whose actions are declared."""
    columns = [_check_key(scope, element) for element in table.key]
    if sum(kind == "lpm" for _, kind in columns) > 1:
        scope.fault(table.at, f"table {table.name} has more than one key of kind lpm")
    _check_actions(scope, table)
    for call in (table.default, *(entry.action for entry in table.entries)):
        # the action of an entry, or the default, is listed, and gets a number for each parameter
        names = [listed.name for listed in table.actions]
        if call.name not in names:
            hint = suggestion(call.name, names) if names else None
            scope.fault(call.at, f"table {table.name} does not list action {call.name}", hint)
        elif call.name in scope.actions:
            check_arguments(scope, call.at, scope.actions[call.name], call.arguments)
    check_value_lists(scope, table.entries, columns, "entry")
    if not 1 <= table.size.value <= MAX_TABLE_SIZE:
        scope.fault(table.size.at, f"size is 1 to {MAX_TABLE_SIZE}, found {table.size.value}")
    elif len(table.entries) > table.size.value:
        scope.fault(table.at, f"table {table.name} of size {table.size.value} has {len(table.entries)} entries")
    _check_learning(scope, table, columns)


def _check_key(scope: ProgramScope, element: Node) -> KeyColumn:
    found = find_type(scope, element.field)
    if element.match_kind not in MATCH_KINDS:
        hint = suggestion(element.match_kind, MATCH_KINDS)
        scope.fault(element.at, f"there is no match kind {element.match_kind}", hint)
    if not found.is_bits and found != UNKNOWN:
        scope.fault(element.at, f"a key cannot be {found}")
        found = UNKNOWN
    return found, element.match_kind


def _check_actions(scope: ProgramScope, table: Node) -> None:
    """A table that learns says of each action whether it is the default or what it learns; no other does."""
    if not table.actions:
        scope.fault(table.at, f"table {table.name} has no actions")
    seen: set[str] = set()
    for listed in table.actions:
        scope.find(scope.actions, listed.name, listed.at, "action")
        if listed.name in seen:
            scope.fault(listed.at, f"table {table.name} lists action {listed.name} twice")
        seen.add(listed.name)
        wanted = ("defaultonly" if listed.name == table.default.name else "tableonly") if table.learns else ""
        if (listed.note or "") != wanted:
            expected, found = (f"@{note}" if note else "no annotation" for note in (wanted, listed.note or ""))
            message = f"action {listed.name} of table {table.name}: expected {expected}, found {found}"
            scope.fault(listed.at, message)


def _check_learning(scope: ProgramScope, table: Node, columns: Sequence[KeyColumn]) -> None:
    """A table learns by exact keys, and its default action, no other, adds the entries, for an action of the table."""
    names = [listed.name for listed in table.actions]
    adding = {
        name: statement
        for name in names
        if name in scope.actions
        for statement in walk_statements(scope.actions[name].body)
        if statement.kind == "EntryLearning"
    }
    if not table.learns:
        if adding:
            scope.fault(table.at, f"table {table.name} has no add_on_miss, but an action with add_entry")
        return
    if not columns or any(kind != "exact" for _, kind in columns):
        scope.fault(table.at, f"table {table.name} has add_on_miss; its keys must be exact")
    if table.default.name not in adding:
        scope.fault(table.at, f"table {table.name} has add_on_miss; its default action must call add_entry")
    for name, statement in adding.items():
        if name != table.default.name:
            scope.fault(table.at, f"action {name} calls add_entry, but is not the default of {table.name}")
        if statement.action not in names:
            message = f"table {table.name} does not list action {statement.action}, which add_entry names"
            scope.fault(statement.at, message)


def check_value_lists(scope: ProgramScope, lists: Sequence[Node], columns: Sequence[KeyColumn], what: str) -> None:
    """The values of entries or cases: one set for each key, that fits it, and no two lists with the same sets."""
    seen: dict[tuple[tuple[int, int | None], ...], SourcePosition] = {}
    for line in lists:
        if len(line.values) != len(columns):
            scope.fault(line.at, f"expected {len(columns)} values, one for each key, found {len(line.values)}")
            continue
        for values, column in zip(line.values, columns, strict=True):
            _check_value_set(scope, values, *column)
        sets = tuple((values.value, values.mask) for values in line.values)
        if sets in seen:
            scope.fault(line.at, f"the {what} in line {seen[sets].line} has the same values")
        seen.setdefault(sets, line.at)


def _check_value_set(scope: ProgramScope, values: Node, kind: ValueType, match_kind: str) -> None:
    check_fits(scope, values.at, values.value, kind)
    if values.mask is None:
        return
    check_fits(scope, values.at, values.mask, kind)
    if match_kind == "exact":
        scope.fault(values.at, "a key of kind exact needs one value, and takes no mask")
    if values.value & ~values.mask:
        message = f"the value {values.value:#x} has bits outside its mask {values.mask:#x}: no packet matches"
        scope.fault(values.at, message)
    inverse = ~values.mask & ((1 << kind.width) - 1)
    if match_kind == "lpm" and inverse & (inverse + 1):
        scope.fault(values.at, f"{values.mask:#x} is not the mask of a prefix")
