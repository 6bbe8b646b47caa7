"""How the workers of a GPU server serve their NFs: what a testbed does not say, found from NFs alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

WINDOWS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 1_000_000)
"""Numbers of batches on their way that are tried."""
RECEIVE_US = (0.0, 0.003, 0.006, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1)
"""Times per packet that are tried."""
BETTER = 0.98
"""A value is taken instead of the simplest one if the error becomes smaller by this factor."""


@dataclass(frozen=True)
class WorkerModel:
    """A worker.

    Parameters
    ----------
    window
        The most batches that it has sent and not yet seen back.
    receive_us
        What it does per packet besides pre- and post-processing, such as taking it from the NIC.
    """

    window: int = WINDOWS[-1]
    receive_us: float = 0.0

    @classmethod
    def fit(cls, error: Callable[[WorkerModel], float]) -> WorkerModel:
        """The worker of the smallest error of NFs alone, one value after the other, twice."""
        best = cls()
        least = error(best)
        for _ in range(2):
            for candidates in (
                [cls(window, best.receive_us) for window in WINDOWS],
                [cls(best.window, receive_us) for receive_us in RECEIVE_US],
            ):
                for one in candidates:
                    if one != best and (found := error(one)) < BETTER * least:
                        best, least = one, found
        return best

    def as_dict(self) -> dict[str, float]:
        """What was learnt, for JSON."""
        return {"window": self.window, "receive_us": self.receive_us}

    @classmethod
    def from_mapping(cls, values: Mapping[str, float]) -> WorkerModel:
        """The worker that `as_dict` returned."""
        return cls(int(values["window"]), float(values["receive_us"]))
