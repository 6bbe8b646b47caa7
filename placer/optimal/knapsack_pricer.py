"""The worker of column generation for packing: it finds sets of items that fit a bin and are worth more than it.

Sets grow by one item at a time, all sets of one size at once. The dimensions are weighted by the dual prices of the
relaxed knapsack, and items come in order of price per weighted size. So what the room left in a set can still add is
bounded by a fractional knapsack of one dimension. Sets that cannot become worth more than a bin are dropped. Where too
many are left, those of the lowest bounds are dropped, too, and the returned bound allows for them."""

import time
from dataclasses import dataclass

import numpy as np

from placer.optimal.column_generation import WORTH_MORE, Column, PricedColumns
from profiles.arrays import Floats, Ints
from profiles.linear_programs import linprog

BEAM_WIDTHS = (300, 30_000)  # sets of one size kept at most: few in the first attempt, more where that finds nothing

MOST_COLUMNS = 40
LEAST_WEIGHT = 1e-9  # weight of an item of no size, so that price per weight is a number


@dataclass(frozen=True, eq=False)
class _Sets:
    """Sets of one size: items ascending by place, room left, and worth."""

    places: Ints
    room: Ints
    worth: Floats


class KnapsackPricer:
    """The worker for one kind of bin, of cost 1.

    `capacities`: of the bin, shape (dimensions,). `sizes`: of every item, none below zero, shape (items, dimensions).
    `widths`: sets of one size that are kept at most, from the first attempt to the last.
    """

    def __init__(self, capacities: Ints, sizes: Ints, widths: tuple[int, ...] = BEAM_WIDTHS) -> None:
        self.capacities = capacities
        self.sizes = sizes
        self.widths = widths

    def __call__(self, prices: Floats, needed: Ints, deadline: float) -> PricedColumns:
        items = np.flatnonzero((prices > 0) & (needed > 0))
        search = _SetSearch(self.capacities, self.sizes[items], prices[items], deadline)
        priced = PricedColumns([], np.array([np.inf]))
        for width in self.widths:
            if priced.columns or priced.most[0] <= 1 + WORTH_MORE or time.monotonic() >= deadline:
                break
            found, most = search.sets(width, deadline)
            columns = [Column(0, tuple(sorted(items[list(members)].tolist()))) for members in found]
            priced = PricedColumns(columns, np.array([most]))
        return priced


class _SetSearch:
    """Items in order of price per weighted size."""

    def __init__(self, capacities: Ints, sizes: Ints, prices: Floats, deadline: float) -> None:
        self.capacities = capacities
        self.dimension_weights = _dual_prices(capacities, sizes, prices, deadline - time.monotonic())
        weight = sizes @ self.dimension_weights + LEAST_WEIGHT
        self.order = np.argsort(-prices / weight, kind="stable")
        self.sizes, self.prices, self.weight = sizes[self.order], prices[self.order], weight[self.order]
        self.weight_before = np.concatenate([[0.0], np.cumsum(self.weight)])
        self.price_before = np.concatenate([[0.0], np.cumsum(self.prices)])

    def sets(self, width: int, deadline: float) -> tuple[list[tuple[int, ...]], float]:
        """The sets of the highest worth found that are worth more than a bin, and a bound on the worth of any."""
        most = 1 + WORTH_MORE  # sets worth less are not looked for
        layer = _Sets(np.zeros((1, 0), dtype=np.int64), self.capacities[None, :], np.zeros(1))
        bound = self._most_to_add(0, layer.room)
        found: list[tuple[float, tuple[int, ...]]] = []
        while len(layer.worth):
            grown = self._grow(layer, deadline)
            if grown is None:
                most = max(most, float(bound.max()))
                break
            layer, bound = grown
            if len(layer.worth) > width:
                by_bound = np.argsort(-bound, kind="stable")
                most = max(most, float(bound[by_bound[width]]))
                chosen = by_bound[:width]
                layer = _Sets(layer.places[chosen], layer.room[chosen], layer.worth[chosen])
                bound = bound[chosen]
            best = np.argsort(-layer.worth, kind="stable")[:MOST_COLUMNS]
            best = best[layer.worth[best] > 1 + WORTH_MORE]
            sets = map(tuple, self.order[layer.places[best]].tolist())
            found.extend(zip(layer.worth[best].tolist(), sets, strict=True))
        found.sort(key=lambda one: -one[0])
        if found:
            most = max(most, found[0][0])
        return [members for _, members in found[:MOST_COLUMNS]], most

    def _grow(self, layer: _Sets, deadline: float) -> tuple[_Sets, Floats] | None:
        """Sets with one more item that may become worth more than a bin, and a bound on the worth of each.

        None after the deadline.
        """
        last = layer.places[:, -1] if layer.places.shape[1] else np.full(len(layer.worth), -1)
        places, rooms, worths, bounds = [], [], [], []
        for item in range(len(self.prices)):
            if time.monotonic() >= deadline:
                return None
            rows = np.flatnonzero(last < item)
            rows = rows[np.all(layer.room[rows] >= self.sizes[item], axis=1)]
            room = layer.room[rows] - self.sizes[item]
            worth = layer.worth[rows] + self.prices[item]
            bound = worth + self._most_to_add(item + 1, room)
            good = bound > 1 + WORTH_MORE
            places.append(np.column_stack([layer.places[rows[good]], np.full(int(good.sum()), item)]))
            rooms.append(room[good])
            worths.append(worth[good])
            bounds.append(bound[good])
        if not places:
            return _Sets(layer.places[:0], layer.room[:0], layer.worth[:0]), layer.worth[:0]
        return _Sets(np.concatenate(places), np.concatenate(rooms), np.concatenate(worths)), np.concatenate(bounds)

    def _most_to_add(self, place: int, room: Ints) -> Floats:
        """The most that fractions of the items from `place` on can be worth in each room, by weight alone."""
        weight = room @ self.dimension_weights + LEAST_WEIGHT * len(self.prices)
        within = np.interp(self.weight_before[place] + weight, self.weight_before, self.price_before)
        return np.asarray(within - self.price_before[place], dtype=np.float64)


def _dual_prices(capacities: Ints, sizes: Ints, prices: Floats, seconds: float) -> Floats:
    """Weights of the dimensions with which the relaxed knapsack of one dimension has the optimum of that of all."""
    equal: Floats = 1.0 / np.maximum(capacities, 1)
    if not len(prices) or seconds <= 0:
        return equal
    solved = linprog(
        -prices, A_ub=sizes.T, b_ub=capacities, bounds=(0, 1), method="highs", options={"time_limit": seconds}
    )
    if solved.x is None:
        return equal
    weights: Floats = np.maximum(-solved.ineqlin.marginals, 0.0)
    return weights if weights.any() else equal
