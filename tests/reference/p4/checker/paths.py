"""Paths through a program: what a parser has extracted in each state, and which tables a packet meets in the control.

A table of a pipeline cannot be revisited (Lemur, section 4.2), so two `if` behind each other count as one path even if
their conditions never hold together.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from tests.reference.p4.checker.reader import Node, SourcePosition
from tests.reference.p4.checker.scope import ProgramScope

HeaderPairs = set[tuple[str, str]]
Branches = tuple[tuple[SourcePosition, bool], ...]  # the `if` that something stands in, and in which of its branches


def check_parser_paths(scope: ProgramScope, states: Mapping[str, Node]) -> HeaderPairs:
    """Follow all paths from the state `start`; the pairs of headers of which some path extracts the first earlier."""
    reached = ["start"]
    for name in reached:
        reached += [target for target in find_targets(states[name]) if target in states and target not in reached]
    for name in states.keys() - reached:
        scope.fault(states[name].at, f"state {name} is never reached")
    _check_loops(scope, [states[name] for name in reached])
    surely: dict[str, frozenset[str]] = {"start": frozenset()}
    maybe: dict[str, frozenset[str]] = {"start": frozenset()}
    waiting = ["start"]
    while waiting:
        state = states[waiting.pop()]
        taken = {state.extract.header} if state.extract else set()
        for target in find_targets(state):
            if target in states:
                before = surely.get(target), maybe.get(target)
                surely[target] = surely.get(target, surely[state.name] | taken) & (surely[state.name] | taken)
                maybe[target] = maybe.get(target, frozenset()) | maybe[state.name] | taken
                if before != (surely[target], maybe[target]):
                    waiting.append(target)
    return {pair for name in reached for pair in _check_state(scope, states[name], surely[name], maybe[name])}


def find_targets(state: Node) -> tuple[str, ...]:
    """The states that may follow."""
    return *(case.state for case in state.cases), state.otherwise


def _check_loops(scope: ProgramScope, states: Sequence[Node]) -> None:
    """A loop that extracts nothing never ends; any other extracts a header twice."""
    idle = {state.name: state for state in states if state.extract is None}
    for name, state in idle.items():
        seen: set[str] = set()
        front = set(find_targets(state))
        while front:
            seen |= front
            front = {target for other in front & idle.keys() for target in find_targets(idle[other])} - seen
        if name in seen:
            scope.fault(state.at, f"state {name} comes back to itself and reads nothing")
            return


def _check_state(scope: ProgramScope, state: Node, surely: frozenset[str], maybe: frozenset[str]) -> HeaderPairs:
    """Headers are read behind where they are extracted, which is once: `surely` on all paths here, `maybe` on one."""
    extract = state.extract
    if extract is not None:
        _check_reads(scope, [extract.length] if extract.length else [], surely, maybe)
        if extract.header in maybe:
            scope.fault(extract.at, f"header {extract.header} is extracted twice on a path")
        pairs = {(earlier, extract.header) for earlier in maybe - {extract.header}}
        surely, maybe = surely | {extract.header}, maybe | {extract.header}
    _check_reads(scope, state.keys, surely, maybe)
    return pairs if extract else set()


def _check_reads(
    scope: ProgramScope, expressions: Sequence[Node], surely: frozenset[str], maybe: frozenset[str]
) -> None:
    for expression in expressions:
        for use in _walk_paths(expression):
            place, _, rest = use.path.partition(".")
            header = rest.partition(".")[0]
            if place == "hdr" and header not in maybe:
                scope.fault(use.at, f"header {header} is read before it is extracted")
            elif place == "hdr" and header not in surely:
                scope.fault(use.at, f"header {header} is read, but not extracted on every path here")


def _walk_paths(of: Node) -> Iterator[Node]:
    """The fields that an expression of a parser reads."""
    match of.kind:
        case "PathUse":
            yield of
        case "CastUse":
            yield from _walk_paths(of.operand)
        case "BinaryUse":
            yield from _walk_paths(of.left)
            yield from _walk_paths(of.right)


def check_control_paths(scope: ProgramScope, tables: Sequence[Node], body: Sequence[Node]) -> None:
    """No path applies a table twice, and no packet meets two tables that are declared exclusive.

    The compiler declares tables exclusive that stand in different branches of one `if`; nothing else makes them so.
    """
    applied: dict[str, list[Branches]] = {}
    _follow(scope, body, frozenset(), (), applied)
    for table in tables:
        for other in table.exclusive:
            pairs = product(applied.get(table.name, ()), applied.get(other.name, ()))
            if other.name not in scope.tables or other.name == table.name:
                scope.fault(other.at, f"there is no other table {other.name}")
            elif not all(any((at, not side) in second for at, side in first) for first, second in pairs):
                message = f"tables {table.name} and {other.name} are declared exclusive, but one packet may reach both"
                scope.fault(other.at, message)


def _follow(
    scope: ProgramScope,
    body: Sequence[Node],
    before: frozenset[str],
    branches: Branches,
    applied: dict[str, list[Branches]],
) -> frozenset[str]:
    """The tables that some path applied up to the end of a body."""
    for statement in body:
        match statement.kind:
            case "TableApply":
                if statement.table in before:
                    scope.fault(statement.at, f"table {statement.table} is applied a second time on this path")
                before |= {statement.table}
                applied.setdefault(statement.table, []).append(branches)
            case "IfStatement":
                sides = (statement.yes, True), (statement.no, False)
                followed = [
                    _follow(scope, branch, before, (*branches, (statement.at, side)), applied) for branch, side in sides
                ]
                before = followed[0] | followed[1]
    return before
