"""A rough estimate of interference between NFs, learned from predictions, to decide which NICs are worth checking.

The logarithm of an NF's throughput share is taken to fall by a constant for every neighbour, per pair of NFs and
whatever their traffic. The constants follow the answers of the oracle by normalised least mean squares (Widrow and
Hoff, "Adaptive switching circuits", IRE WESCON 1960). They only rank NICs: no tenant is placed without a prediction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placer.model.fleet import NicKind
from placer.policy.kernels import Floats, learn_losses

FIRST_LOSS = 0.05
"""Loss per neighbour before anything is known, in logarithms of throughput."""

RATE = 0.1
"""Share of an error that is corrected at once."""

LEAST_LOSS = 1e-3


class Interference:
    """What each NF loses next to each other one, in logarithms of throughput.

    Parameters
    ----------
    kind
        The kind of NIC, with the NFs that it hosts.

    Attributes
    ----------
    number_of
        Number of each NF.
    loss
        Loss of the NF in the row per neighbour in the column.
    """

    def __init__(self, kind: NicKind) -> None:
        self.number_of = {nf: number for number, nf in enumerate(sorted(kind.cores_of))}
        self.loss: Floats = np.full((len(self.number_of), len(self.number_of)), FIRST_LOSS)

    def learn(self, nfs: Sequence[int], logs: Sequence[float]) -> None:
        """Correct the losses by the logarithm of the throughput share of each NF of one co-location."""
        learn_losses(self.loss, np.array(nfs), np.array(logs), RATE, LEAST_LOSS)
