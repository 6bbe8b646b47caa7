"""Whether a P4 program is one: `check` lists what is wrong, `warnings` what is probably not meant."""

from __future__ import annotations

from collections.abc import Sequence

from placer.metacompiler.p4.checker.faults import P4Fault, P4SyntaxError
from placer.metacompiler.p4.checker.rules.context import CheckContext
from placer.metacompiler.p4.checker.rules.program import ProgramRules
from placer.metacompiler.p4.checker.syntax.declarations import parsed
from profiles.faults import Fault


def check(text: str, file: str) -> list[Fault]:
    """All that is wrong in a program, in the order of its lines; empty if it is accepted.

    A syntax error ends reading: it is then the only fault.
    """
    return list(checked(text, file)[0])


def warnings(text: str, file: str) -> list[Fault]:
    """Declarations that are never used, and the like, of a program without syntax errors."""
    return list(checked(text, file)[1])


def checked(text: str, file: str) -> tuple[Sequence[P4Fault], Sequence[P4Fault]]:
    """Faults and warnings, each in the order of the lines."""
    try:
        program = parsed(text)
    except P4SyntaxError as error:
        return [P4Fault.at(file, error.position, error.message, error.hint)], []
    context = CheckContext(file)
    ProgramRules(context).program(program)
    return _ordered(context.faults), _ordered(context.warnings)


def _ordered(found: Sequence[P4Fault]) -> list[P4Fault]:
    return sorted(dict.fromkeys(found), key=lambda fault: fault.position)
