"""The pattern program on cases worked by hand. The shortfall of a fleet, on cases worked by hand."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.optimal import optimal_plan
from placer.optimal.program import costs_in_units
from placer.optimal.shortfall import Shortfall, shortfall_of
from placer.optimal.solvers import SOLVERS, IntegerSolution, solve_integers
from tests.placer.optimal.instances import TableOracle, faults_of, tenant, workload

CORES_OF = {"acl": 2, "nat": 2, "nids": 4}
BLUEFIELD = NicKind(0, "bluefield-2", 8, CORES_OF)


def test_no_tenants_need_no_nic() -> None:
    """Without tenants the optimum is no NIC, proven."""
    optimum = optimal_plan([], [BLUEFIELD], [TableOracle({})])
    assert (optimum.nics, optimum.cost, optimum.lower_bound, optimum.proven) == ([], 0, 0, True)


def test_cores_alone_decide_without_contention() -> None:
    """Ten NFs of two cores need three NICs of eight, and no search can do with fewer."""
    tenants = [tenant(f"t{i}", "acl", drop=0.05) for i in range(10)]
    optimum = optimal_plan(tenants, [BLUEFIELD], [TableOracle({})])
    assert (len(optimum.nics), optimum.lower_bound, optimum.nics_lower_bound, optimum.proven) == (3, 3, 3, True)
    assert faults_of(optimum, tenants, [BLUEFIELD], [TableOracle({})]) == []


@pytest.mark.parametrize("solver", SOLVERS)
def test_only_tenants_with_loose_slas_share_a_nic(solver: str) -> None:
    """Two ACLs slow each other by a tenth: of four, the two that tolerate it share a NIC, the others get their own."""
    oracle = TableOracle({"acl acl": [90, 90], "acl acl acl": [70] * 3, "acl acl acl acl": [60] * 4})
    tenants = [tenant(str(i), "acl", drop=drop) for i, drop in enumerate((0.2, 0.05, 0.1, 0.0))]
    optimum = optimal_plan(tenants, [BLUEFIELD], [oracle], solver=solver)
    assert (optimum.cost, optimum.proven) == (3, True)
    assert sorted(sorted(t.id for t in on_nic) for _, on_nic in optimum.nics) == [["0", "2"], ["1"], ["3"]]


def test_a_slot_that_others_need_filled_is_not_left_empty() -> None:
    """Two ACLs are fast with a NAT and slow without it, so the co-location must be complete."""
    table = {"acl acl": [50, 50], "acl nat": [50, 50], "nat nat": [50, 50], "acl acl nat": [95, 95, 95]}
    table |= {"acl nat nat": [50] * 3, "acl acl acl": [50] * 3, "nat nat nat": [50] * 3}
    table |= {" ".join(["acl"] * i + ["nat"] * (4 - i)): [50] * 4 for i in range(5)}
    tenants = [tenant("a", "acl", drop=0.1), tenant("b", "acl", drop=0.1)]
    assert optimal_plan(tenants, [BLUEFIELD], [TableOracle(table)]).cost == 2
    tenants.append(tenant("c", "nat", drop=0.1))
    optimum = optimal_plan(tenants, [BLUEFIELD], [TableOracle(table)])
    assert (optimum.cost, optimum.proven) == (1, True)


def test_a_tenant_that_no_nic_can_serve_is_left_out() -> None:
    """More throughput than the NF has alone, or an NF that no NIC knows: left out, and the rest is placed."""
    tenants = [tenant("a", "acl", kpps=90), tenant("b", "acl", kpps=101), tenant("c", "firewall", drop=0.1)]
    optimum = optimal_plan(tenants, [BLUEFIELD], [TableOracle({})])
    assert sorted(t.id for t in optimum.unplaced) == ["b", "c"]
    assert (optimum.cost, optimum.proven) == (1, True)


def test_a_small_fleet_places_as_many_as_it_can() -> None:
    """One NIC takes four ACLs or two NIDS: with one of them, the four are placed and the two are left out."""
    kinds = [NicKind(0, "bluefield-2", 8, CORES_OF, count=1)]
    tenants = [tenant(f"a{i}", "acl", drop=0.1) for i in range(4)] + [tenant(f"n{i}", "nids", drop=0.1) for i in (1, 2)]
    optimum = optimal_plan(tenants, kinds, [TableOracle({})])
    assert sorted(t.id for t in optimum.unplaced) == ["n1", "n2"]
    assert (optimum.cost, optimum.proven) == (1, True)


def test_owned_nics_are_used_before_new_ones_are_bought() -> None:
    """Ten ACLs on one owned NIC and on new ones at 1.5: two are bought."""
    kinds = [NicKind(0, "owned", 8, CORES_OF, count=1, cost=0.0), NicKind(1, "new", 8, CORES_OF, cost=1.5)]
    tenants = [tenant(f"t{i}", "acl", drop=0.1) for i in range(10)]
    optimum = optimal_plan(tenants, kinds, [TableOracle({}), TableOracle({})])
    assert (optimum.cost, optimum.lower_bound, optimum.nics_lower_bound, optimum.proven) == (3.0, 3.0, 3, True)


def test_two_kinds_of_sla_on_two_kinds_of_nic() -> None:
    """On a NIC twice as fast a drop is harder to keep and a throughput easier: each tenant goes where it is served."""
    kinds = [NicKind(0, "slow", 4, CORES_OF), NicKind(1, "fast", 4, CORES_OF)]
    oracles = [TableOracle({"acl acl": [95, 95]}), TableOracle({"acl acl": [150, 150]}, alone=200)]
    tenants = [*(tenant(f"d{i}", "acl", drop=0.1) for i in (1, 2)), *(tenant(f"k{i}", "acl", kpps=140) for i in (1, 2))]
    optimum = optimal_plan(tenants, kinds, oracles)
    assert (optimum.cost, optimum.proven) == (2, True)
    homes = {t.id: kind.model for kind, on_nic in optimum.nics for t in on_nic}
    assert homes == {"d1": "slow", "d2": "slow", "k1": "fast", "k2": "fast"}


def test_the_same_input_gets_the_same_plan() -> None:
    """Two calls return the same tenants on the same NICs in the same order."""
    tenants = [tenant(str(i), nf, drop=0.05 + 0.01 * (i % 7)) for i, nf in enumerate(["acl", "nat", "nids"] * 8)]
    oracle = TableOracle({"acl nat": [93, 91], "acl acl nat nat": [89, 89, 88, 88], "nat nids": [90, 92]})
    plans = [
        [(k.index, [t.id for t in ts]) for k, ts in optimal_plan(tenants, [BLUEFIELD], [oracle]).nics] for _ in "ab"
    ]
    assert plans[0] == plans[1]


def test_the_program_does_not_grow_with_the_tenants() -> None:
    """The program has as many variables for many tenants as for few with the same thresholds."""
    oracle = TableOracle({"acl acl": [90, 90], "acl nat": [92, 85]})
    tenants = [tenant(str(i), "acl" if i % 3 else "nat", drop=0.05 + 0.1 * (i % 2)) for i in range(3000)]
    optimum = optimal_plan(tenants, [BLUEFIELD], [oracle])
    assert optimum.proven and faults_of(optimum, tenants, [BLUEFIELD], [oracle]) == []
    assert workload("acl") in {t.workload for _, on_nic in optimum.nics for t in on_nic}


@pytest.mark.parametrize(
    ("offers", "costs", "unit"),
    [
        ([(1499.99, None)], [1], Fraction(149999, 100)),  # any cost is one unit where it is the only one
        ([(2.5, None), (7.5, 3)], [1, 3], Fraction(5, 2)),
        ([(1.0, None), (0.001, 0)], [1, 0], Fraction(1)),  # there is no cheap NIC
        ([(0.0, None), (0.6, 1)], [0, 1], Fraction(3, 5)),
        ([(0.0, None)], [0], Fraction(1)),
    ],
)
def test_the_cost_unit_is_the_largest_common_one(
    offers: list[tuple[float, int | None]], costs: list[int], unit: Fraction
) -> None:
    """Bounds are rounded up to a whole number of units: the larger the unit, the more is proven."""
    kinds = [NicKind(i, "x", 8, CORES_OF, count, cost) for i, (cost, count) in enumerate(offers)]
    found, by = costs_in_units(kinds)
    assert (found.tolist(), by) == (costs, unit)


def test_the_bound_is_raised_by_nics_and_not_by_cost_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five ACLs, two per NIC: fractions of NICs cost 2.50, whole NICs 3.00, and few searches cover the difference."""
    calls = []

    def counted(*program: Any, **settings: Any) -> IntegerSolution:
        calls.append(1)
        return solve_integers(*program, **settings)

    monkeypatch.setattr("placer.optimal.solvers.solve_integers", counted)
    kinds = [NicKind(0, "large", 4, CORES_OF), NicKind(1, "small", 2, CORES_OF, cost=1.01)]
    optimum = optimal_plan([tenant(str(i), "acl", drop=0.1) for i in range(5)], kinds, [TableOracle({})] * 2)
    assert (optimum.cost, optimum.proven) == (3.0, True) and len(calls) < 10


KIND = NicKind(0, "bluefield-2", 4, {"acl": 2, "nids": 4}, count=1)
ORACLE = TableOracle({})


def shortfall_with(tenants: list[Tenant], kinds: list[NicKind]) -> Shortfall | None:
    """The lack of the optimum of these tenants."""
    oracles = [ORACLE] * len(kinds)
    return shortfall_of(optimal_plan(tenants, kinds, oracles), tenants, kinds, oracles, seconds=5, solver="cp-sat")


ACLS = [tenant(str(i), "acl", drop=0.1) for i in range(5)]


def test_there_is_no_shortfall_where_all_tenants_are_placed() -> None:
    """Two ACLs fit the one NIC."""
    assert shortfall_with(ACLS[:2], [KIND]) is None


def test_the_shortfall_lists_tenants_left_out_and_nics_to_add() -> None:
    """Of five ACLs one NIC takes two; three are left out, at least, and two more NICs take them."""
    lack = shortfall_with(ACLS, [KIND])
    assert lack is not None
    assert (len(lack.left_out), lack.proven, lack.to_add, lack.unsatisfiable) == (3, True, {"bluefield-2": 2}, ())
    assert lack.sentence().endswith("NICs to add: 2 bluefield-2.")
    assert replace(lack, to_add_proven=False).sentence().endswith("NICs to add (fewer may be enough): 2 bluefield-2.")


def test_a_tenant_that_requires_too_much_is_unsatisfiable() -> None:
    """More throughput than the NF gets alone: no NIC to add, and the sentence names the tenant and the reason."""
    demanding = tenant("demanding", "acl", kpps=101)
    why = "demanding requires 101 kpps, and acl gets 100 kpps alone on a NIC"
    lack = shortfall_with([ACLS[0], demanding], [KIND])
    assert lack == Shortfall(
        ("demanding",), proven=True, to_add={}, to_add_proven=True, unsatisfiable=("demanding",), reason=why
    )
    assert lack.sentence().endswith(f"No NIC meets the SLA of demanding. {why}.")
    assert shortfall_with([demanding], [replace(KIND, count=None)]) == Shortfall(
        ("demanding",), proven=True, everything=True, unsatisfiable=("demanding",), reason=why
    )
    assert shortfall_with([tenant("x", "firewall", drop=0.1)], [KIND]) == Shortfall(
        ("x",), proven=True, everything=True, to_add={}, to_add_proven=True, unsatisfiable=("x",),
        reason="No NIC of the fleet runs firewall",
    )  # fmt: skip


def test_a_tenant_that_only_lacks_a_neighbour_is_not_unsatisfiable() -> None:
    """An ACL is fast only with the NIDS, which has room for one of two: the other is left out, not unsatisfiable."""
    kind = NicKind(0, "bluefield-2", 4, {"acl": 2, "nids": 2})
    oracle = TableOracle({"acl": [60], "acl acl": [60, 60], "acl nids": [100, 100]})
    tenants = [tenant("a", "acl", kpps=90), tenant("b", "acl", kpps=90), tenant("n", "nids", drop=0.1)]
    lack = shortfall_of(optimal_plan(tenants, [kind], [oracle]), tenants, [kind], [oracle], seconds=5, solver="cp-sat")
    assert lack is not None and (len(lack.left_out), lack.proven, lack.unsatisfiable) == (1, True, ())


def test_the_sentence_says_when_nothing_is_placed() -> None:
    """A fleet without a NIC rejects every arrival, which is not 0 NICs that are enough; it lacks three NICs."""
    none = shortfall_with(ACLS, [replace(KIND, count=0)])
    assert none is not None
    assert none.sentence() == (
        "The optimum places nothing and rejects all 5 arrivals; no plan places any: 0, 1, 2, 3, 4. "
        "NICs to add: 3 bluefield-2."
    )
    some = shortfall_with(ACLS, [KIND])
    assert some is not None
    assert some.sentence().startswith("The optimum rejects 3 arrivals; no plan rejects fewer: ")
