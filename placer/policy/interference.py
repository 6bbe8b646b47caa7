"""Rough estimates of what NFs lose beside others, by which NICs are compared before they are checked.

No tenant is placed by these: they decide only which NICs are checked, and in which order.
"""

from __future__ import annotations

import numpy as np

from placer.model.nic_kind import NicKind
from profiles.arrays import Floats

FIRST_LOSS = 0.05  # loss per neighbour before anything is known, in logarithms of throughput
LEARNING_RATE = 0.1  # share of an error of a loss that is corrected at once

LEAST_LOSS = 1e-3

LEAST_SIZE_RATE, NEIGHBOUR_RATE = 0.02, 0.05
"""Shares of an error that biases correct at once: at least by how many share the NIC, and by all neighbours."""

OFFSET_RATE = 0.3
"""Share of an error by which the margin of a tenant is taken to be smaller, where it lost more than was expected."""

RATES = LEAST_SIZE_RATE, NEIGHBOUR_RATE, LEARNING_RATE, LEAST_LOSS, OFFSET_RATE


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


def no_biases(nfs: int, most: int) -> tuple[Floats, Floats, Floats]:
    """What logarithms of throughput are beside rough ones on average, which is not known yet: by NF and by how many
    share the NIC; of the NF in the row, per neighbour in the column; and how often the former was corrected."""
    return np.zeros((nfs, most + 1)), np.zeros((nfs, nfs)), np.zeros((nfs, most + 1))
