"""Bottlenecks: shifts found by bisection, compared with the simulated card; the command and the page."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from placer.cli import app
from placer.explain.bottleneck import Diagnosis, diagnose, readings_of, steps_between
from placer.inputs.models import open_models
from placer.report.html.diagnosis import page_of_diagnosis
from placer.report.html.page import render
from placer.report.text.diagnosis import as_table
from profiler.simulated import SimulatedTestbed
from profiles import TrafficProfile, Workload
from tests.placer.commands.test_compare import placer

DEFAULT = TrafficProfile(16000, 1500, 600)
MONITOR, NIDS = Workload("FlowMonitor", DEFAULT), Workload("NIDS", DEFAULT)


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    """FlowMonitor co-located with NIDS on the simulated card."""
    tomur = open_models(None, print).predictors["tomur"]
    return diagnose(tomur, MONITOR, [NIDS], {"mtbr": (0.0, 1100.0)}, testbed=SimulatedTestbed(), steps=12)


def test_the_bottleneck_shifts_from_memory_to_regex(diagnosis: Diagnosis) -> None:
    """With few matches the bottleneck of FlowMonitor is memory, with many it is regex, and it changes once."""
    (shift,) = diagnosis.shifts
    assert (shift.attribute, shift.before, shift.after) == ("mtbr", "memory", "regex")
    below = [one for one in diagnosis.along["mtbr"] if one.traffic.mtbr < shift.at]
    assert {one.bottleneck for one in below} == {"memory"}
    assert {one.bottleneck for one in diagnosis.along["mtbr"][len(below) :]} == {"regex"}


def test_prediction_and_simulated_card_agree(diagnosis: Diagnosis) -> None:
    """The bottleneck is the same in at least eleven of twelve readings, throughput is within 5 %."""
    readings = diagnosis.along["mtbr"]
    assert sum(one.bottleneck == one.true_bottleneck for one in readings) >= 11
    assert all(one.predicted_kpps == pytest.approx(one.true_kpps, rel=0.05) for one in readings)


def test_without_the_simulated_card_the_true_bottleneck_is_unknown() -> None:
    """Only predictions are reported."""
    tomur = open_models(None, print).predictors["tomur"]
    (reading,) = readings_of(tomur, [MONITOR], [])
    assert reading.true_bottleneck is None
    assert reading.predicted_kpps == reading.solo_kpps


def test_values_are_whole_and_include_both_ends() -> None:
    """Flows are spaced evenly in their logarithm, other attributes evenly."""
    assert steps_between("flows", 1, 1000, 4) == [1, 10, 100, 1000]
    assert steps_between("mtbr", 0, 1100, 3) == [0, 550, 1100]


def test_table_json_and_csv_agree() -> None:
    """All have the same bottleneck; CSV has a row for the given traffic, then one per reading."""
    common = ["diagnose", "FlowMonitor", "--beside", "NIDS:mtbr=900", "--along", "mtbr", "--steps", 3, "--quiet"]
    document = json.loads(placer(*common, "--format", "json"))
    table = placer(*common)
    assert table.startswith("FlowMonitor (flows 16000, packet_size 1500, mtbr 600), co-located with NIDS")
    assert f"the bottleneck is {document['bottleneck']}." in table
    rows = list(csv.DictReader(io.StringIO(placer(*common, "--format", "csv"))))
    assert [row["along"] for row in rows] == ["", "mtbr", "mtbr", "mtbr"]
    assert rows[0]["bottleneck"] == document["bottleneck"]
    assert document["beside"][0]["traffic"]["mtbr"] == 900


def test_a_diagnosis_has_a_page(diagnosis: Diagnosis) -> None:
    """The first sentence names the bottleneck; the chart has a point per reading of predictor and card."""
    page = page_of_diagnosis(diagnosis)
    assert page.summary[0].endswith(f"is {diagnosis.reading.bottleneck}.")
    (section,) = page.sections
    assert section.table is not None
    assert section.table["source"].value_counts().to_dict() == {"predicted": 12, "simulated card": 12}


def test_a_diagnosis_without_readings_has_a_page(diagnosis: Diagnosis) -> None:
    """A testbed may declare no range for an attribute: its section has no chart, in text it has no table."""
    page = page_of_diagnosis(replace(diagnosis, along={}, shifts=()))
    assert page.sections == ()
    assert page.summary[-1] == "The bottleneck does not change."
    empty = replace(diagnosis, along={"mtbr": ()}, shifts=(), neighbours=())
    (section,) = page_of_diagnosis(empty).sections
    assert section.figures == ()
    assert render(page_of_diagnosis(empty))
    assert "alone on its NIC: the bottleneck is" in as_table(empty)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["NTA"], "NF: nf: 'NTA' is not profiled"),
        (["NAT:mtbr=lots"], "NF: mtbr: 'lots' is not a number"),
        (["NAT:speed=1"], "'speed' is not understood"),
        (["NAT", "--beside", "ACL:flows=9e9"], "--beside: flows: "),
        (["NAT", "--along", "time"], "--along: 'time' is not understood"),
        (["NAT", *["--beside", "ACL"] * 4], "--beside: together they need 10 cores, a bluefield-2 has 8"),
    ],
)
def test_a_bad_request_is_refused(arguments: list[str], fault: str) -> None:
    """The fault names the option and the attribute."""
    ended = CliRunner().invoke(app, ["diagnose", *arguments])
    assert fault in str(ended.exception)
