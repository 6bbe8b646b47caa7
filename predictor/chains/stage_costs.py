"""What the stages of a chain cost at given configurations and workloads, each by its own profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.chains.placed_chain import ChainStage, PlacedChain
from predictor.chains.profiled_nf import ProfiledNf
from profiles.arrays import Floats

COST_POWER = 4.0
"""Power of a stage's relative cost in features: stages that cost much less than the weakest hardly matter."""
Columns = Mapping[str, Floats]
"""Values by column: `nx.cpu` is the configuration of the NF `nx`; columns without a prefix are the shared workload."""

PACKET_SIZE = "packet_size"
"""The workload column that stages upstream change."""


def column_of(nf: str, name: str, columns: Mapping[str, object]) -> str | None:
    """The column that holds input `name` of an NF: its own, else that of the workload, else None."""
    own = f"{nf}.{name}"
    return own if own in columns else name if name in columns else None


@dataclass(frozen=True)
class StageCosts:
    """What the stages of chains cost, one row per chain."""

    costs: Floats
    """One over the throughput, or the response time, of each stage alone. Shape (N, stages)."""
    errors: Floats
    """Relative standard deviation of the error of each. Shape (N, stages)."""
    inputs: Floats
    """The distinct inputs of all stages as shares of their profiled ranges. Shape (N, inputs)."""
    extrapolated: NDArray[np.bool_]
    """Whether a stage is outside its profile. Shape (N,)."""
    source: Floats
    """What the traffic source costs; 0 where it was not measured. Shape (N,)."""
    by_stage: tuple[Floats, ...]
    """The inputs of each stage as shares of its profiled ranges, each of shape (N, inputs of the stage)."""

    def at(self, rows: NDArray[np.intp]) -> StageCosts:
        """Only these chains."""
        return StageCosts(
            self.costs[rows], self.errors[rows], self.inputs[rows], self.extrapolated[rows], self.source[rows],
            tuple(inputs[rows] for inputs in self.by_stage),
        )  # fmt: skip


def stage_costs(
    profiles: Mapping[str, ProfiledNf],
    chain: PlacedChain,
    columns: Columns,
    *,
    higher_is_better: bool,
    source: str | None = None,
) -> StageCosts:
    """What each stage costs at each row of `columns`. `profiles`: by NF. `chain`: the stages. `columns`: configurations
    and workloads. `higher_is_better`: whether profiles hold throughputs; else they hold response times. `source`: the
    profile of an NF that does nothing. Raises `KeyError` when a column of a profile has no values."""
    costs, errors, outside, by_stage = [], [], [], []
    inputs: dict[str, Floats] = {}
    for stage in chain.stages:
        profile = profiles[stage.nf]
        at = _inputs_of(profile, stage, columns)
        reached = profile.predict(at)
        costs.append(1 / reached if higher_is_better else reached)
        errors.append(profile.error(at))
        outside.append(profile.extrapolated(at))
        scaled = profile.scale(at)
        by_stage.append(scaled)
        for number, name in enumerate(profile.settings.names):
            inputs.setdefault(str(column_of(stage.nf, name, columns)), scaled[:, number])
    received = np.zeros(len(costs[0]))
    if source is not None:
        reached = profiles[source].predict(_inputs_of(profiles[source], ChainStage(source), columns))
        received = 1 / reached if higher_is_better else reached
    return StageCosts(
        np.column_stack(costs),
        np.column_stack(errors),
        np.column_stack(list(inputs.values())) if inputs else np.zeros((len(received), 0)),
        np.any(outside, axis=0),
        received,
        tuple(by_stage),
    )


def _inputs_of(profile: ProfiledNf, stage: ChainStage, columns: Columns) -> Floats:
    values = []
    for name in profile.settings.names:
        column = column_of(stage.nf, name, columns)
        if column is None:
            raise KeyError(f"{stage.nf}.{name}")
        value = np.asarray(columns[column], dtype=np.float64)
        values.append(stage.size(value) if column == PACKET_SIZE else value)
    if not values:  # the profile holds one setting
        return np.zeros((len(next(iter(columns.values()), [0.0])), 0))
    return np.column_stack(values)


def features_of(stages: StageCosts, shares: Floats) -> Floats:
    """What a correction may depend on, shape (N, features). The inputs, each stage's cost relative to the largest, and
    that cost itself."""
    reached = stages.costs * shares
    largest = reached.max(axis=1, keepdims=True)
    several = (reached / largest) ** COST_POWER if reached.shape[1] > 1 else np.empty((len(reached), 0))
    return np.column_stack([stages.inputs, several, np.log(largest)])
