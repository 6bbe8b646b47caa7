"""Parsers: states, transitions, and what each path has extracted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placer.metacompiler.p4.checker.faults import SourcePosition
from placer.metacompiler.p4.checker.rules.context import DeclaredName
from placer.metacompiler.p4.checker.rules.entries import KeyColumn, known_set, value_faults
from placer.metacompiler.p4.checker.rules.tables import TableRules
from placer.metacompiler.p4.checker.rules.types import (
    BOOL,
    UNKNOWN,
    VOID,
    BitsType,
    DistinctType,
    EnumeratedType,
)
from placer.metacompiler.p4.checker.syntax import tree
from profiles.faults import suggestion

FINAL = ("accept", "reject")


class ParserRules(TableRules):
    """Checks parsers; the graph of their states is checked in `extraction.py`."""

    def parser(self, one: tree.ParserDeclaration) -> None:
        """Check and declare a parser."""
        with self.context.within("parser"), self.context.scope():
            self.parameters(one.parameters)
            for local in one.locals:
                self._local(local)
            states = self._states(one)
            for state in one.states:
                with self.context.scope():
                    self.statements(state.statements)
                    if state.transition is None:
                        self.context.fault(state.at, f"state {state.name} has no transition")
                    else:
                        self._transition(state.transition, states)
        self.context.declare(DeclaredName(one.name, "parser", VOID, one.at, declaration=one))

    def _local(self, local: tree.VariableDeclaration | tree.ConstantDeclaration | tree.InstanceDeclaration) -> None:
        match local:
            case tree.VariableDeclaration():
                self.variable(local)
            case tree.ConstantDeclaration():
                self.constant(local)
            case tree.InstanceDeclaration():
                self.instance(local)

    def _states(self, one: tree.ParserDeclaration) -> dict[str, SourcePosition]:
        found: dict[str, SourcePosition] = {}
        for state in one.states:
            if state.name in FINAL:
                self.context.fault(state.at, f"{state.name} is a state of every parser")
            elif state.name in found:
                self.context.fault(
                    state.at, f"state {state.name} is declared already, in line {found[state.name].line}"
                )
            found[state.name] = state.at
        if "start" not in found:
            self.context.fault(one.at, f"parser {one.name} has no state start")
        return found

    def _goes_to(self, name: str, at: SourcePosition, states: Mapping[str, SourcePosition]) -> None:
        if name not in states and name not in FINAL:
            self.context.fault(at, f"there is no state {name}", suggestion(name, (*states, *FINAL)))

    def _transition(self, one: tree.Transition, states: Mapping[str, SourcePosition]) -> None:
        if one.state is not None:
            self._goes_to(one.state, one.at, states)
            return
        columns = []
        for key in one.keys:
            kind = self.value(key).type
            if kind not in (UNKNOWN, BOOL) and not isinstance(kind, BitsType | EnumeratedType | DistinctType):
                self.context.fault(key.at, f"a key of select cannot be {kind}")
                kind = UNKNOWN
            columns.append(KeyColumn(kind))
        seen: dict[tuple[object, ...], SourcePosition] = {}
        for case in one.cases:
            self._case(case, columns, seen)
            self._goes_to(case.state, case.at, states)
        if not any(is_default(case) for case in one.cases):
            self.context.fault(one.at, "select has no default", "packets that match no case would be lost")

    def _case(
        self, case: tree.SelectCase, columns: list[KeyColumn], seen: dict[tuple[object, ...], SourcePosition]
    ) -> None:
        taken = any(all(part == ("any",) for part in known) for known in seen)
        if taken:
            self.context.fault(case.at, "no packet comes here: a case before it takes all")
        if len(case.values) != len(columns) and not is_default(case):
            message = f"expected {len(columns)} values, one for each key, found {len(case.values)}"
            self.context.fault(case.at, message)
            return
        for value, column in zip(case.values, columns, strict=False):
            for at, message in value_faults(self, value, column):
                self.context.fault(at, message)
        known = tuple(known_set(self, value) for value in case.values)
        if known in seen and not taken:
            self.context.fault(case.at, f"the case in line {seen[known].line} has the same values")
        if None not in known:
            seen.setdefault(known, case.at)


def is_default(case: tree.SelectCase) -> bool:
    """It takes whatever comes."""
    return all(isinstance(value, tree.AnyValue) for value in case.values)


def next_states(state: tree.StateDeclaration) -> Iterator[str]:
    """Where a state may go."""
    if state.transition is None:
        return
    if state.transition.state is not None:
        yield state.transition.state
    for case in state.transition.cases:
        yield case.state
