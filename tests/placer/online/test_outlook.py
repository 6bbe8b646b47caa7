"""The outlook, on worlds small enough to be priced by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from placer.fleet import NicKind
from placer.online.outlook import slot_prices
from placer.online.patterns import Floats, Patterns, too_many
from placer.oracle import Company, Oracle
from profiles import TrafficProfile, Workload

BIG, SMALL = (Workload(nf, TrafficProfile(1, 64)) for nf in ("big", "small"))
KIND = NicKind(0, "toy", 4, {"big": 3, "small": 1})


class Quiet(Oracle):
    """Company costs nothing, except that small beside small loses 20 %."""

    def _ask(self, companies: Sequence[Company]) -> Sequence[Sequence[float]]:
        return [[80.0 if w == SMALL and company.count(SMALL) > 1 else 100.0 for w in company] for company in companies]


PATTERNS = Patterns(KIND, [BIG, SMALL], Quiet())


def beside_big(prices: Floats) -> float:
    """What the core that a big one leaves is worth."""
    with_both = int(PATTERNS.joined[PATTERNS.joined[0, 0], 1])
    return float(prices[with_both, 1])


def prices_of(*seen: tuple[int, int, float]) -> Floats:
    """Prices for so many arrivals of a column that bear a drop."""
    prices = slot_prices(PATTERNS, [(column, bears) for count, column, bears in seen for _ in range(count)])
    assert prices is not None
    return prices


def test_all_companies_that_fit_are_known_with_the_empty_one_first() -> None:
    """Four cores hold up to four small ones, or a big one with or without a small one."""
    rows = [tuple(row) for row in PATTERNS.counts.tolist()]
    assert rows[0] == (0, 0)
    assert sorted(rows) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1)]
    assert PATTERNS.over(rows.index((1, 0))).tolist() == [rows.index((1, 0)), rows.index((1, 1))]
    assert PATTERNS.kpps[rows.index((0, 2))].tolist() == [0.0, 80.0]


def test_the_best_company_is_worth_a_nic() -> None:
    """Whatever the prices, they are scaled so."""
    prices = prices_of((10, 0, 0.5), (10, 1, 0.5))
    assert (prices * PATTERNS.counts).sum(axis=1).max() == pytest.approx(1.0)


def test_a_company_that_nobody_bears_has_no_price() -> None:
    """When small ones bear 10 %, companies of two are worth nothing."""
    prices = prices_of((10, 1, 0.1))
    assert np.all(prices[PATTERNS.counts[:, 1] > 1] == 0)


def test_tight_small_ones_make_room_beside_big_ones_scarce() -> None:
    """When small ones bear no company of their kind, each needs a NIC, and the room beside a big one is worth having;
    when four of them share gladly, the big ones need the NICs, and room for three cores is what is worth having."""
    assert beside_big(prices_of((5, 0, 0.5), (40, 1, 0.0))) > 0.9
    assert beside_big(prices_of((40, 0, 0.5), (5, 1, 0.5))) < 0.1


def test_too_many_workloads_are_counted_and_not_enumerated() -> None:
    """Fifty-nine workloads of a core each form more companies on twelve cores than anybody would ask for."""
    kind = NicKind(0, "wide", 12, {"small": 1})
    many = [Workload("small", TrafficProfile(i, 64)) for i in range(1, 60)]
    assert too_many(kind, many)
    assert not too_many(kind, many[:3])
    assert not too_many(KIND, [BIG, SMALL], most=7)
    assert too_many(KIND, [BIG, SMALL], most=6)
