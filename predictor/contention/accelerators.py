"""Accelerators: request queues served round robin, one request of each queue in turn (Tomur, sections 4.1.1 and 5.1.1).

All times are ms per packet, all rates kpps, so that their product is a share of the accelerator's time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.regression.compiled import compile_kernel
from profiles.arrays import Floats

SERVICE_TERMS = ("constant", "packet_size", "mtbr", "matches", "payload_matches")
WHOLE_TOLERANCE = 0.01  # share of a turn by which competitors may exceed a whole number of them
HEADER_BYTES = 100.0  # about the most header bytes in a packet; nothing matches in headers


@dataclass(frozen=True)
class ServiceTime:
    """Time on the accelerator that one packet takes: linear in its matches and size (Tomur, equation 5)."""

    coefficients: tuple[tuple[str, float], ...]
    """Per name in `SERVICE_TERMS`, ms per unit; `matches` is mtbr times packet size, `payload_matches` mtbr times the
    bytes of the packet beyond `HEADER_BYTES`. A missing term is zero."""

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
        case "payload_matches":
            values = np.maximum(traffic[:, 1] - HEADER_BYTES, 0.0) * traffic[:, 2]
        case _:
            raise ValueError(f"service time term '{term}' not understood, one of {', '.join(SERVICE_TERMS)}")
    return values


@dataclass(frozen=True)
class AcceleratorUse:
    """How one NF uses one accelerator: number of request queues and service time."""

    name: str
    queues: float
    service: ServiceTime
    slice_ms: float = 0.0
    """How long a queue is served in its turn, where turns are of equal time: then a queue with quick requests has
    several served. 0 where a turn is one request."""

    def requests(self, service_ms: Floats) -> Floats:
        """Requests that all queues have served in one turn, at these service times, shape (N,)."""
        if self.slice_ms:
            return self.queues * self.slice_ms / np.maximum(service_ms, 1e-12)
        return np.full(len(service_ms), self.queues)


def time_next_to_bench(
    own_ms: Floats, queues: float, service_ms: Floats, rate_kpps: Floats, slice_ms: float = 0.0
) -> Floats:
    """Time per packet on the accelerator, waiting included, when only the competitors' sums are known, shape (N,).

    Saturating competitors are served once per turn: t_i + S / n_i (Tomur, equation 2). A competitor that offers less
    takes its share of the accelerator's time, which slows the NF linearly: t_i / (1 - rate * S) (Tomur, equation 8),
    until it saturates as well. `own_ms`: the NF's own service time, shape (N,). `queues`: its number of queues.
    `service_ms`: the competitors' sum of n_j^2 / T_j,solo, 0 for none, shape (N,). `rate_kpps`: their offered rate; NaN
    when they saturate, shape (N,). `slice_ms`: as of `AcceleratorUse`; the bench's longest request is as long, so that
    the number of queues that compete follows from the sum, each for as much time as one of the NF.
    """
    saturated = own_ms + service_ms / queues
    if slice_ms:
        saturated = own_ms * (1.0 + np.ceil(service_ms / slice_ms - WHOLE_TOLERANCE) / queues)
    spare = 1.0 - np.where(np.isnan(rate_kpps), 1.0, rate_kpps * service_ms)
    light = np.where(spare > 0, own_ms / np.maximum(spare, 1e-9), np.inf)
    return np.minimum(saturated, light)


def limits(service_ms: Floats, queues: Floats, demand_kpps: Floats) -> Floats:
    """Throughput of each NF on a shared accelerator if nothing else limited that NF.

    Round robin serves every waiting queue at the same rate u. Competitor k takes min(n_k u, demand_k) of it, so NF i
    has n_i u, where n_i u t_i + sum_k min(n_k u, demand_k) t_k = 1: equation 2 of Tomur where all saturate,
    water-filling between the queues where some demand less.

    Parameters
    ----------
    service_ms, queues
        Service time and number of queues; 0 queues where the accelerator is not used. Shape (co-locations, members).
    demand_kpps
        Throughput of each if the accelerator were free, same shape.

    Returns
    -------
    kpps
        Shape (co-locations, members); inf where the accelerator is not used.
    """
    kpps = np.empty(queues.shape)
    _write_all_limits(service_ms, queues, demand_kpps, kpps)
    return kpps


@compile_kernel
def write_limits(service_ms, queues, demand_kpps, kpps, scratch, order):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write `limits` of one co-location, shape (members,).

    `scratch`, shape (3, at least members), and `order`, of whole numbers, are overwritten.
    """
    members, users = len(queues), 0
    turn, taken, demand_per_queue = scratch
    turns = 0.0
    for member in range(members):
        if queues[member] <= 0:
            kpps[member] = np.inf
            continue
        turn[member] = queues[member] * service_ms[member]
        turns += turn[member]
        taken[member] = demand_kpps[member] * service_ms[member]
        demand_per_queue[member] = demand_kpps[member] / queues[member]
        place = users  # sorted by insertion, as there are few
        while place > 0 and demand_per_queue[order[place - 1]] > demand_per_queue[member]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = member
        users += 1
    for member in range(members):
        if queues[member] <= 0:
            continue
        # a wrong split into light and heavy overstates what the others take, so the right one gives the highest rate
        light, heavy, rate = 0.0, turns - turn[member], -np.inf
        for split in range(users + 1):
            rate = max(rate, (1.0 - light) / max(turn[member] + heavy, 1e-12))
            # an NF is neither light nor heavy to itself
            if split < users and order[split] != member:
                light += taken[order[split]]
                heavy -= turn[order[split]]
        kpps[member] = queues[member] * rate


@compile_kernel
def _write_all_limits(service_ms, queues, demand_kpps, kpps):  # type: ignore[no-untyped-def]  # pragma: no cover
    scratch, order = np.empty((3, queues.shape[1])), np.empty(queues.shape[1], dtype=np.int64)
    for row in range(len(queues)):
        write_limits(service_ms[row], queues[row], demand_kpps[row], kpps[row], scratch, order)


def equilibrium(queues: Sequence[float], service_ms: Sequence[float]) -> Floats:
    """Throughput (kpps) of NFs that all saturate one accelerator: T_i = n_i / sum_j n_j t_j (Tomur, equation 2)."""
    number, time = np.asarray(queues, dtype=np.float64), np.asarray(service_ms, dtype=np.float64)
    rates: Floats = number / (number * time).sum()
    return rates
