"""The log of the service: a line of JSON on stderr for each event."""

from __future__ import annotations

import json
import sys


def log(event: str, /, **values: object) -> None:
    """Write one line."""
    print(json.dumps({"log": event, **values}), file=sys.stderr, flush=True)
