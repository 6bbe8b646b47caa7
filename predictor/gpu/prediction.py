"""What is predicted of one NF in a co-location on a GPU server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class GpuPrediction:
    """The latency of the packets of one NF, us.

    Parameters
    ----------
    mean_us, p50_us, p99_us
        From end to end.
    mean_interval_us, p99_interval_us
        Ends of the prediction intervals; None where too few co-locations were measured.
    stages_us
        Means of the stages, by their names in the protocol.
    extrapolated
        Whether a value lies outside what was measured.
    """

    mean_us: float
    p50_us: float
    p99_us: float
    mean_interval_us: Interval | None
    p99_interval_us: Interval | None
    stages_us: Mapping[str, float]
    extrapolated: bool = False

    @property
    def low_us(self) -> float | None:
        """The low end of the interval of the p99."""
        return self.p99_interval_us[0] if self.p99_interval_us else None

    @property
    def high_us(self) -> float | None:
        """The high end of the interval of the p99: a conservative p99."""
        return self.p99_interval_us[1] if self.p99_interval_us else None


class Overload(Exception):
    """A co-location that the server does not carry: its latency grows without end.

    Parameters
    ----------
    causes
        Each overloaded resource, in words.
    """

    def __init__(self, causes: list[str]) -> None:
        self.causes = tuple(causes)
        super().__init__("; ".join(causes))
