"""Best-effort answers: what a testbed measured although other work disturbed the run (docs/host-testbed.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

WIDE = 1.96
"""Standard errors on each side that hold the truth in 95 % of all runs."""


@dataclass(frozen=True, slots=True)
class BestEffort:
    """What a testbed says of a run that it could not measure undisturbed.

    Parameters
    ----------
    standard_error_pct
        Of the throughput of each workload, in the order of the request; None where it is not known.
    disturbed_pct
        The share of its windows that were disturbed; None where it is not known.
    """

    standard_error_pct: tuple[float | None, ...]
    disturbed_pct: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The fields, as `from_mapping` reads them."""
        return asdict(self)

    @classmethod
    def from_mapping(cls, fields: Mapping[str, Any]) -> Self:
        """What `as_dict` returned, also after JSON.

        Raises
        ------
        KeyError, TypeError, ValueError
            When it is something else.
        """
        errors = tuple(None if one is None else float(one) for one in fields["standard_error_pct"])
        disturbed = fields["disturbed_pct"]
        return cls(errors, None if disturbed is None else float(disturbed))


def difference_by_error(one: BestEffort | None, other: BestEffort | None) -> float:
    """The relative difference of the first workload's throughputs up to which two runs differ by their errors alone.

    0 where neither is best effort, or its error is not known: a testbed accepts other runs only with small errors.
    """
    errors = [effort.standard_error_pct[0] or 0.0 for effort in (one, other) if effort and effort.standard_error_pct]
    return WIDE * math.hypot(*errors) / 100 if errors else 0.0
