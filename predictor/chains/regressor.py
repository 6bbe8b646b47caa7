"""The interface of a regressor, which turns a profile into a function, and the registry of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from predictor.chains.settings import Settings
from profiles.registry import Registry


class Regressor(ABC):
    """Predicts what an NF reaches at a setting. A new one is one file in `regressors/` that registers it."""

    @abstractmethod
    def fit(self, settings: Settings) -> Self:
        """Learn from measured settings, of which there is at least one."""

    @abstractmethod
    def predict(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Natural logarithm of the measure at `inputs`, shape (N, inputs): shape (N,)."""


REGRESSORS: Registry[type[Regressor]] = Registry(
    "regressor", "predictor.chains.regressors", "placer.chain_regressors", "--regressor", first=("smooth", "monotone")
)
"""Every regressor by name: the files of `predictor/chains/regressors/`, then the entry points of other packages."""
