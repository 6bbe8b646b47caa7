"""The shortfall of a fleet, on cases worked by hand."""

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


def test_there_is_no_shortfall_where_all_tenants_are_placed() -> None:
    """Two ACLs fit the one NIC."""
    assert shortfall_with(ACLS[:2], [KIND]) is None


def test_the_shortfall_lists_tenants_left_out_and_nics_to_add() -> None:
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
        ("x",),
        proven=True,
        everything=True,
        to_add={},
        to_add_proven=True,
        unsatisfiable=("x",),
        reason="No NIC of the fleet runs firewall",
    )


def test_a_tenant_that_only_lacks_a_neighbour_is_not_unsatisfiable() -> None:
    """An ACL is fast only with the NIDS, which has room for one of two: the other is left out, not unsatisfiable."""
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
