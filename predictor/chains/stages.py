"""What the stages of a chain cost at given configurations and workloads, each by its own profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.chains.placed_chain import ChainStage, PlacedChain
from predictor.chains.profiled_nf import ProfiledNf

Array = NDArray[np.float64]

Columns = Mapping[str, Array]
"""Values by column: `nx.cpu` is the configuration of the NF `nx`; columns without a prefix are the shared workload."""

PACKET_SIZE = "packet_size"
"""The workload column that stages upstream change."""


def column_of(nf: str, name: str, columns: Mapping[str, object]) -> str | None:
    """The column that holds input `name` of an NF: its own, else that of the workload, else None."""
    own = f"{nf}.{name}"
    return own if own in columns else name if name in columns else None


@dataclass(frozen=True)
class StageCosts:
    """What the stages of chains cost, one row per chain.

    Parameters
    ----------
    costs
        One over the throughput, or the response time, of each stage alone. Shape (N, stages).
    errors
        Relative standard deviation of the error of each. Shape (N, stages).
    inputs
        The distinct inputs of all stages as shares of their profiled ranges. Shape (N, inputs).
    extrapolated
        Whether a stage is outside its profile. Shape (N,).
    source
        What the traffic source costs; 0 where it was not measured. Shape (N,).
    """

    costs: Array
    errors: Array
    inputs: Array
    extrapolated: NDArray[np.bool_]
    source: Array


def stage_costs(
    profiles: Mapping[str, ProfiledNf],
    chain: PlacedChain,
    columns: Columns,
    *,
    higher_is_better: bool,
    source: str | None = None,
) -> StageCosts:
    """What each stage costs at each row of `columns`.

    Parameters
    ----------
    profiles
        By NF.
    chain
        The stages.
    columns
        Configurations and workloads.
    higher_is_better
        Whether profiles hold throughputs; else they hold response times.
    source
        The profile of an NF that does nothing.

    Raises
    ------
    KeyError
        When a column of a profile has no values.
    """
    costs, errors, outside = [], [], []
    inputs: dict[str, Array] = {}
    for stage in chain.stages:
        profile = profiles[stage.nf]
        at = _inputs_of(profile, stage, columns)
        reached = profile.predict(at)
        costs.append(1 / reached if higher_is_better else reached)
        errors.append(profile.error(at))
        outside.append(profile.extrapolated(at))
        scaled = profile.scale(at)
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
    )


def _inputs_of(profile: ProfiledNf, stage: ChainStage, columns: Columns) -> Array:
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
