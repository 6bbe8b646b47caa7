"""Rough estimates of what NFs lose beside others, by which NICs are compared before they are checked.

No tenant is placed by these: they decide only which NICs are checked, and in which order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placer.model.fleet import NicKind
from placer.policy.kernels import learn_biases, learn_losses, write_losses
from profiles.arrays import Floats

FIRST_LOSS = 0.05
"""Loss per neighbour before anything is known, in logarithms of throughput."""

LEARNING_RATE = 0.1
"""Share of an error of a loss that is corrected at once."""

LEAST_LOSS = 1e-3

LEAST_BIAS_RATE = 0.02
"""Share of an error of a bias that is corrected at once, at least."""


class Interference:
    """What each NF loses next to each other one, in logarithms of throughput.

    The logarithm of an NF's throughput share is taken to fall by a constant for every neighbour, per pair of NFs and
    whatever their traffic. The constants follow the answers of the oracle by normalised least mean squares (Widrow and
    Hoff, "Adaptive switching circuits", IRE WESCON 1960).

    `loss`: loss of the NF in the row per neighbour in the column.
    """

    def __init__(self, kind: NicKind) -> None:
        self.number_of = {nf: number for number, nf in enumerate(sorted(kind.cores_of))}
        self.loss: Floats = np.full((len(self.number_of), len(self.number_of)), FIRST_LOSS)

    def learn(self, nfs: ArrayLike, logs: ArrayLike) -> None:
        """Correct the losses by the logarithm of the throughput share of each NF of one co-location."""
        learn_losses(self.loss, np.asarray(nfs), np.asarray(logs), LEARNING_RATE, LEAST_LOSS)

    def rough_logarithms(self, nfs: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
        """As `CoLocationChecks.rough_logarithms`, by these losses; `nfs` are the NFs of members, by number."""
        logarithms = np.zeros(nfs.shape)
        write_losses(self.loss, nfs, sizes, logarithms)
        return logarithms


class Biases:
    """What logarithms of throughput are on average beside rough ones: by NF, and by how many share the NIC.

    `mean`: shape (NFs, most + 1); the second index is how many share the NIC.
    """

    def __init__(self, nfs: int, most: int) -> None:
        self.mean = np.zeros((nfs, most + 1))
        self._count = np.zeros((nfs, most + 1))

    def learn(self, nfs: NDArray[np.int64], errors: Floats) -> None:
        """Follow the errors of rough logarithms of NFs that share a NIC."""
        learn_biases(self.mean, self._count, nfs, errors, LEAST_BIAS_RATE)
