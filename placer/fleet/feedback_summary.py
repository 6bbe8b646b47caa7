"""What the state of a fleet says of its feedback, for people and programs that look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placer.fleet.learning.ledger import SATURATED_OFFER
from placer.fleet.state.looking import Look
from placer.fleet.state.saved_learning import DRIFT_ROWS, VERSION_PREFIX, read_learnt, with_asked

INITIAL_SUMMARY: Mapping[str, Any] = {
    "version": 1, "status": "initial", "e_value": None, "mape_pct": None, "champion_mape_pct": None,
    "coverage_90_pct": None, "trained_at": 0,
}  # fmt: skip


@dataclass(frozen=True)
class FeedbackSummary:
    """What was learnt.

    `measurements`: readings of instances. `lower_bounds`: of these, those that only say how much an instance can do at
    least. `model`: the version that decides, once what was asked for has taken effect. `drift`: by NF and NIC model,
    how many times its throughput at first it has, and since which event.
    """

    measurements: int
    lower_bounds: int
    model: int
    frozen: bool
    drift: Sequence[Mapping[str, Any]]
    versions: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, state: Look) -> FeedbackSummary:
        """What a state says. Raises InputError when a row makes no sense."""
        if not state.learns:
            return cls(0, 0, 1, False, (), (INITIAL_SUMMARY,))
        learnt = read_learnt(state, state.name)
        ((measured,),) = state.execute("SELECT count(*) FROM readings")
        saturated = f"offered_kpps IS NOT NULL AND offered_kpps >= {SATURATED_OFFER} * throughput_kpps"
        ((capacities,),) = state.execute(f"SELECT count(*) FROM readings WHERE {saturated}")  # noqa: S608
        known = {1: INITIAL_SUMMARY} | {
            row["version"]: row for key, row in learnt.items() if key.startswith(VERSION_PREFIX)
        }
        model, frozen = with_asked(learnt)
        versions = [known[number] for number in sorted(known)]
        return cls(measured, measured - capacities, model, frozen, learnt.get(DRIFT_ROWS, ()), versions)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "measurements": self.measurements, "lower_bounds": self.lower_bounds, "model": self.model,
            "frozen": self.frozen, "drift": list(self.drift), "versions": [dict(version) for version in self.versions],
        }  # fmt: skip
