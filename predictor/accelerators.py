"""Accelerators: request queues served round robin, one request of each queue in turn (Tomur, sections 4.1.1 and 5.1.1).

All times are ms per packet, all rates kpps, so that their product is a share of the accelerator's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TERMS = ("constant", "packet_size", "mtbr", "matches")


@dataclass(frozen=True)
class ServiceTime:
    """Time on the accelerator that one packet takes: linear in its matches and size (Tomur, equation 5).

    Parameters
    ----------
    coefficients
        Per name in `TERMS`, ms per unit; `matches` is mtbr times packet size. Those left out are zero.
    """

    coefficients: tuple[tuple[str, float], ...]

    def __call__(self, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        """Service time (ms) at each row of `traffic`, shape (N, 3); never negative."""
        total = np.zeros(len(traffic))
        for term, coefficient in self.coefficients:
            total += coefficient * term_values(term, traffic)
        return np.maximum(total, 0.0)

    def as_dict(self) -> dict[str, float]:
        """Coefficients by term."""
        return dict(self.coefficients)


def term_values(term: str, traffic: NDArray[np.float64]) -> NDArray[np.float64]:
    """One term of the service time at each row of `traffic`, shape (N, 3)."""
    values: NDArray[np.float64]
    match term:
        case "constant":
            values = np.ones(len(traffic))
        case "packet_size":
            values = traffic[:, 1]
        case "mtbr":
            values = traffic[:, 2]
        case "matches":
            values = traffic[:, 1] * traffic[:, 2]
        case _:
            raise ValueError(f"service time term '{term}' not understood, one of {', '.join(TERMS)}")
    return values


@dataclass(frozen=True)
class AcceleratorUse:
    """How one NF uses one accelerator: number of request queues and service time."""

    name: str
    queues: int
    service: ServiceTime


def beside_bench(
    own_ms: NDArray[np.float64],
    queues: float,
    service_ms: NDArray[np.float64],
    rate_kpps: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Time per packet of an NF that keeps its queues filled, beside competitors known by their sum.

    Saturating competitors are served once per round: t_i + S / n_i (Tomur, equation 2). A competitor that asks for less
    takes its share of time from the NF, which slows linearly: t_i / (1 - rate * S) (Tomur, equation 8), until both
    saturate.

    Parameters
    ----------
    own_ms
        The NF's own time per packet, shape (N,).
    queues
        Its number of queues.
    service_ms
        The competitors' sum of n_j^2 / T_j,solo, 0 for none, shape (N,).
    rate_kpps
        Their offered rate; NaN when they saturate, shape (N,).
    """
    saturated = own_ms + service_ms / queues
    spare = 1.0 - np.nan_to_num(rate_kpps * service_ms, nan=1.0)
    with np.errstate(divide="ignore"):
        light = np.where(spare > 0, own_ms / np.maximum(spare, 1e-12), np.inf)
    return np.minimum(saturated, light)


def limits(
    own_ms: NDArray[np.float64],
    service_ms: NDArray[np.float64],
    queues: NDArray[np.float64],
    demand_kpps: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Throughput of each NF on an accelerator that it shares, were nothing else to hold that NF back.

    Round robin gives every waiting queue the same rate u. Competitor k takes min(n_k u, demand_k) of it, so NF i has
    n_i u with n_i u own_i + sum_k min(n_k u, demand_k) t_k = 1: equation 2 of Tomur where all saturate, and water-filling
    between the queues where some ask for less.

    Parameters
    ----------
    own_ms
        Time per packet of the NF in question between two of its requests on one queue; its service time when it keeps
        the queue filled. Shape (companies, members).
    service_ms
        Service time as others feel it; 0 where the accelerator is not used.
    queues
        Number of queues; 0 where the accelerator is not used.
    demand_kpps
        What each would ask for if the accelerator were free.

    Returns
    -------
    kpps
        Shape (companies, members); inf where the accelerator is not used.
    """
    uses = (queues > 0) & (own_ms > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        asked = np.where(queues > 0, demand_kpps / queues, np.inf)
    order = np.argsort(asked, axis=1, kind="stable")
    share = np.take_along_axis(np.where(queues > 0, demand_kpps, 0.0) * service_ms, order, axis=1)
    turn = np.take_along_axis(queues * service_ms, order, axis=1)
    companies, members = own_ms.shape
    first = np.zeros((companies, 1))
    light = np.concatenate([first, np.cumsum(share, axis=1)], axis=1)
    heavy = turn.sum(axis=1, keepdims=True) - np.concatenate([first, np.cumsum(turn, axis=1)], axis=1)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(members), order.shape), axis=1)
    # the NF in question is neither light nor heavy to itself
    among_light = rank[:, :, None] < np.arange(members + 1)[None, None, :]
    own_share = np.where(queues > 0, demand_kpps, 0.0) * service_ms
    own_turn = queues * service_ms
    light_of = light[:, None, :] - np.where(among_light, own_share[:, :, None], 0.0)
    heavy_of = heavy[:, None, :] - np.where(among_light, 0.0, own_turn[:, :, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        # a wrong split into light and heavy overstates what the others take, so the right one is the largest
        rate = ((1.0 - light_of) / ((queues * own_ms)[:, :, None] + heavy_of)).max(axis=2)
    return np.where(uses, queues * rate, np.inf)


def equilibrium(queues: Sequence[float], service_ms: Sequence[float]) -> NDArray[np.float64]:
    """Throughput (kpps) of NFs that all saturate one accelerator: T_i = n_i / sum_j n_j t_j (Tomur, equation 2)."""
    number, time = np.asarray(queues, dtype=np.float64), np.asarray(service_ms, dtype=np.float64)
    rates: NDArray[np.float64] = number / (number * time).sum()
    return rates
