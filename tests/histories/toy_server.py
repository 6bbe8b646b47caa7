"""The HTTP service over toy NICs as a process: `python -m tests.histories.toy_server STATE PORT [FLAW]`.

With a FLAW it does what no service may do, so that the check is seen to find it: `forgets-keys` decides on a request
that is sent again, `answers-early` does not wait for the disk.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from placer.model.fleet import Fleet
from placer.online.engine import Engine
from placer.online.kept_answers import KeptAnswers
from placer.online.protocol import Reader
from placer.online.store import State
from placer.online.what_if import WhatIf
from placer.service.http.server import ServerSettings, make_writer, serve_http
from placer.testing.toy import TRAFFIC, ToyOracle, catalogue

NICS = 40
KINDS = catalogue((NICS, 1.0)).kinds


def main(path: str, port: str, flaw: str = "") -> None:
    """Serve until killed."""
    if flaw == "forgets-keys":
        forgetful: Any = KeptAnswers
        forgetful.find = lambda self, key: None
        forgetful.keep = lambda self, key, answer: None
    with State(Path(path), KINDS) as state:
        fleet = state.fleet if state.events else Fleet(KINDS)
        engine = Engine(fleet, [ToyOracle()], events=state.events)
        if flaw == "answers-early":
            committed: Any = state
            committed.commit = lambda: None
        writer = make_writer(engine, Reader(TRAFFIC, lambda workload: (), engine.workload_of), state)
        serve_http(writer, WhatIf(engine), ServerSettings(port=int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
