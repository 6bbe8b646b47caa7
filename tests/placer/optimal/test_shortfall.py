"""What a fleet lacks, on cases worked by hand."""

from __future__ import annotations

from dataclasses import replace

from placer.model.fleet import NicKind, Tenant
from placer.optimal import optimal_plan
from placer.optimal.shortfall import Shortfall, shortfall_of
from tests.placer.optimal.instances import TableOracle, tenant

KIND = NicKind(0, "bluefield-2", 4, {"acl": 2, "nids": 4}, count=1)
ORACLE = TableOracle({})


def lacking(tenants: list[Tenant], kinds: list[NicKind]) -> Shortfall | None:
    """The shortfall of the optimum of these tenants."""
    oracles = [ORACLE] * len(kinds)
    optimum = optimal_plan(tenants, kinds, oracles)
    return shortfall_of(optimum, tenants, kinds, oracles, seconds=5, solver="cp-sat")


ACLS = [tenant(str(i), "acl", drop=0.1) for i in range(5)]


def test_nothing_is_lacking_where_all_are_placed() -> None:
    """Two ACLs fit the one NIC."""
    assert lacking(ACLS[:2], [KIND]) is None


def test_who_has_no_place_and_what_would_help() -> None:
    """Of five ACLs one NIC takes two; three are left out, at least, and two more NICs take them."""
    told = lacking(ACLS, [KIND])
    assert told is not None
    assert (len(told.left_out), told.smallest, told.to_add, told.hopeless) == (3, True, {"bluefield-2": 2}, ())
    assert told.told().endswith("NICs to add: 2 bluefield-2.")
    assert replace(told, fewest=False).told().endswith("NICs to add (perhaps fewer do): 2 bluefield-2.")


def test_no_number_of_nics_helps_who_asks_too_much() -> None:
    """More throughput than the NF has alone: no NIC to add, and it is said whose SLA that is, and why."""
    greedy = tenant("greedy", "acl", kpps=101)
    why = "greedy asks for 101 kpps, and acl makes 100 alone"
    told = lacking([ACLS[0], greedy], [KIND])
    assert told == Shortfall(("greedy",), smallest=True, to_add={}, fewest=True, hopeless=("greedy",), why=why)
    assert told.told().endswith(f"No NIC keeps the SLA of greedy. {why}.")
    assert lacking([greedy], [replace(KIND, count=None)]) == Shortfall(
        ("greedy",), smallest=True, hopeless=("greedy",), why=why
    )
    assert lacking([tenant("x", "firewall", drop=0.1)], [KIND]) == Shortfall(
        ("x",), smallest=True, to_add={}, fewest=True, hopeless=("x",), why="No NIC hosts firewall"
    )


def test_who_lacks_only_company_is_not_without_hope() -> None:
    """Two ACLs are fast beside the NIDS alone, which takes one: the other is left out, but a NIC would keep its SLA."""
    kind = NicKind(0, "bluefield-2", 4, {"acl": 2, "nids": 2})
    oracle = TableOracle({"acl": [60], "acl acl": [60, 60], "acl nids": [100, 100]})
    tenants = [tenant("a", "acl", kpps=90), tenant("b", "acl", kpps=90), tenant("n", "nids", drop=0.1)]
    told = shortfall_of(optimal_plan(tenants, [kind], [oracle]), tenants, [kind], [oracle], seconds=5, solver="cp-sat")
    assert told is not None
    assert (len(told.left_out), told.smallest, told.hopeless) == (1, True, ())
