"""Rounding: what counts as equal when times are compared.

Every comparison of the model goes through this file. A time may exceed its limit by `NEAR`, relative, so that a latency
that meets its SLO in exact arithmetic also does in floating point. A utilisation must stay below 1 by as much.
"""

from __future__ import annotations

NEAR = 1e-9


def at_most(time_us: float, limit_us: float) -> bool:
    """Whether a time keeps its limit."""
    return time_us <= limit_us * (1.0 + NEAR)
