"""Constraints and priorities of arrivals: groups and pools hold in every plan; what no fleet could hold is refused."""

import csv
import io
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from placer.cli import app
from placer.evaluate.checks import InvalidPlan, check_plan, constraints_kept
from placer.inputs.arrivals import read_arrivals, refuse_priorities
from placer.model.arrival import Arrival
from placer.model.groups import Constraints
from placer.model.nic_kind import NicKind
from placer.model.plan import Placement, Plan
from placer.model.unplaceable import constraint_faults
from placer.optimal.certificate import refuse_uncertifiable
from placer.optimal.trace_optimum import find_optimum
from placer.policy.rules import RULES_BY_NAME
from placer.strategies.contention_aware import ContentionAware
from placer.strategies.greedy import Greedy
from placer.strategies.monopolization import Monopolization
from placer.studies.growth import Growth, arrivals_csv, grow
from placer.testing.strategies import TOY_PREDICTOR, TOY_TRAFFIC, ToyCatalogue, arrival, catalogue
from profiles import InputError

RACKS = (("p1", "r1"), ("p1", "r2"), ("p2", "r1"), ("", "r3"), ("", ""))


def nics(*racks: tuple[str, str], count: int | None = None) -> ToyCatalogue:
    """Kinds of toy NICs, one for each (pool, domain)."""
    (kind,) = catalogue((count, 1.0)).kinds
    kinds = [replace(kind, index=at, pool=pool, domain=domain) for at, (pool, domain) in enumerate(racks)]
    return ToyCatalogue(tuple(kinds), (), ())


def constrained(identity: str, time: float, departure: float | None = None, nf: str = "", **values: str) -> Arrival:
    given = Constraints(tuple(sorted((name, value) for name, value in values.items() if value)))
    return replace(arrival(identity, time, nf or first_nf(), 0.3, departure), constraints=given)


def first_nf() -> str:
    return next(iter(catalogue().kinds[0].cores_of))


@st.composite
def traces(draw: st.DrawFn) -> list[Arrival]:
    """Up to eight arrivals in up to three groups of each kind."""
    nfs = sorted(catalogue().kinds[0].cores_of)
    group = st.sampled_from(("", "", "g1", "g2", "g3"))
    made = []
    for at in range(draw(st.integers(1, 8))):
        stay = draw(st.none() | st.integers(1, 5))
        pool = draw(st.sampled_from(("", "p1", "p2", "p1|p2")))
        values = {name: draw(group) for name in ("spread", "apart", "together")}
        values |= {name: draw(st.sampled_from(("", "", "2 g", "3 g"))) for name in ("most_per_nic", "most_per_domain")}
        values["exclusive"] = draw(st.sampled_from(("", "", "", "alice", "bob")))
        leaves = None if stay is None else at + stay
        made.append(constrained(f"a{at}", at, leaves, draw(st.sampled_from(nfs)), pool=pool, **values))
    return made


def breaks(plan: Plan) -> bool:
    """By every pair of placed instances, or all that are present, whether any constraint is violated."""

    def meet(one: Arrival, other: Arrival) -> bool:
        first, last = max(one.begins, other.begins), [a.departure for a in (one, other) if a.departure is not None]
        return not last or first < min(last)

    def domain(placement: Placement) -> object:
        assert placement.kind is not None
        return placement.kind.domain or (placement.nic,)

    for one, other in combinations(plan.placed, 2):
        if not meet(one.arrival, other.arrival):
            continue
        if one.nic == other.nic and len({side.arrival.constraints.of("exclusive") for side in (one, other)}) > 1:
            return True
        shared = {
            name
            for name in ("spread", "apart", "together")
            if one.arrival.constraints.of(name)
            and one.arrival.constraints.of(name) == other.arrival.constraints.of(name)
        }
        if "spread" in shared and one.nic == other.nic:
            return True
        if "apart" in shared and domain(one) == domain(other):
            return True
        if "together" in shared and one.nic != other.nic:
            return True
    for one in plan.placed:
        for name, place in (("most_per_nic", lambda placement: placement.nic), ("most_per_domain", domain)):
            value, begins = one.arrival.constraints.of(name), one.arrival.begins
            present = [
                other
                for other in plan.placed
                if other.arrival.constraints.of(name) == value and place(other) == place(one)
                and other.arrival.begins <= begins and (other.arrival.departure or begins + 1) > begins
            ]  # fmt: skip
            if value and len(present) > int(value[0]):
                return True
    pools = [(p.arrival.constraints.of("pool").split("|"), p.kind.pool if p.kind else "") for p in plan.placed]
    return any(given not in asked for asked, given in pools)


@settings(deadline=None)
@given(traces(), st.sampled_from((None, 1, 2)))
def test_no_strategy_breaks_a_constraint(trace: list[Arrival], count: int | None) -> None:
    fleet = nics(*RACKS, count=count)
    oracles = fleet.truth()
    plans = [Greedy(fleet).place(trace), Monopolization(fleet).place(trace)]
    plans += [ContentionAware(fleet, TOY_PREDICTOR, oracles, rule=rule).place(trace) for rule in RULES_BY_NAME.values()]
    plans.append(find_optimum(trace, fleet, oracles, time_limit=2.0).plan)
    for plan in plans:
        check_plan(plan, trace, fleet.kinds)
        assert not breaks(plan), plan.strategy


@settings(deadline=None)
@given(traces(), st.lists(st.integers(0, 5), min_size=8, max_size=8))
def test_the_check_finds_exactly_the_plans_in_which_two_instances_violate_a_constraint(
    trace: list[Arrival], nic_of: list[int]
) -> None:
    kinds = nics(*RACKS).kinds
    placements = [
        Placement(one, f"nic-{nic}", kinds[nic - 1]) if nic else Placement(one)
        for one, nic in zip(trace, nic_of, strict=False)
    ]
    plan = Plan("any", None, tuple(placements), 0.0)
    assert any(constraints_kept(plan)) == breaks(plan)


def places(plan: Plan) -> list[str | None]:
    return [placement.nic for placement in plan.placements]


def test_two_of_a_spread_group_are_on_two_nics_until_the_first_leaves() -> None:
    trace = [constrained("a", 0, 5, spread="g"), constrained("b", 1, spread="g"), constrained("c", 6, spread="g")]
    fleet = nics(("", ""), count=2)
    plan = ContentionAware(fleet, TOY_PREDICTOR, fleet.truth()).place(trace)
    assert places(plan) == ["nic-1", "nic-2", "nic-1"]


def test_who_belongs_together_follows_the_first_or_is_rejected() -> None:
    trace = [constrained("a", 0), constrained("b", 1, together="g", spread="h"), constrained("c", 2, together="g")]
    fleet = nics(("", ""))
    plan = ContentionAware(fleet, TOY_PREDICTOR, fleet.truth()).place(trace)
    assert places(plan)[1] == places(plan)[2]
    apart = [constrained("x", 0, pool="p1", together="g"), constrained("y", 1, pool="p2", together="g")]
    fleet = nics(("p1", ""), ("p2", ""))
    assert places(ContentionAware(fleet, TOY_PREDICTOR, fleet.truth()).place(apart)) == ["nic-1", None]


def faults(trace: Sequence[Arrival], kinds: Sequence[NicKind]) -> list[tuple[str, str]]:
    return [(at.id, column) for at, column, _, _ in constraint_faults(trace, kinds)]


@pytest.mark.parametrize(
    ("racks", "column", "members", "fits"),
    [
        ((("", "r1"), ("", "r2")), "apart", 2, True),
        ((("", "r1"), ("", "r2")), "apart", 3, False),
        ((("", "r1"), ("", "")), "apart", 3, True),
        ((("", "r1"),), "spread", 3, True),
        ((("", "r1"),), "together", 1, True),
        ((("", "r1"),), "together", 9, False),
    ],
)
def test_a_group_is_refused_where_the_empty_fleet_has_too_few_places_for_it(
    racks: tuple[tuple[str, str], ...], column: str, members: int, fits: bool
) -> None:
    trace = [constrained(f"a{at}", at, **{column: "g"}) for at in range(members)]
    assert (faults(trace, nics(*racks).kinds) == []) is fits


def test_the_smallest_set_that_conflicts_leaves_out_who_could_be_elsewhere() -> None:
    trace = [
        constrained("a", 0, apart="g", pool="p1"),
        constrained("b", 0, apart="g", pool="p2"),
        constrained("c", 0, apart="g", pool="p2"),
    ]
    (found,) = constraint_faults(trace, nics(("p1", "r1"), ("p2", "r2"), ("p1", "r3")).kinds)
    assert found[2] == "no fleet of these NICs holds 'b', 'c' of group 'g' at the same time"


def test_members_that_are_never_present_together_need_one_place() -> None:
    trace = [constrained("a", 0, 2, apart="g"), constrained("b", 2, apart="g")]
    assert faults(trace, nics(("", "r1")).kinds) == []


def test_a_pool_that_no_nic_has_is_refused_and_so_is_none_where_all_nics_have_one() -> None:
    kinds = nics(("p1", "")).kinds
    assert faults([constrained("a", 0, pool="p2"), constrained("b", 1)], kinds) == [("a", "pool"), ("b", "pool")]


def test_what_is_drawn_again_is_a_group_of_its_own() -> None:
    trace = [constrained("a", 0, spread="g", pool="p1"), constrained("b", 1, spread="g", pool="p1")]
    drawn = grow(trace, Growth(arrivals=3), {}, random.Random(1))
    of = [arrival.constraints.of("spread") for arrival in drawn]
    for first in ("a", "b"):
        groups = [group for arrival, group in zip(drawn, of, strict=True) if arrival.id.startswith(first)]
        assert len(set(groups)) == len(groups)
    assert {arrival.constraints.of("pool") for arrival in drawn} == {"p1"}


FLEET = """
[[nic]]
model = "bluefield-2"
pool = "edge"
domain = "rack-1"
[[nic]]
model = "bluefield-2"
pool = "edge"
domain = "rack-2"
"""
TRACE = """id,time,nf,sla_drop,apart,spread,pool
a,0,NAT,0.2,fw,,edge
b,1,NAT,0.2,fw,,edge
c,2,ACL,0.2,,web,edge
d,3,ACL,0.2,,web,edge
"""


def written(folder: Path, trace: str) -> list[str]:
    (folder / "fleet.toml").write_text(FLEET, encoding="utf-8")
    (folder / "trace.csv").write_text(trace, encoding="utf-8")
    return [str(folder / "trace.csv"), "--fleet", str(folder / "fleet.toml")]


def test_run_keeps_the_constraints_of_a_trace_and_explain_names_whom_an_arrival_meets(tmp_path: Path) -> None:
    given = written(tmp_path, TRACE)
    ran = CliRunner().invoke(app, ["run", *given, "--format", "json", "--range", "0"])
    assert ran.exit_code == 0, ran.output
    assert {row["rejected"] for row in json.loads(ran.stdout)["strategies"]} == {0}
    explained = CliRunner().invoke(app, ["explain", *given, "b", "--format", "json"])
    assert explained.exit_code == 0, explained.output
    barred = [verdict for verdict in json.loads(explained.stdout)["verdicts"] if verdict["cause"] == "apart"]
    assert barred and all(verdict["with"] == ["a"] and not verdict["fits"] for verdict in barred)


LIMITED = """id,time,nf,sla_drop,most_per_nic,most_per_domain,exclusive,pool
a,0,NAT,0.5,1 fw,2 fw,alice,edge
b,1,NAT,0.5,1 fw,2 fw,bob,edge
c,2,ACL,0.5,,,alice,edge
"""


def test_run_keeps_limits_and_owners_and_refuses_what_the_fleet_cannot_hold(tmp_path: Path) -> None:
    given = written(tmp_path, LIMITED)
    ran = CliRunner().invoke(app, ["run", *given, "--format", "json", "--range", "0"])
    assert ran.exit_code == 0, ran.output
    assert {row["rejected"] for row in json.loads(ran.stdout)["strategies"]} == {0}
    more = "d,3,NAT,0.5,1 fw,,alice,edge\ne,3,NAT,0.5,fw,,,edge\n"
    refused = str(CliRunner().invoke(app, ["run", *written(tmp_path, LIMITED + more)]).exception)
    assert "trace.csv:6: most_per_nic: 'fw' is no number with a name, such as '2 web'" in refused
    many = "".join(f"x{at},3,NAT,0.5,,1 g,,edge\n" for at in range(3))
    refused = str(CliRunner().invoke(app, ["run", *written(tmp_path, LIMITED + many)]).exception)
    assert "trace.csv:7: most_per_domain: no fleet of these NICs holds 'x0', 'x1', 'x2' of group '1 g'" in refused


def test_what_the_fleet_cannot_hold_is_refused_with_its_line(tmp_path: Path) -> None:
    third = "e,4,NAT,0.2,fw,,edge\nf,5,NAT,0.2,,,core\n"
    refused = str(CliRunner().invoke(app, ["run", *written(tmp_path, TRACE + third)]).exception)
    assert "trace.csv:6: apart: no fleet of these NICs holds 'a', 'b', 'e' of group 'fw' at the same time" in refused
    assert "trace.csv:7: pool: no NIC of the fleet is in pool 'core'" in refused


KINDS = catalogue().kinds
HEADER = "id,time,nf,sla_drop,priority\n"


def read_ranked(rows: str, header: str = HEADER) -> list[Arrival]:
    return read_arrivals(io.StringIO(header + rows), TOY_TRAFFIC, lambda workload: (), kinds=KINDS)


def ranked(identity: str, time: float, priority: int, nf: str = "a") -> Arrival:
    return replace(arrival(identity, time, nf), priority=priority)


def test_a_priority_is_a_whole_number_and_0_where_none_is_given() -> None:
    rows = "x,0,a,0.1,7\ny,0,a,0.1,\nz,0,a,0.1,-2147483648\nw,0,a,0.1,5.0\n"
    assert [arrival.priority for arrival in read_ranked(rows)] == [7, 0, -(2**31), 5]
    assert [arrival.priority for arrival in read_ranked("x,0,a,0.1\n", "id,time,nf,sla_drop\n")] == [0]


def test_every_priority_that_is_none_is_named() -> None:
    with pytest.raises(InputError) as refused:
        read_ranked("x,0,a,0.1,1.5\ny,0,a,0.1,high\nz,0,a,0.1,2147483648\nw,0,a,0.1,1e300\nv,0,a,0.1,3\n")
    assert [(fault.line, fault.column, fault.message) for fault in refused.value.faults] == [
        (2, "priority", "1.5 is not a whole number"),
        (3, "priority", "'high' is not a number"),
        (4, "priority", "2147483648 is out of range"),
        (5, "priority", "1e300 is out of range"),
    ]


def test_drawn_traces_keep_priorities_and_traces_without_have_no_such_column() -> None:
    trace = [ranked("x", 0, 7), ranked("y", 1, -3)]
    drawn = grow(trace, Growth(arrivals=4), {}, random.Random(1))
    assert {(arrival.id[0], arrival.priority) for arrival in drawn} == {("x", 7), ("y", -3)}
    text = arrivals_csv(drawn)
    again = read_arrivals(io.StringIO(text), TOY_TRAFFIC, lambda workload: (), kinds=KINDS)
    assert [arrival.priority for arrival in again] == [arrival.priority for arrival in drawn]
    assert "priority" not in arrivals_csv([arrival("x", 0, "a")])


def test_a_plan_with_another_priority_than_the_trace_is_invalid() -> None:
    placed = Placement(ranked("x", 0, 1), "nic-1", KINDS[0])
    with pytest.raises(InvalidPlan, match="x: is another arrival"):
        check_plan(Plan("any", None, (placed,), 0.0), [ranked("x", 0, 2)], KINDS)


def test_what_would_ignore_priorities_refuses_them() -> None:
    trace = [ranked("x", 0, 1), ranked("y", 1, 0)]
    with pytest.raises(InputError, match="x priority: priorities are not understood here"):
        refuse_priorities(trace)
    with pytest.raises(InputError, match="priorities"):
        refuse_uncertifiable(trace)
    with pytest.raises(InputError, match="2: priority: priorities are not understood here"):
        read_arrivals(io.StringIO(HEADER + "x,0,a,0.1,1\ny,0,a,0.1,0\n"), TOY_TRAFFIC, lambda workload: ())
    refuse_priorities([ranked("y", 1, 0)])


def test_a_plan_counts_what_each_priority_loses_highest_first() -> None:
    lost = (ranked("x", 0, 5), ranked("y", 1, -1), ranked("z", 2, -1))
    placements = (*(Placement(arrival) for arrival in lost), Placement(ranked("w", 3, 0), "nic-1", KINDS[0]))
    assert list(Plan("any", None, placements, 0.0).rejected_by_priority.items()) == [(5, 1), (0, 0), (-1, 2)]


RANKED_FLEET = '[[nic]]\nmodel = "bluefield-2"\ncount = 1\n'
RANKED_TRACE = """id,time,nf,sla_drop,priority
a,0,NAT,0.2,0
b,1,NAT,0.2,
c,2,ACL,0.2,5
d,3,ACL,0.2,5
"""


def ran(folder: Path, *options: str, trace: str = RANKED_TRACE) -> str:
    (folder / "fleet.toml").write_text(RANKED_FLEET, encoding="utf-8")
    (folder / "trace.csv").write_text(trace, encoding="utf-8")
    given = [str(folder / "trace.csv"), "--fleet", str(folder / "fleet.toml"), "--range", "0"]
    result = CliRunner().invoke(app, ["run", *given, "--strategy", "monopolization", "--strategy", "optimal", *options])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_run_reports_what_each_priority_loses_in_every_format(tmp_path: Path) -> None:
    """The one NIC is that of the first arrival, by monopolization."""
    alone = json.loads(ran(tmp_path, "--format", "json"))["strategies"][0]
    assert alone["rejected_by_priority"] == {"5": 2, "0": 1}
    row = next(csv.DictReader(io.StringIO(ran(tmp_path, "--format", "csv"))))
    assert (row["rejected"], row["rejected_priority_5"], row["rejected_priority_0"]) == ("3", "2", "1")
    table = ran(tmp_path)
    assert "by priority" in table.splitlines()[0] and "5: 2, 0: 1" in table
    assert "By priority: 2 of 2 with priority 5, 1 of 2 with priority 0." in table


def test_a_trace_of_one_priority_has_no_further_column(tmp_path: Path) -> None:
    same = "".join(f"{line.rpartition(',')[0]},3\n" for line in RANKED_TRACE.splitlines()[1:])
    assert "priority" not in ran(tmp_path, trace=RANKED_TRACE.splitlines()[0] + "\n" + same)


def test_no_proof_is_claimed_where_a_higher_priority_is_rejected_than_the_lowest(tmp_path: Path) -> None:
    """Five NATs, each with a higher priority than the one before: the one NIC has cores for four."""
    rows = "".join(f"n{at},{at},NAT,0.9,{at}\n" for at in range(5))
    optimum = json.loads(ran(tmp_path, "--format", "json", trace=f"id,time,nf,sla_drop,priority\n{rows}"))["optimal"]
    lost = [at for at, count in optimum["rejected_by_priority"].items() if count]
    assert lost and (not optimum["proven"] or lost == ["0"])
