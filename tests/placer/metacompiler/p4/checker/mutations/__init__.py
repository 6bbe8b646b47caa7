"""Changes that make a program wrong, and what the checker says of each."""

from __future__ import annotations

from typing import NamedTuple

from tests.placer.metacompiler.p4.checker.mutations.calls import CALLS
from tests.placer.metacompiler.p4.checker.mutations.grammar import GRAMMAR
from tests.placer.metacompiler.p4.checker.mutations.names import NAMES
from tests.placer.metacompiler.p4.checker.mutations.package import PACKAGE
from tests.placer.metacompiler.p4.checker.mutations.parsers import PARSERS
from tests.placer.metacompiler.p4.checker.mutations.tables import TABLES
from tests.placer.metacompiler.p4.checker.mutations.types import TYPES


class ProgramMutation(NamedTuple):
    """A change to a program, and words of the fault that it must cause.

    Parameters
    ----------
    what
        The kind of change; no two are of one kind.
    """

    what: str
    program: str
    old: str
    new: str
    says: str


MUTATIONS = tuple(
    ProgramMutation(*one) for group in (GRAMMAR, NAMES, TYPES, CALLS, TABLES, PARSERS, PACKAGE) for one in group
)
