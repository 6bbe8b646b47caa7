"""Upper bounds on the number of admitted SLOs, each from one resource with everything else at its best."""

from __future__ import annotations

import numpy as np

from placer.gpu.exact.best_case import LOOSE, BestCases
from placer.gpu.exact.once_bound import most_once
from placer.gpu.exact.problem import Floats, Problem
from placer.gpu.exact.sm_layout import least_batch, slack


def upper_bound(p: Problem, best: BestCases) -> int:
    """No plan admits more SLOs than this."""
    possible = best.size > 0
    bounds = [p.workers, int(possible.sum())]
    if possible.any():
        once = most_once(best.transfer[possible], best.due[possible], p.sporadic)
        bounds += [int(once.sum()), _by_sms(p, best, possible)]
        if p.sporadic:
            bounds.append(_fitting(_utilisations(p, best)[possible], 1.0))
    return min(bounds)


def _fitting(shares: Floats, limit: float) -> int:
    """How many of the smallest shares add up to at most the limit."""
    return int((np.cumsum(np.sort(shares)) <= limit * LOOSE).sum())


def _utilisations(p: Problem, best: BestCases) -> Floats:
    """The least share of the bus that an SLO takes: with its largest batch."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return p.slope_us / p.gap_us + p.fixed_us / (best.most * p.gap_us)


def _by_sms(p: Problem, best: BestCases, possible: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> int:
    """By the share of an SM that each SLO takes at least: whole SMs where it cannot share one with any other."""
    members = np.flatnonzero(possible).tolist()
    executors = -(-best.batch // p.width)
    stands = np.array([[_stands(p, i, f) for f in range(len(p.penalty_us))] for i in members], dtype=np.bool_)
    shares = []
    for at, i in enumerate(members):
        sharers = stands[at, p.nf[members]] & stands[:, p.nf[i]]
        sharers[at] = False
        if sharers.any():
            shares.append(executors[i] / p.slots)
            continue
        size = max(one for one in range(1, p.slots + 1) if one <= best.size[i] or _alone(p, i, one, 0.0))
        shares.append(-(-executors[i] // size))
    return _fitting(np.array(shares, dtype=np.float64), float(p.sms))


def _stands(p: Problem, i: int, other: int) -> bool:
    """Whether the SLO keeps its latency with a minibatch beside another NF."""
    return _alone(p, i, 1, float(p.penalty_us[p.nf[i], other]))


def _alone(p: Problem, i: int, size: int, penalty: float) -> bool:
    """Whether the SLO keeps its latency with nobody else on the bus."""
    kernel = (p.step_us[i] * size + p.base_us[i] + penalty) / (1.0 + 4.0 * (LOOSE - 1.0))
    batch = least_batch(p, i, kernel)
    if batch < 0:
        return False
    return bool(p.slope_us[i] * batch + p.fixed_us[i] <= slack(p, i, batch, kernel) + p.latency_us[i] * (LOOSE - 1.0))
