"""What a mutant is, and ways to change what parts of the generator give."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from placer.rack.compiler.switch import compose
from placer.rack.compiler.switch.program import Body, If, MatchTable, Statement, SwitchProgram

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """A fault of the generator."""

    fault: str
    patch: Patch


def wrapped(owner: object, name: str, change: Callable[..., Any]) -> Patch:
    """`change` gets what a function gives, then the function's arguments; what it returns takes its place."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        original = getattr(owner, name)
        if isinstance(original, functools.cached_property):
            of = original.func
            monkeypatch.setattr(owner, name, property(lambda self: change(of(self), self)))
        elif isinstance(original, property):
            getter = original.fget
            assert getter is not None
            monkeypatch.setattr(owner, name, property(lambda self: change(getter(self), self)))
        else:
            monkeypatch.setattr(owner, name, lambda *given, **named: change(original(*given, **named), *given, **named))

    return patch


def replaced(owner: object, name: str, by: object) -> Patch:
    """Another value, or another function."""
    return lambda monkeypatch: monkeypatch.setattr(owner, name, by)


def in_program(change: Callable[[SwitchProgram], SwitchProgram]) -> Patch:
    """The program of the switch is changed before what it does not need is left out."""
    original = vars(compose)["drop_needless"]
    return replaced(compose, "drop_needless", lambda program: original(change(program)))


def in_statements(change: Callable[[Statement], Iterable[Statement]]) -> Patch:
    """Each statement of the switch, in actions too, becomes others."""

    def changed(program: SwitchProgram) -> SwitchProgram:
        actions = tuple(replace(one, body=each_changed(one.body, change)) for one in program.actions)
        return replace(program, control=each_changed(program.control, change), actions=actions)

    return in_program(changed)


def each_changed(body: Body, change: Callable[[Statement], Iterable[Statement]]) -> Body:
    """A body with each statement changed, those within cases first."""
    found: list[Statement] = []
    for one in body:
        if isinstance(one, If):
            one = replace(one, then=each_changed(one.then, change), otherwise=each_changed(one.otherwise, change))
        found += change(one)
    return tuple(found)


def in_tables(change: Callable[[MatchTable], MatchTable]) -> Patch:
    """Each table of the switch becomes another one."""
    return in_program(lambda program: replace(program, tables=tuple(map(change, program.tables))))


def in_action(name: str, change: Callable[[Body], Body]) -> Patch:
    """An action of the switch does something else."""

    def changed(program: SwitchProgram) -> SwitchProgram:
        actions = [replace(one, body=change(one.body)) if one.name == name else one for one in program.actions]
        return replace(program, actions=tuple(actions))

    return in_program(changed)
