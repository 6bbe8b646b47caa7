"""Priorities of arrivals: which numbers are read, what keeps them, and what refuses them."""

import csv
import io
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from placer.cli import app
from placer.evaluate.checks import InvalidPlan, check_plan
from placer.inputs.arrivals import read_arrivals, refuse_priorities
from placer.model.arrival import Arrival
from placer.model.plan import Placement, Plan
from placer.optimal.certificate import refuse_uncertifiable
from placer.studies.growth import Growth, arrivals_csv, grow
from placer.testing.strategies import TOY_TRAFFIC, arrival, catalogue
from profiles import InputError

KINDS = catalogue().kinds
HEADER = "id,time,nf,sla_drop,priority\n"


def read(rows: str, header: str = HEADER) -> list[Arrival]:
    return read_arrivals(io.StringIO(header + rows), TOY_TRAFFIC, lambda workload: (), kinds=KINDS)


def ranked(identity: str, time: float, priority: int, nf: str = "a") -> Arrival:
    return replace(arrival(identity, time, nf), priority=priority)


def test_a_priority_is_a_whole_number_and_0_where_none_is_given() -> None:
    rows = "x,0,a,0.1,7\ny,0,a,0.1,\nz,0,a,0.1,-2147483648\nw,0,a,0.1,5.0\n"
    assert [arrival.priority for arrival in read(rows)] == [7, 0, -(2**31), 5]
    assert [arrival.priority for arrival in read("x,0,a,0.1\n", "id,time,nf,sla_drop\n")] == [0]


def test_every_priority_that_is_none_is_named() -> None:
    with pytest.raises(InputError) as refused:
        read("x,0,a,0.1,1.5\ny,0,a,0.1,high\nz,0,a,0.1,2147483648\nw,0,a,0.1,1e300\nv,0,a,0.1,3\n")
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


FLEET = '[[nic]]\nmodel = "bluefield-2"\ncount = 1\n'
TRACE = """id,time,nf,sla_drop,priority
a,0,NAT,0.2,0
b,1,NAT,0.2,
c,2,ACL,0.2,5
d,3,ACL,0.2,5
"""


def ran(folder: Path, *options: str, trace: str = TRACE) -> str:
    (folder / "fleet.toml").write_text(FLEET, encoding="utf-8")
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
    same = "".join(f"{line.rpartition(',')[0]},3\n" for line in TRACE.splitlines()[1:])
    assert "priority" not in ran(tmp_path, trace=TRACE.splitlines()[0] + "\n" + same)


def test_no_proof_is_claimed_where_a_higher_priority_is_rejected_than_the_lowest(tmp_path: Path) -> None:
    """Five NATs, each with a higher priority than the one before: the one NIC has cores for four."""
    rows = "".join(f"n{at},{at},NAT,0.9,{at}\n" for at in range(5))
    optimum = json.loads(ran(tmp_path, "--format", "json", trace=f"id,time,nf,sla_drop,priority\n{rows}"))["optimal"]
    lost = [at for at, count in optimum["rejected_by_priority"].items() if count]
    assert lost and (not optimum["proven"] or lost == ["0"])
