"""An accelerator that serves request queues round robin, one request a turn.

A queue with requests waiting is served once a turn, so all such queues are served equally often, whatever a request
costs; a queue that asks for less takes what it asks. What is left over goes to the others: progressive filling.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def turns_step(turns: Array, offered: Array, queues: Array, service: Array) -> Array:
    """One Newton step towards the rate (1/us) at which each load's queues would be served if they never ran dry.

    For load i it solves sum over j != i of queues_j service_j min(offered_j, turns_i) + queues_i service_i turns_i = 1,
    concave and piecewise linear: from anywhere the first step lands on the near side, then each kink takes one.

    Parameters
    ----------
    turns
        The present guess, shape (loads, batch); kept for loads that do not use the engine.
    offered
        Requests/us that each queue would bring, shape (loads, batch).
    queues, service
        Number of queues and time of a request (us), shape (loads, batch); zero queues where the engine is not used.
    """
    work = queues * service
    updated = turns.copy()
    for i in range(len(turns)):
        guess = turns[i]
        taken = np.zeros_like(guess)
        slope = work[i].copy()
        for j in range(len(turns)):
            if j != i:
                waiting = offered[j] > guess
                taken += np.where(waiting, 0.0, work[j] * np.minimum(offered[j], guess))
                slope += np.where(waiting, work[j], 0.0)
        used = queues[i] > 0
        np.divide(np.maximum(1 - taken, 0.0), slope, out=updated[i], where=used)
    return updated
