"""How plans are evaluated, which SLA violations to expect, and the columns of a comparison, on cases worked by hand."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from placer.evaluate.checks import slas_kept
from placer.evaluate.columns import RESULT_COLUMNS, spare_cores_pct
from placer.evaluate.evaluation import Evaluation, evaluate, to_buy
from placer.evaluate.expected_violations import expected_violations
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import NicKind
from placer.model.plan import Placement, Plan
from placer.model.sla import Sla
from placer.testing.strategies import CORES_BY_NF, SOLO_KPPS, ToyOracle, arrival, catalogue
from profiles import TrafficProfile, Workload

KIND = NicKind(0, "toy", 8, CORES_BY_NF)


def evaluated(*placements: Placement) -> Evaluation:
    """A plan's evaluation by the toy oracle."""
    return evaluate(Plan("by hand", None, placements, 0.0), [KIND], [ToyOracle()])


def test_the_lowest_throughput_of_the_stay_counts() -> None:
    """c loses 2 x 0.05 while b is there, from 1 to 2 s: 360 of 400 kpps."""
    c, b = arrival("c", 0, "c", 0.05), arrival("b", 1, "b", 0.5, departure=2)
    stays = evaluated(Placement(c, "n", KIND), Placement(b, "n", KIND)).stays
    assert stays is not None and round(stays["c"].throughput_kpps, 9) == 360.0
    assert not stays["c"].sla_met


def test_a_co_location_counts_only_after_its_moment() -> None:
    """One tenant leaves at the moment another arrives: they never shared the NIC, by evaluation and checker."""
    c, b, later = arrival("c", 0, "c", 0.1), arrival("b", 0, "b", 0.5, departure=1), arrival("b2", 1, "b", 0.5)
    placements = (Placement(c, "n", KIND), Placement(b, "n", KIND), Placement(later, "n", KIND))
    evaluation = evaluated(*placements)
    assert evaluation.violated == 0 and list(slas_kept(evaluation.plan, [ToyOracle()])) == []


def test_a_neighbour_that_arrives_at_the_same_time_counts_from_the_start() -> None:
    """An oracle by which a runs faster next to b: both arrive at 0 s, so a never runs alone."""

    class Helping(ToyOracle):
        def _query(self, co_locations):  # type: ignore[no-untyped-def]
            return [[50.0 if w.nf == "a" and len(co_location) == 1 else 100.0 for w in co_location]
                    for co_location in co_locations]  # fmt: skip

    a, b = arrival("a", 0, "a", 0.0), arrival("b", 0, "b", 0.5)
    plan = Plan("by hand", None, (Placement(a, "n", KIND), Placement(b, "n", KIND)), 0.0)
    stays = evaluate(plan, [KIND], [Helping()]).stays
    assert stays is not None and stays["a"].throughput_kpps == 100.0


def test_what_is_owned_need_not_be_bought() -> None:
    """At the peak two of the first kind, of which one is owned, and one of two other kinds of one model, both owned."""
    kinds = [
        NicKind(i, model, 8, CORES_BY_NF, owned=owned)
        for i, (model, owned) in enumerate([("x", 1), ("y", 3), ("y", None)])
    ]
    trace = [arrival(str(number), number, "d", departure=9 if number else 1) for number in range(5)]
    homes = [("a", 0), ("b", 0), ("c", 0), ("e", 1), ("f", 2)]
    placements = tuple(Placement(one, nic, kinds[kind]) for one, (nic, kind) in zip(trace, homes, strict=True))
    assert to_buy(Plan("by hand", None, placements, 0.0), kinds) == {"x": 1, "y": 1}


class Tenths:
    """A predictor by which every instance falls short with a tenth per instance on its NIC beyond the first."""

    def solo(self, workloads: Sequence[Workload]) -> np.ndarray:
        return np.array([SOLO_KPPS[one.nf] for one in workloads])

    def shortfall(self, co_locations: Sequence[Sequence[Workload]], required: Any) -> list[np.ndarray]:
        return [np.full(len(one), 0.1 * (len(one) - 1)) for one in co_locations]


def _catalogue() -> Catalogue:
    models = cast("Any", SimpleNamespace(predictors={"toy": Tenths()}))
    return Catalogue(catalogue().kinds, (models,), (None,))


def _plan(*placed: tuple[Arrival, str | None]) -> Plan:
    kind = catalogue().kinds[0]
    return Plan("toy", "toy", tuple(Placement(one, nic, kind if nic else None) for one, nic in placed), 0.0)


def test_three_on_one_nic_and_one_alone() -> None:
    """Three at two tenths and one at none: 0.6 of four, 15 %. Rejected arrivals do not count."""
    plan = _plan(
        (arrival("1", 0, "a"), "x"), (arrival("2", 1, "b"), "x"), (arrival("3", 2, "c"), "x"),
        (arrival("4", 3, "d"), "y"), (arrival("5", 4, "d"), None),
    )  # fmt: skip
    assert expected_violations(plan, _catalogue(), "toy").mean_pct == pytest.approx(15.0)


def test_the_worst_moment_of_a_stay_counts() -> None:
    """Two share a NIC until one leaves: both were at a tenth, whatever comes afterwards."""
    plan = _plan((arrival("1", 0, "a", departure=5), "x"), (arrival("2", 1, "b"), "x"), (arrival("3", 6, "c"), "y"))
    assert expected_violations(plan, _catalogue(), "toy").mean_pct == pytest.approx(100 * 0.2 / 3)


def test_repeated_co_locations_spread_more() -> None:
    """Four NICs with the same pair fail together; four different pairs do not. The expectation is the same."""
    same = [(arrival(f"{nic}{nf}", 0, nf), f"nic-{nic}") for nic in range(4) for nf in "ab"]
    pairs = ("aa", "bb", "cc", "dd")
    different = [
        (arrival(f"{nic}{at}", 0, nf), f"nic-{nic}") for nic, pair in enumerate(pairs) for at, nf in enumerate(pair)
    ]
    alike, apart = (expected_violations(_plan(*one), _catalogue(), "toy") for one in (same, different))
    assert alike.mean_pct == pytest.approx(apart.mean_pct)
    assert alike.spread_pct == pytest.approx(2**0.5 * apart.spread_pct)


def test_an_empty_plan_violates_nothing() -> None:
    """Zero of zero."""
    assert expected_violations(_plan(), _catalogue(), "toy").mean_pct == 0.0


SHARED_KIND = NicKind(0, "small", 4, {"NAT": 1, "IDS": 2})


def test_spare_cores_are_counted_when_most_nics_are_in_use() -> None:
    """Two NICs of four cores with IDS, IDS and NAT, before NAT leaves: three of eight cores are spare."""
    arrivals = [
        Arrival(name, float(number), Workload(nf, TrafficProfile(1, 1, 1)), Sla(max_drop=0.1), departure)
        for number, (name, nf, departure) in enumerate((("a", "IDS", None), ("b", "NAT", 9.0), ("c", "IDS", None)))
    ]
    nics = ("nic-1", "nic-1", "nic-2")
    placements = tuple(Placement(arrival, nic, SHARED_KIND) for arrival, nic in zip(arrivals, nics, strict=True))
    assert spare_cores_pct([SHARED_KIND], evaluate(Plan("toy", None, placements, 0.1), [SHARED_KIND], None)) == 37.5
    assert spare_cores_pct([SHARED_KIND], evaluate(Plan("toy", None, (), 0.1), [SHARED_KIND], None)) is None


def test_keys_and_headings_are_different() -> None:
    for names in (
        [c.key for c in RESULT_COLUMNS],
        [c.heading for c in RESULT_COLUMNS],
        [c.page for c in RESULT_COLUMNS],
    ):
        given = [name for name in names if name]
        assert len(given) == len(set(given))


def test_the_page_of_the_output_has_a_row_for_each_key() -> None:
    page = (Path(__file__).parents[3] / "docs" / "formats" / "run.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert [
        column.key for column in RESULT_COLUMNS if column.key and not any(f"`{column.key}`" in row for row in rows)
    ] == []
