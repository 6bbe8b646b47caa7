"""Reports and plan files of a trace whose instances have offered rates and numbers of cores."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from placer.inputs.arrivals import TraceOptions
from placer.inputs.plans import read_plan
from placer.model.fleet import Fleet
from placer.progress import Progress
from placer.report.html import page_of_run
from placer.report.html.run import compare_with_truth, occupancy, peak_co_locations, violations
from placer.report.text.plan import plans_csv
from placer.report.text.run import as_table
from placer.run import Comparison, RunRequest, run
from profiles import InputError

TRACE = """id,time,nf,rate_kpps,sla_drop,cores
nat,0,NAT,500,,
ids,1,NIDS,200,,
monitor,2,FlowMonitor,400,0.1,
acl,3,ACL,900,,4
router,4,NAT,2900,0.05,
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Five instances with rates, one of which has given cores."""
    trace = tmp_path_factory.mktemp("loads") / "trace.csv"
    trace.write_text(TRACE, encoding="utf-8")
    request = RunRequest(str(trace), strategies=("contention-aware", "greedy"), predictors=("tomur",), time_limit=2.0)
    return run(request, Progress(quiet=True))


def rows_of(comparison: Comparison, strategy: str) -> dict[str, dict[str, str]]:
    """The rows of a plan file, by instance."""
    rows = csv.DictReader(io.StringIO(plans_csv(comparison)))
    return {row["id"]: row for row in rows if row["strategy"] == strategy}


def test_a_plan_file_has_the_rate_and_the_cores_that_were_given(loaded: Comparison) -> None:
    """The cores are those of the trace, or those that the strategy gave; the others lie between one and four."""
    rows = rows_of(loaded, "contention-aware")
    given = {placement.arrival.id: placement.arrival.workload.cores for placement in loaded.plans[-1].plan.placements}
    assert {name: row["rate_kpps"] for name, row in rows.items()} == {
        "nat": "500.0", "ids": "200.0", "monitor": "400.0", "acl": "900.0", "router": "2900.0"
    }  # fmt: skip
    assert {name: int(row["cores"]) for name, row in rows.items()} == given and rows["acl"]["cores"] == "4"
    assert int(rows["router"]["cores"]) > int(rows["nat"]["cores"]) == 1


def test_what_is_predicted_of_a_rate_is_what_is_carried(loaded: Comparison) -> None:
    """NAT could carry more than the 500 kpps that are offered to it."""
    nat = rows_of(loaded, "contention-aware")["nat"]
    assert (nat["predicted_kpps"], nat["solo_kpps"], nat["true_kpps"], nat["sla_met"]) == ("500", "500", "500", "true")
    assert compare_with_truth(loaded)[["predicted", "true"]].to_numpy().max() <= 100


def test_a_plan_file_is_read_back_with_its_cores(loaded: Comparison, tmp_path: Path) -> None:
    """Those that the strategy chose, too; cores that the trace gives cannot be others in the plan."""
    path, (plan,) = (
        tmp_path / "plan.csv",
        [found.plan for found in loaded.plans if found.plan.strategy == "contention-aware"],
    )
    common = "contention-aware", "tomur", "trace.csv", loaded.arrivals, Fleet(loaded.catalogue.kinds)
    path.write_text(plans_csv(loaded), encoding="utf-8")
    read = read_plan(str(path), *common)
    assert [each.arrival.workload for each in read.placed] == [each.arrival.workload for each in plan.placed]
    path.write_text(plans_csv(loaded).replace(",4\n", ",2\n"), encoding="utf-8")
    with pytest.raises(InputError, match=r"'acl' of trace\.csv may have 4, not 2"):
        read_plan(str(path), *common)


def test_sentences_say_that_instances_carry_their_load(loaded: Comparison) -> None:
    """And what that means, in the table and on the page."""
    table, page = as_table(loaded), " ".join(page_of_run(loaded, "trace.csv").summary)
    meaning = "An instance carries its load if it loses no more of the offered rate than its SLA allows."
    for text in (table, page):
        assert "On this very trace, every instance carries its load." in text and meaning in text


def test_cores_at_the_peak_are_those_that_were_given(loaded: Comparison) -> None:
    """The average NIC uses the cores of the plan, not the default number of each NF."""
    for plan in loaded.plans:
        nics = peak_co_locations(plan.plan).values()
        cores = sum(workload.cores for _, co_location in nics for workload in co_location)
        shown = occupancy(replace(loaded, evaluations=(plan,), variations=()))["cores"].sum()
        assert shown == pytest.approx(cores / len(nics))


def test_an_instance_that_loses_packets_is_listed_with_its_rate(loaded: Comparison) -> None:
    """ACL that carries half of what is offered."""
    plan = loaded.plans[0]
    stays = {**(plan.stays or {})}
    stays["acl"] = replace(stays["acl"], throughput_kpps=450.0, sla_met=False)
    table = violations(replace(plan, stays=stays))
    assert table[["instance", "offered, kpps", "true, kpps"]].to_numpy().tolist() == [["acl", 900.0, 450.0]]


def test_a_violation_over_the_day_is_shown_as_in_its_worst_part(tmp_path: Path) -> None:
    """Of 230 kpps, 80 % are offered in the second part: 184, of which 92 are half."""
    trace = tmp_path / "day.csv"
    trace.write_text("id,time,nf,rate_kpps,load\na,0,NIDS,230,d\nb,0,NIDS,230,d\n", encoding="utf-8")
    options = TraceOptions(loads={"d": (0.1, 0.8)})
    request = RunRequest(str(trace), ("planned",), ("tomur",), time_limit=2.0, trace_options=options)
    found = run(request, Progress(quiet=True))
    (planned,) = found.evaluations
    short = {id: replace(stay, throughput_kpps=92.0, sla_met=False) for id, stay in (planned.stays or {}).items()}
    for row in violations(replace(planned, stays=short)).to_dict("records"):
        assert row["offered, kpps"] == pytest.approx(184.0)
        assert row["required, kpps"] == pytest.approx(184.0 * 0.995)
        assert row["short by, %"] == pytest.approx(100 * (1 - 0.5 / 0.995))
    assert "Knowing the hours saves" in str(page_of_run(found, str(trace)))
