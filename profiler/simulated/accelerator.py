"""An accelerator that serves request queues round robin, one request a turn.

A queue with requests waiting is served once a turn, so all such queues are served equally often, whatever a request
costs; a queue that offers less is served at its rate. The remaining time goes to the others: progressive filling.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def turns_step(turns: Array, offered: Array, queues: Array, service: Array) -> Array:
    """One Newton step towards the rate (1/us) at which each load's queues would be served if they were never empty.

    For load i it solves sum over j != i of queues_j service_j min(offered_j, turns_i) + queues_i service_i turns_i = 1,
    concave and piecewise linear: from anywhere the first step lands on the near side, then each kink takes one.

    Parameters
    ----------
    turns
        The present estimate, shape (loads, batch); kept for loads that do not use the engine.
    offered
        Requests/us that each queue would receive, shape (loads, batch).
    queues, service
        Number of queues and time of a request (us), shape (loads, batch); zero queues where the engine is not used.
    """
    work = queues * service
    taken = np.zeros_like(turns)
    slope = work.copy()
    for j in range(len(turns)):
        waiting = offered[j] > turns
        others_slope = np.where(waiting, work[j], 0.0)
        others_taken = np.where(waiting, 0.0, work[j] * offered[j])
        others_slope[j] = others_taken[j] = 0.0
        slope += others_slope
        taken += others_taken
    updated = turns.copy()
    np.divide(np.maximum(1 - taken, 0.0), slope, out=updated, where=queues > 0)
    return updated
