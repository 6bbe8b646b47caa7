"""The seven performance counters by which memory contention is measured (Tomur, table 13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Counters:
    """Counter readings of one workload, or the sum of several workloads' readings."""

    ipc: float = 0.0  # instructions per cycle
    irt: float = 0.0  # instructions retired per second
    l2crd: float = 0.0
    l2cwr: float = 0.0  # L2 data cache reads and writes per second
    memrd: float = 0.0
    memwr: float = 0.0  # data memory reads and writes per second
    wss: float = 0.0  # working set size, MB

    @classmethod
    def from_mapping(cls, values: Mapping[str, float]) -> Counters:
        """The readings under their names; every one of the seven must be there."""
        return cls(*(float(values[name]) for name in COUNTERS))

    @classmethod
    def total(cls, readings: Iterable[Counters]) -> Counters:
        """The sum of several workloads' readings, zero for none."""
        columns = zip(*(astuple(reading) for reading in readings), strict=True)
        return cls(*(sum(column) for column in columns))

    def as_dict(self) -> dict[str, float]:
        """Readings by name, in the order of `COUNTERS`."""
        return {name: getattr(self, name) for name in COUNTERS}

    def as_array(self) -> NDArray[np.float64]:
        """Readings as an array of shape (7,), in the order of `COUNTERS`."""
        import numpy as np

        return np.array(astuple(self), dtype=np.float64)


COUNTERS = tuple(field.name for field in fields(Counters))
"""Counter names, in the order of every file and feature vector."""
