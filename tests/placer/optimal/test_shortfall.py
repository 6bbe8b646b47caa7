"""What a fleet lacks, on cases worked by hand."""

from __future__ import annotations

from dataclasses import replace

from placer.model.fleet import NicKind, Tenant
from placer.optimal import optimal_plan
from placer.optimal.shortfall import Shortfall, shortfall_of
from tests.placer.optimal.instances import TableOracle, tenant

KIND = NicKind(0, "bluefield-2", 4, {"acl": 2, "nids": 4}, count=1)
ORACLE = TableOracle({})


def shortfall_with(tenants: list[Tenant], kinds: list[NicKind]) -> Shortfall | None:
    """The lack of the optimum of these tenants."""
    oracles = [ORACLE] * len(kinds)
    optimum = optimal_plan(tenants, kinds, oracles)
    return shortfall_of(optimum, tenants, kinds, oracles, seconds=5, solver="cp-sat")


ACLS = [tenant(str(i), "acl", drop=0.1) for i in range(5)]


def test_nothing_is_shortfall_with_where_all_are_placed() -> None:
    """Two ACLs fit the one NIC."""
    assert shortfall_with(ACLS[:2], [KIND]) is None


def test_who_has_no_place_and_what_would_help() -> None:
    """Of five ACLs one NIC takes two; three are left out, at least, and two more NICs take them."""
    lack = shortfall_with(ACLS, [KIND])
    assert lack is not None
    assert (len(lack.left_out), lack.proven, lack.to_add, lack.unsatisfiable) == (
        3,
        True,
        {"bluefield-2": 2},
        (),
    )
    assert lack.sentence().endswith("NICs to add: 2 bluefield-2.")
    assert replace(lack, to_add_proven=False).sentence().endswith("NICs to add (fewer may be enough): 2 bluefield-2.")


def test_no_number_of_nics_helps_who_asks_too_much() -> None:
    """More throughput than the NF has alone: no NIC to add, and it is said whose SLA that is, and why."""
    greedy = tenant("greedy", "acl", kpps=101)
    why = "greedy requires 101 kpps, and acl gets 100 kpps alone on a NIC"
    lack = shortfall_with([ACLS[0], greedy], [KIND])
    assert lack == Shortfall(
        ("greedy",), proven=True, to_add={}, to_add_proven=True, unsatisfiable=("greedy",), reason=why
    )
    assert lack.sentence().endswith(f"No NIC meets the SLA of greedy. {why}.")
    assert shortfall_with([greedy], [replace(KIND, count=None)]) == Shortfall(
        ("greedy",), proven=True, everything=True, unsatisfiable=("greedy",), reason=why
    )
    assert shortfall_with([tenant("x", "firewall", drop=0.1)], [KIND]) == Shortfall(
        ("x",),
        proven=True,
        everything=True,
        to_add={},
        to_add_proven=True,
        unsatisfiable=("x",),
        reason="No NIC of the fleet runs firewall",
    )


def test_who_lacks_only_company_is_not_without_hope() -> None:
    """Two ACLs are fast beside the NIDS alone, which takes one: the other is left out, but a NIC would keep its SLA."""
    kind = NicKind(0, "bluefield-2", 4, {"acl": 2, "nids": 2})
    oracle = TableOracle({"acl": [60], "acl acl": [60, 60], "acl nids": [100, 100]})
    tenants = [tenant("a", "acl", kpps=90), tenant("b", "acl", kpps=90), tenant("n", "nids", drop=0.1)]
    lack = shortfall_of(optimal_plan(tenants, [kind], [oracle]), tenants, [kind], [oracle], seconds=5, solver="cp-sat")
    assert lack is not None
    assert (len(lack.left_out), lack.proven, lack.unsatisfiable) == (1, True, ())


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
