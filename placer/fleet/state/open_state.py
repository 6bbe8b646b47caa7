"""Opens a saved state, whatever it is kept in."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from placer.fleet.protocol import Check
from placer.fleet.state.saved import Counted, SavedState, count_nothing
from placer.fleet.state.store import State
from placer.model.nic_kind import NicKind
from profiles import InputError

POSTGRES_SCHEMES = ("postgresql://", "postgres://")


def is_address(where: str | Path) -> bool:
    """Whether a state is an address of PostgreSQL, and no file."""
    return isinstance(where, str) and where.lower().startswith(POSTGRES_SCHEMES)


def open_state(
    where: str | Path,
    kinds: Sequence[NicKind],
    check: Check = lambda workload: (),
    *,
    existing: bool = False,
    counted: Counted = count_nothing,
) -> SavedState:
    """The state in a file, or in a database where an address is given.

    `existing`, `counted`: as of `State`.

    Raises InputError when it cannot be opened, is of something else, or is missing and has to be `existing`.
    """
    if not is_address(where):
        return State(Path(where), kinds, check, existing=existing, counted=counted)
    refuse_without_driver()
    from placer.fleet.state.postgres.state import SharedState

    return SharedState(str(where), kinds, check, existing=existing, counted=counted)


def refuse_without_driver() -> None:
    """Refuse an address where nothing is installed that could reach it.

    Raises InputError with the command that installs it.
    """
    if find_spec("psycopg") is None:
        raise InputError.of("--state", "PostgreSQL needs psycopg", hint="pip install 'nf-placer[serve]'")
