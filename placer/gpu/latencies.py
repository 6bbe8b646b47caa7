"""What is known of the latency of whole plans, by a model of the server or by the server itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from placer.gpu.plan import Admitted


class PlanLatencies(Protocol):
    """Says how long packets take when a whole plan runs."""

    def p99_us(self, plan: Sequence[Admitted]) -> Sequence[float]:
        """The latency that 99 of 100 packets of each SLO keep, us; infinite where the server does not carry it."""
