"""Prices of what chains share, which bound what all plans gain: the dual of the relaxation, over all ways of chains.

At prices of cores, of a Mbps through a NIC, of table memory and of cuts, no plan gains more than the limits are worth
and each chain's best way beyond. The least such bound is a linear program with a row for each way; rows are generated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placer.rack.chain import Chain, TableId
from placer.rack.layout_arrays import CAP_TOLERANCE
from placer.rack.rack import Rack
from profiles.arrays import Bools, Floats, Ints
from profiles.linear_programs import linprog

GAIN_SCALE = 1e4  # the largest gain in the linear program, so that tolerances of the solver are small beside it
PRICE_DIGITS = 12  # significant ones of a price: what holds of prices holds of rounded ones, too
MOST_ROUNDS = 50


@dataclass(frozen=True)
class PricedWays:
    """Ways to place a chain, of which there are several; rows are ways."""

    number: int  # of chains that differ only in their names
    least: float  # rate, Mbps
    largest: Floats  # rate, Mbps; shape (ways,)
    needs: Floats  # of each limit but those of rates: cores, blocks; shape (ways, limits)
    shares: Floats  # of each limit per Mbps; shape (ways, limits)
    tables: Bools  # per NF whether it is on the switch; shape (ways, NFs)
    pool: list[int]  # ways that are in the program from the start

    def __len__(self) -> int:
        return len(self.largest)


@dataclass(frozen=True)
class Priced:
    """A bound and its prices.

    `weights`: per chain the ways of the mixture that the bound belongs to, with their weights; empty where unknown.
    """

    bound: float  # of the marginal throughput, Mbps; without gains, below 0 if there is no plan
    prices: Floats  # of each limit, then of each cut
    weights: Sequence[dict[int, float]]


class PriceProgram:
    """Finds prices."""

    def __init__(self, ways: Sequence[PricedWays], limits: Floats) -> None:
        self.ways, self.limits = ways, limits
        self.cuts: list[frozenset[tuple[int, int]]] = []
        largest = [float((way.largest - way.least).max(initial=0.0)) for way in ways]
        self.scale = GAIN_SCALE / max([*largest, 1e-6])
        self.most = 100.0 * GAIN_SCALE * sum(way.number for way in ways)

    def best(self, allowed: Sequence[Bools], *, gain: bool, enough: float) -> Priced:
        """The least bound over the ways that are allowed, or the first that is `enough`.

        `gain`: whether gains count. Without, a bound below 0 proves that there is no plan.
        """
        uses = [self._uses(chain, one) for chain, one in enumerate(self.ways)]
        limits = np.concatenate([self.limits, [len(cut) - 1.0 for cut in self.cuts]])
        best = self.evaluate(np.zeros(len(limits)), allowed, uses, limits, gain=gain)
        for _ in range(MOST_ROUNDS):
            prices, weights, value = self._solve(allowed, uses, limits, gain)
            found = self.evaluate(prices, allowed, uses, limits, gain=gain)
            best = Priced(min(found.bound, best.bound), (found if found.bound < best.bound else best).prices, weights)
            close = 1e-10 * max(abs(value), 1.0 if gain else 1e-3)
            if best.bound <= enough or found.bound <= value + close or not self._add(found.weights):
                break
        return best

    def best_single(self, allowed: Sequence[Bools], known: Priced) -> Priced:
        """Prices of one limit alone where they prove that there is no plan; else those that are known.

        A limit that is missed by less than the solver's tolerance is missed.
        """
        uses = [self._uses(chain, one) for chain, one in enumerate(self.ways)]
        limits = np.concatenate([self.limits, [len(cut) - 1.0 for cut in self.cuts]])
        for at, limit in enumerate(limits):
            prices = np.zeros(len(limits))
            prices[at] = 1.0 / limit if limit > 0 else 1.0
            found = self.evaluate(_round(prices), allowed, uses, limits, gain=False)
            if found.bound < known.bound:
                known = Priced(found.bound, found.prices, known.weights)
        return known

    def evaluate(
        self,
        prices: Floats,
        allowed: Sequence[Bools],
        uses: Sequence[tuple[Floats, Floats]],
        limits: Floats,
        *,
        gain: bool,
    ) -> Priced:
        """The bound of prices, with the best way of each chain."""
        bound, found = float(limits @ prices), []
        for one, mask, (fixed, per_mbps) in zip(self.ways, allowed, uses, strict=True):
            rows = np.flatnonzero(mask)
            charge, slope = fixed[rows] @ prices, float(gain) - per_mbps[rows] @ prices
            ends = [slope * rate - float(gain) * one.least - charge for rate in (one.least, one.largest[rows])]
            worth = np.maximum(*ends)
            at = int(worth.argmax())
            bound += one.number * float(worth[at])
            found.append({int(rows[at]): 1.0})
        return Priced(bound, prices, found)

    def _uses(self, chain: int, one: PricedWays) -> tuple[Floats, Floats]:
        """What each way uses of limits and cuts at any rate, and per Mbps."""
        cuts = [[nf for of, nf in cut if of == chain] for cut in self.cuts]
        tables = [one.tables[:, nfs].sum(axis=1, dtype=np.float64)[:, None] for nfs in cuts]
        return np.hstack([one.needs, *tables]), np.hstack([one.shares, *(0.0 * table for table in tables)])

    def _add(self, found: Sequence[dict[int, float]]) -> bool:
        """Put ways into the program; whether one is new."""
        new = False
        for one, rows in zip(self.ways, found, strict=True):
            for row in rows:
                if row not in one.pool:
                    one.pool.append(row)
                    new = True
        return new

    def _solve(
        self, allowed: Sequence[Bools], uses: Sequence[tuple[Floats, Floats]], limits: Floats, gain: bool
    ) -> tuple[Floats, list[dict[int, float]], float]:
        """Prices over the ways in the program, the weights of the mixture, and the bound without other ways."""
        scales = np.where(limits > 0, limits, 1.0)
        rows, owners, numbers, right = [], [], [], []
        for chain, (one, mask, (fixed, per_mbps)) in enumerate(zip(self.ways, allowed, uses, strict=True)):
            pool = np.array([row for row in one.pool if mask[row]] or [int(np.argmax(mask))])
            ends = (np.full(len(pool), one.least), np.maximum(one.largest[pool], one.least))
            for rates in ends if gain else ends[:1]:
                rows.append((fixed[pool] + per_mbps[pool] * rates[:, None]) / scales)
                right.append((rates - one.least) * self.scale * gain)
                owners.append(np.full(len(pool), chain))
                numbers.append(pool)
        matrix, owner, number = np.vstack(rows), np.concatenate(owners), np.concatenate(numbers)
        surplus: Floats = (owner[:, None] == np.arange(len(self.ways))).astype(np.float64)
        above: Floats = -np.hstack([matrix, surplus])
        costs: Floats = np.concatenate([limits / scales, [float(way.number) for way in self.ways]])
        bounds = [(0.0, self.most if gain else 1.0)] * len(limits) + [(None, None)] * len(self.ways)
        if not gain:
            above = np.vstack([above, np.concatenate([np.ones(len(limits)), np.zeros(len(self.ways))])])
        limit: Floats = np.concatenate([-np.concatenate(right), [] if gain else [1.0]])
        found = linprog(costs, A_ub=above, b_ub=limit, bounds=bounds, method="highs")
        if found.status != 0 or found.x is None:
            raise ArithmeticError(f"a linear program was not solved: {found.message}")
        factor = self.scale if gain else 1.0
        weights: list[dict[int, float]] = [{} for _ in self.ways]
        for chain, way, weight in zip(owner, number, -found.ineqlin.marginals, strict=False):
            weights[chain][int(way)] = weights[chain].get(int(way), 0.0) + float(weight)
        return _round(found.x[: len(limits)] / scales / factor), weights, float(costs @ found.x) / factor


def _round(prices: Floats) -> Floats:
    return np.array([max(float(f"{price:.{PRICE_DIGITS}g}"), 0.0) for price in prices])


# What chains share: limits and their prices, and a proof as JSON; of single servers, or of equal ones together.


Document = dict[str, object]

EMPTY_BOUND = -1e-11  # prices without gains whose bound is below prove that there is no plan; the limits are worth 1


@dataclass(frozen=True)
class BoundProof:
    """A proof."""

    bound: float | None  # what it proves of the marginal throughput, Mbps; None where it proves that there is no plan
    document: Document  # as JSON (docs/formats/rack-certificate.md)


class SharedLimits:
    """What is shared, in the order of limits: cores of devices, NICs in and out, blocks.

    `rack`: with one server of each kind, or with all. `sizes`: how many servers each of them stands for; shape
    (servers,).
    """

    def __init__(self, rack: Rack, sizes: Ints) -> None:
        self.rack = rack
        cores = [pool.cores * rack.core_parts * sizes[pool.server] for pool in rack.pools]
        nics = [float(nic.mbps) * (1 + CAP_TOLERANCE) * sizes[nic.server] for nic in rack.nics for _ in ("in", "out")]
        stages = rack.switch.usable_stages
        self.bounded = stages is not None
        blocks = [] if stages is None else [stages * rack.switch.blocks_per_stage]
        self.limits = np.array([*cores, *nics, *blocks], dtype=np.float64)

    def price(
        self, number: int, least: float, rate: Floats, cores: Ints, shares: Floats, blocks: Ints, tables: Bools
    ) -> PricedWays:
        """Ways of chains, with all of them in the program from the start.

        `number`, `least`: of chains, and their least rate, Mbps. `rate`, `cores`, `shares`, `blocks`, `tables`: of each
        way; rows are ways.
        """
        none = np.zeros((len(rate), int(self.bounded)))
        needs: Floats = np.hstack([cores, np.zeros_like(shares), none + blocks[:, None]])
        per_mbps: Floats = np.hstack([np.zeros(cores.shape), shares, none])
        return PricedWays(number, least, np.maximum(rate, least), needs, per_mbps, tables, list(range(len(rate))))

    def written(self, prices: Floats, *, gain: bool) -> Document:
        """Prices as JSON; those of 0 are left out."""
        pools, links = [pool.name for pool in self.rack.pools], [nic.name for nic in self.rack.nics]
        ends = np.cumsum([len(pools), 2 * len(links), int(self.bounded)])
        cores, nics, blocks, cuts = np.split(prices, ends)
        parts: Document = {
            "gain": int(gain),
            "cores": _name(pools, cores * self.rack.core_parts),
            "nic_in": _name(links, nics[::2]),
            "nic_out": _name(links, nics[1::2]),
            "blocks": float(blocks.sum()),
            "cuts": _name([str(number) for number in range(len(cuts))], cuts),
        }
        return {key: value for key, value in parts.items() if key == "gain" or value}


def _name(names: Sequence[str], prices: Floats) -> dict[str, float]:
    return {name: float(price) for name, price in zip(names, prices, strict=True) if price}


def proof_document(
    servers: str, cuts: Sequence[frozenset[TableId]], tree: list[Document], chains: Sequence[Chain]
) -> Document:
    written = [[[chains[chain].name, chains[chain].nfs[nf].id] for chain, nf in sorted(cut)] for cut in cuts]
    return {"servers": servers, "cuts": written, "tree": tree}
