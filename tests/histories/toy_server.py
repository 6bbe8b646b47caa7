"""The HTTP service over toy NICs as a process. With a flaw it does what no service may do, so that the
check is seen to find it: `forgets-keys` decides on a request that is sent again, `answers-early` does not wait for the
disk, and `forgets-versions` commits on NICs that another agent has changed meanwhile. Agents on a database prefer no
NICs, so that they meet as often as can be."""

import os
import sys
from pathlib import Path
from typing import Any

from placer.fleet.engine import Engine
from placer.fleet.protocol import Reader
from placer.fleet.service.http.server import ServerSettings, bind_socket, make_writer, serve_http
from placer.fleet.state.open_state import is_address, open_state
from placer.fleet.state.retention import Retention
from placer.fleet.state.saved import KeptAnswers, SavedState
from placer.fleet.what_if import WhatIf
from placer.model.fleet import Fleet
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from tests.histories import fleet as whole_fleet

NICS = 40
KEPT_EVENTS = 500
KINDS = catalogue((NICS, 1.0)).kinds


def serve_toy(log: Path, path: str, port: str, what: str, flaw: str) -> None:
    """Serve until killed. `what`: `tenants`, for which the log is short, or `fleet` (`fleet.py`)."""
    with log.open("wb") as file:
        os.dup2(file.fileno(), sys.stderr.fileno())
    if flaw == "forgets-keys":
        forgetful: Any = KeptAnswers
        forgetful.find = lambda self, key: None
        forgetful.keep = lambda self, key, answer: None
    is_whole = what == "fleet"
    kinds = whole_fleet.KINDS if is_whole else KINDS
    with open_state(path, kinds) as state:
        if is_address(path):
            _meet(state, flaw)
        elif not is_whole:
            state.retention = Retention(events=KEPT_EVENTS)
        fleet = state.fleet if state.events else Fleet(kinds)
        if is_whole:
            engine = whole_fleet.engine_of(fleet, state.waiting, state.events)
        else:
            engine = Engine(fleet, [ToyOracle()], events=state.events)
        if flaw == "answers-early":
            committed: Any = state
            committed.commit = lambda: None
        writer = make_writer(engine, Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of), state)
        settings = ServerSettings(port=int(port))
        with bind_socket(settings) as listening:
            serve_http(writer, WhatIf(engine), settings, listening)


def _meet(state: SavedState, flaw: str) -> None:
    """Let the agent prefer no NICs; with the flaw, let it not compare versions."""
    from placer.fleet.state.postgres.connection import run
    from placer.fleet.state.postgres.schema import CREATE_COMMIT
    from placer.fleet.state.postgres.state import SharedState
    from placer.model.pools import WHOLE_POOL

    pools: Any = SharedState
    pools.pool = property(lambda self: WHOLE_POOL, lambda self, pool: None)
    assert isinstance(state, SharedState)
    if flaw == "forgets-versions":
        state.agreement.link.attempt(lambda one: run(one, CREATE_COMMIT.format(compare="")))
