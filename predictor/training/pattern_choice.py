"""The execution pattern of each NF that fits real co-locations best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from predictor.contention.nf_model import NfModel
from predictor.training.co_runs import compared_by_name
from profiles import CoLocation

Array = NDArray[np.float64]


def choose(plausible: Mapping[str, Sequence[NfModel]], co_locations: Mapping[CoLocation, Array]) -> dict[str, NfModel]:
    """One of the plausible models of each NF: the only one, else the one that fits measured co-locations best.

    The throughput in a co-location depends on the models of all its members, so NFs are decided one after another.
    """
    chosen = {name: models[0] for name, models in plausible.items()}
    for name, models in plausible.items():
        if len(models) == 1 or not co_locations:
            continue
        misfits = [_misfit({**chosen, name: model}, co_locations) for model in models]
        evidence = {str(model.execution.pattern): round(one, 3) for model, one in zip(models, misfits, strict=True)}
        chosen[name] = replace(models[int(np.argmin(misfits))], evidence_in_co_location=evidence)
    return chosen


def _misfit(models: Mapping[str, NfModel], co_locations: Mapping[CoLocation, Array]) -> float:
    """Mean absolute percentage error of all NFs in measured co-locations."""
    errors = np.concatenate([rows.error for _, rows in compared_by_name(models, co_locations)])
    return float(100 * np.abs(np.expm1(-errors)).mean())
