"""A plan: where each chain runs, with how many cores, and how fast; and how good it is known to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from placer.rack.chain import Chain
from placer.rack.layout import SWITCH_SITE, Layout, Subgroup
from placer.rack.options import Options
from placer.rack.rack import Rack
from profiles.arrays import Floats

NEAR_EQUAL = (1e-6, 1e-9)
"""Relative, what is taken for equal in a solver's solution; the first one that gives rates within all limits."""


class Status(StrEnum):
    """What is known of a plan."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Limit:
    """A limit of a conflict.

    Parameters
    ----------
    kind
        t_min, d_max, cores, nic_mbps or blocks.
    of
        The chain, device or server; `switch` for blocks.
    """

    kind: str
    of: str


@dataclass(frozen=True)
class LimitChange:
    """A change that is enough alone: the limit, and its new value."""

    limit: Limit
    to: float


@dataclass(frozen=True)
class ChainPlan:
    """A chain of a plan.

    Parameters
    ----------
    rate_mbps
        What enters it.
    cores
        Per subgroup of its layout.
    """

    layout: Layout
    rate_mbps: float
    cores: tuple[int, ...]

    @property
    def chain(self) -> Chain:
        return self.layout.chain

    @property
    def subgroups(self) -> Sequence[tuple[Subgroup, int]]:
        """The subgroups with their cores."""
        return list(zip(self.layout.subgroups, self.cores, strict=True))

    def site_name(self, at: int) -> str:
        """The device of an NF, or `switch`."""
        site = self.layout.sites[at]
        return "switch" if site == SWITCH_SITE else self.layout.rack.devices[site].name


@dataclass(frozen=True)
class RackPlan:
    """A plan for a rack.

    Parameters
    ----------
    status
        `optimal` with a proof, `feasible` without; `infeasible` with a proof, `unknown` without.
    bound_mbps
        Of the marginal throughput of every plan; None where nothing is known.
    seconds
        Of solving.
    conflict, changes
        Where there is no plan: limits that cannot be kept together, and what would be enough alone.
    notes
        Of the strategy, such as why it found no plan.
    """

    rack: Rack
    status: Status
    chains: tuple[ChainPlan, ...] = ()
    bound_mbps: float | None = None
    seconds: float = 0.0
    conflict: tuple[Limit, ...] = ()
    changes: tuple[LimitChange, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def marginal_mbps(self) -> float:
        """The sum of rates beyond the least ones."""
        return sum(chain.rate_mbps - float(chain.chain.slo.t_min_mbps) for chain in self.chains)

    @property
    def gap(self) -> float | None:
        """(bound - marginal) / bound; None without a plan or a bound."""
        if not self.chains or self.bound_mbps is None:
            return None
        return max(self.bound_mbps - self.marginal_mbps, 0.0) / self.bound_mbps if self.bound_mbps > 0 else 0.0


def place_chain(chain: Chain, options: Options, row: int, rack: Rack, rate_mbps: float) -> ChainPlan:
    """An option of a chain, or of one that is equal but for its names, as a placed chain."""
    sites = tuple(int(site) for site in options.layouts.sites[options.layout[row]])
    layout = Layout(chain, rack, sites)
    cores = tuple(int(options.group_cores[row, group.nfs[0]]) for group in layout.subgroups)
    return ChainPlan(layout, rate_mbps, cores)


def answer(plan: RackPlan) -> Mapping[str, object]:
    """The plan as JSON (CONTRACTS 9)."""
    return {
        "status": plan.status.value,
        "proven": plan.status in (Status.OPTIMAL, Status.INFEASIBLE),
        "marginal_mbps": plan.marginal_mbps if plan.chains else None,
        "bound_mbps": plan.bound_mbps,
        "seconds": round(plan.seconds, 3),
        "chains": [_chain(chain) for chain in plan.chains],
        "conflict": [{"kind": limit.kind, "of": limit.of} for limit in plan.conflict],
        "relaxations": [{"kind": change.limit.kind, "of": change.limit.of, "to": change.to} for change in plan.changes],
    }


def _chain(one: ChainPlan) -> dict[str, object]:
    ids = [nf.id for nf in one.chain.nfs]
    devices = one.layout.rack.devices
    return {
        "name": one.chain.name,
        "rate_mbps": one.rate_mbps,
        "latency_us": float(one.layout.latency_us),
        "placement": {nf: one.site_name(at) for at, nf in enumerate(ids)},
        "subgroups": [
            {"on": devices[group.device].name, "nfs": [ids[at] for at in group.nfs], "cores": cores}
            for group, cores in one.subgroups
        ],
    }


def refine_rates(layouts: Sequence[Layout], caps: Sequence[Fraction], rates: Floats) -> list[float]:
    """Rates near those of a solver that keep every limit exactly.

    A vertex of the linear program is where as many limits of NICs hold with equality as rates lie between their least
    and largest; solving these equations again removes the solver's tolerance.
    """
    least = np.array([float(layout.chain.slo.t_min_mbps) for layout in layouts])
    largest = np.maximum([float(cap) for cap in caps], least)
    names = sorted({name for layout in layouts for name in layout.nic_shares})
    shares = np.array([[float(layout.nic_shares.get(name, 0)) for layout in layouts] for name in names])
    shares = shares.reshape(len(names), len(layouts))
    rack = layouts[0].rack
    limits = np.array([float(rack.servers[server].nic_mbps) for server, _ in names])
    for near in NEAR_EQUAL:
        refined = _at_vertex(rates, least, largest, shares, limits, near)
        if (shares @ refined <= limits * (1 + 1e-12)).all():
            return [float(rate) for rate in refined]
    return [float(rate) for rate in _carry(refined, least, shares, limits)]


def _at_vertex(rates: Floats, least: Floats, largest: Floats, shares: Floats, limits: Floats, near: float) -> Floats:
    """The vertex near some rates; what is relatively nearer than `near` to a limit is taken to be at it."""
    close = near * np.maximum(largest, 1.0)
    rates = np.where(rates > largest - close, largest, np.where(rates < least + close, least, rates))
    inner = (rates < largest) & (rates > least)
    if inner.any():
        tight = shares @ rates > limits * (1 - near)
        known = limits[tight] - shares[tight][:, ~inner] @ rates[~inner]
        solved = np.linalg.lstsq(shares[tight][:, inner], known, rcond=None)[0]
        rates[inner] = np.clip(solved, least[inner], largest[inner])
    return rates


def _carry(rates: Floats, least: Floats, shares: Floats, limits: Floats) -> Floats:
    """The rates, each as much nearer to the least one as the NICs need."""
    beyond = shares @ (rates - least)
    room = np.maximum(limits - shares @ least, 0.0)
    part = np.min(room[beyond > 0] / beyond[beyond > 0], initial=1.0)
    carried: Floats = least + (rates - least) * part
    return carried
