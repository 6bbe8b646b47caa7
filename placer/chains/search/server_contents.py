"""What one server may hold: chains with their options and rates; the best content at given prices.

A content is a column of the program over equal servers (`fleet_plan.py`), found by a small integer program: how many
chains of each class take each option, and how far their rates go beyond the least ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from placer.chains.options import Options
from placer.chains.rack import Rack

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PRICING_SECONDS = 20.0


@dataclass(frozen=True)
class PlacedOption:
    """Chains of one class in a content that have the same option.

    Parameters
    ----------
    chain_class, option
        Their indices.
    chains
        How many.
    beyond_mbps
        By how much the rates of all of them together exceed the least ones.
    """

    chain_class: int
    option: int
    chains: int
    beyond_mbps: float


@dataclass(frozen=True)
class Content:
    """What one server holds.

    Parameters
    ----------
    counts
        Chains by class; shape (classes,).
    blocks
        Of table memory that they take on the switch.
    """

    placed: tuple[PlacedOption, ...]
    counts: Ints
    blocks: int

    @property
    def marginal_mbps(self) -> float:
        """Of all its chains."""
        return sum(one.beyond_mbps for one in self.placed)


class ServerPricing:
    """Finds contents of one kind of server.

    Parameters
    ----------
    rack
        With one such server.
    options
        By class of chains, on that rack.
    sizes
        Chains by class.
    """

    def __init__(self, rack: Rack, options: Sequence[Options], sizes: Ints) -> None:
        self.classes = len(options)
        self.class_of = np.repeat(np.arange(len(options)), [len(one) for one in options])
        self.option_of = np.concatenate([np.arange(len(one)) for one in options])
        self.sizes = sizes
        least = np.array([float(one.chain.slo.t_min_mbps) for one in options])[self.class_of]
        rates: Floats = np.concatenate([one.rate for one in options])
        shares: Floats = np.vstack([one.nic_shares for one in options])
        cores: Ints = np.vstack([one.cores for one in options])
        self.blocks = np.concatenate([_blocks(one, rack) for one in options])
        mbps = float(rack.servers[0].nic_mbps)
        limits = np.array([*(device.cores for device in rack.devices), mbps, mbps], dtype=np.float64)
        scales = np.where(limits > 0, limits, 1.0)
        columns = len(rates)
        use: Floats = np.hstack(
            [np.vstack([cores.T, (shares * least[:, None]).T]), np.vstack([0.0 * cores.T, shares.T])]
        )
        gains = np.maximum(rates - least, 0.0)
        within: Floats = np.hstack([-np.diag(gains), np.eye(columns)])
        self.constraints = [
            LinearConstraint(use / scales[:, None], -np.inf, limits / scales),
            LinearConstraint(within, -np.inf, 0.0),
        ]
        self.gains = gains
        self.members = (self.class_of == np.arange(len(options))[:, None]).astype(np.float64)

    def best(
        self, prices: Floats, block_price: float, most: Ints | None = None, least: Ints | None = None
    ) -> tuple[float, Content]:
        """The content with the largest marginal rate less prices of its chains and blocks, and that difference.

        Parameters
        ----------
        prices
            Of a chain, by class, Mbps; negative where chains must be placed somewhere.
        block_price
            Of a block of table memory, Mbps.
        most, least
            Chains by class that the content may and must have.
        """
        columns = len(self.gains)
        if not columns:
            return 0.0, Content((), np.zeros(self.classes, np.int64), 0)
        costs = prices[self.class_of] + block_price * self.blocks
        most = self.sizes if most is None else most
        at_least = np.zeros(self.classes) if least is None else least.astype(np.float64)
        each: Floats = most[self.class_of].astype(np.float64)
        of_class: Floats = np.hstack([self.members, np.zeros_like(self.members)])
        found = milp(
            np.concatenate([costs, -np.ones(columns)]),
            constraints=[*self.constraints, LinearConstraint(of_class, at_least, most.astype(np.float64))],
            integrality=np.concatenate([np.ones(columns), np.zeros(columns)]),
            bounds=Bounds(0, np.concatenate([each, each * self.gains])),
            options={"time_limit": PRICING_SECONDS},
        )
        if found.x is None:
            return 0.0, Content((), np.zeros(self.classes, np.int64), 0)
        return -float(found.fun), self._content(np.round(found.x[:columns]).astype(np.int64), found.x[columns:])

    def _content(self, chains: Ints, beyond: Floats) -> Content:
        used = np.flatnonzero(chains)
        placed = tuple(
            PlacedOption(int(self.class_of[at]), int(self.option_of[at]), int(chains[at]), max(float(beyond[at]), 0.0))
            for at in used
        )
        counts = np.bincount(self.class_of, chains, self.classes).astype(np.int64)
        return Content(placed, counts, int(chains @ self.blocks))


def _blocks(options: Options, rack: Rack) -> Ints:
    blocks = np.array([rack.costs[nf.nf].switch_blocks or 0 for nf in options.chain.nfs])
    return np.asarray((options.on_switch * blocks).sum(axis=1), dtype=np.int64)
