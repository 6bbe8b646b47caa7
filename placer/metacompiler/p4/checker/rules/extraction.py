"""The graph of a parser's states: which are reached, and which headers each path has extracted before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from placer.metacompiler.p4.checker.faults import SourcePosition
from placer.metacompiler.p4.checker.rules.actions import calls_in, parts
from placer.metacompiler.p4.checker.rules.parsers import next_states
from placer.metacompiler.p4.checker.syntax import tree

Located = tuple[SourcePosition, str]
METHODS = ("isValid", "setValid", "setInvalid", "push_front", "pop_front")


@dataclass(frozen=True, slots=True)
class HeaderEvent:
    """A header is extracted (`takes`), or one of its fields is read; of a stack, `next` takes another element."""

    header: str
    at: SourcePosition
    takes: bool
    stacked: bool = False


@dataclass(slots=True)
class ParserPaths:
    """What the paths through a parser do.

    Parameters
    ----------
    faults
        What is wrong with them.
    order
        (a, b): some path extracts header a before header b.
    """

    faults: list[Located] = field(default_factory=list)
    order: set[tuple[str, str]] = field(default_factory=set)


def parser_paths(parser: tree.ParserDeclaration) -> ParserPaths:
    """Follow all paths of a parser from its state `start`."""
    found = ParserPaths()
    states = {state.name: state for state in parser.states}
    if "start" not in states:
        return found
    reached = _reached(states)
    found.faults += [(one.at, f"state {one.name} is never reached") for one in parser.states if one.name not in reached]
    headers = next((one.name for one in parser.parameters if one.direction == "out"), "")
    events = {name: list(_events(states[name], headers)) for name in reached}
    _check_loops(reached, states, found)
    _follow(reached, states, events, found)
    return found


def _reached(states: dict[str, tree.StateDeclaration]) -> list[str]:
    """States that some path reaches, `start` first."""
    reached = ["start"]
    for name in reached:
        reached += [one for one in dict.fromkeys(next_states(states[name])) if one in states and one not in reached]
    return reached


def _events(state: tree.StateDeclaration, headers: str) -> Iterator[HeaderEvent]:
    for statement in state.statements:
        for call in calls_in(statement):
            yield from _call_events(call, headers)
        if isinstance(statement, tree.Assignment | tree.VariableDeclaration) and statement.value is not None:
            yield from _reads(statement.value, headers)
    for key in state.transition.keys if state.transition else ():
        yield from _reads(key, headers)


def _call_events(call: tree.CallUse, headers: str) -> Iterator[HeaderEvent]:
    method = call.function.name if isinstance(call.function, tree.MemberUse) else ""
    if method == "extract" and call.arguments:
        for argument in call.arguments[1:]:
            yield from _reads(argument.value, headers)
        yield from _made(call.arguments[0].value, headers, call.at)
    elif method == "setValid" and isinstance(call.function, tree.MemberUse):
        header = _header(call.function.of, headers)
        if header:
            yield HeaderEvent(header, call.at, True, True)
    else:
        for argument in call.arguments:
            yield from _reads(argument.value, headers)


def _made(target: tree.Expression, headers: str, at: SourcePosition) -> Iterator[HeaderEvent]:
    stacked = isinstance(target, tree.MemberUse) and target.name == "next"
    header = _header(target.of if stacked and isinstance(target, tree.MemberUse) else target, headers)
    if header:
        yield HeaderEvent(header, at, True, stacked)


def _header(of: tree.Expression, headers: str) -> str:
    """`ipv4` of `hdr.ipv4` or `hdr.ipv4[0]`; empty for anything else."""
    if isinstance(of, tree.IndexUse):
        of = of.of
    plain = isinstance(of, tree.MemberUse) and isinstance(of.of, tree.NameUse) and of.of.name == headers
    return of.name if plain and isinstance(of, tree.MemberUse) else ""


def _reads(of: tree.Expression, headers: str) -> Iterator[HeaderEvent]:
    """Fields of headers that an expression reads."""
    if isinstance(of, tree.MemberUse) and of.name not in METHODS:
        header = _header(of.of, headers)
        if header:
            yield HeaderEvent(header, of.at, False)
    for part in parts(of):
        yield from _reads(part, headers)


def _check_loops(reached: list[str], states: dict[str, tree.StateDeclaration], found: ParserPaths) -> None:
    """A loop that reads nothing of the packet never ends."""
    idle = {name for name in reached if not any(_advances(one) for one in states[name].statements)}
    after = {name: {one for one in next_states(states[name]) if one in idle} for name in idle}
    for name in reached:
        seen: set[str] = set()
        front = set(after.get(name, ()))
        while front:
            seen |= front
            front = {other for one in front for other in after[one]} - seen
        if name in seen:
            found.faults.append((states[name].at, f"state {name} comes back to itself and reads nothing"))
            return


def _advances(statement: tree.Statement) -> bool:
    names = (call.function.name for call in calls_in(statement) if isinstance(call.function, tree.MemberUse))
    return any(name in ("extract", "advance") for name in names)


def _follow(
    reached: list[str],
    states: dict[str, tree.StateDeclaration],
    events: dict[str, list[HeaderEvent]],
    found: ParserPaths,
) -> None:
    """Headers that all paths (`surely`) and that some path (`maybe`) extracted when a state begins."""
    surely: dict[str, set[str]] = {"start": set()}
    maybe: dict[str, set[str]] = {"start": set()}
    waiting = ["start"]
    while waiting:
        name = waiting.pop()
        taken = {event.header for event in events[name] if event.takes}
        for follower in next_states(states[name]):
            if follower not in states:
                continue
            sure, may = surely[name] | taken, maybe[name] | taken
            before = surely.get(follower), maybe.get(follower, set())
            surely[follower] = sure if before[0] is None else before[0] & sure
            maybe[follower] = before[1] | may
            if before != (surely[follower], maybe[follower]):
                waiting.append(follower)
    for name in reached:
        _check_state(events[name], set(surely[name]), set(maybe[name]), found)


def _check_state(events: list[HeaderEvent], surely: set[str], maybe: set[str], found: ParserPaths) -> None:
    for event in events:
        if not event.takes:
            if event.header not in maybe:
                found.faults.append((event.at, f"header {event.header} is read before it is extracted"))
            elif event.header not in surely:
                found.faults.append((event.at, f"header {event.header} is read, but not extracted on every path here"))
            continue
        if event.header in maybe and not event.stacked:
            found.faults.append((event.at, f"header {event.header} is extracted twice on a path"))
        found.order |= {(other, event.header) for other in maybe if other != event.header}
        surely.add(event.header)
        maybe.add(event.header)
