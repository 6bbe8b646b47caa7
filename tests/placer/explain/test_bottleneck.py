"""Diagnosing: the shift found by halving, held to the card, and the command."""

from __future__ import annotations

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from placer.cli import app
from placer.explain.bottleneck import Diagnosis, Diagnostician, spaced
from placer.inputs.models import open_models
from placer.report.html.diagnosis import page_of_diagnosis
from profiler.simulated import SimulatedTestbed
from profiles import TrafficProfile, Workload
from tests.placer.commands.test_compare import placer

DEFAULT = TrafficProfile(16000, 1500, 600)
MONITOR, NIDS = Workload("FlowMonitor", DEFAULT), Workload("NIDS", DEFAULT)


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    """FlowMonitor beside NIDS on the simulated card."""
    tomur = open_models(None, print).predictors["tomur"]
    card = SimulatedTestbed()
    return Diagnostician(tomur, card).diagnose(MONITOR, [NIDS], {"mtbr": (0.0, 1100.0)}, steps=12)


def test_the_bottleneck_shifts_from_memory_to_regex(diagnosis: Diagnosis) -> None:
    """With few matches FlowMonitor is bound by memory, with many by regex, and the shift lies between readings."""
    (shift,) = diagnosis.shifts
    assert (shift.attribute, shift.before, shift.after) == ("mtbr", "memory", "regex")
    below = [one for one in diagnosis.along["mtbr"] if one.traffic.mtbr < shift.at]
    assert {one.bottleneck for one in below} == {"memory"}
    assert {one.bottleneck for one in diagnosis.along["mtbr"][len(below) :]} == {"regex"}


def test_the_card_agrees(diagnosis: Diagnosis) -> None:
    """Its own account names the same resource at eleven of twelve readings at least, and throughput within 5 %."""
    readings = diagnosis.along["mtbr"]
    assert sum(one.bottleneck == one.true_bottleneck for one in readings) >= 11
    assert all(one.predicted_kpps == pytest.approx(one.true_kpps, rel=0.05) for one in readings)


def test_without_the_card_nobody_else_is_asked() -> None:
    """A testbed that keeps no account tells nothing."""
    tomur = open_models(None, print).predictors["tomur"]
    (reading,) = Diagnostician(tomur, None).read([MONITOR], [])
    assert reading.true_bottleneck is None
    assert reading.predicted_kpps == reading.solo_kpps


def test_values_are_whole_and_hold_both_ends() -> None:
    """Flows are spaced evenly in their logarithm, other attributes evenly."""
    assert spaced("flows", 1, 1000, 4) == [1, 10, 100, 1000]
    assert spaced("mtbr", 0, 1100, 3) == [0, 550, 1100]


def test_diagnose_tells_people_and_programs_the_same() -> None:
    """Table, JSON and CSV name the same bottleneck; CSV has a row for what was asked, then one per reading."""
    common = ["diagnose", "FlowMonitor", "--beside", "NIDS:mtbr=900", "--along", "mtbr", "--steps", 3, "--quiet"]
    told = json.loads(placer(*common, "--format", "json"))
    assert placer(*common).startswith("FlowMonitor (flows 16000, packet_size 1500, mtbr 600) beside NIDS")
    assert f"bound by {told['bottleneck']}." in placer(*common)
    rows = list(csv.DictReader(io.StringIO(placer(*common, "--format", "csv"))))
    assert [row["along"] for row in rows] == ["", "mtbr", "mtbr", "mtbr"]
    assert rows[0]["bottleneck"] == told["bottleneck"]
    assert told["beside"][0]["traffic"]["mtbr"] == 900


def test_a_diagnosis_is_a_page_too(diagnosis: Diagnosis) -> None:
    """Its first sentence names what binds; the chart has a point per reading of predictor and card."""
    page = page_of_diagnosis(diagnosis)
    assert page.summary[0].endswith(f"is bound by {diagnosis.here.bottleneck}.")
    (section,) = page.sections
    assert section.table is not None
    assert section.table["told"].value_counts().to_dict() == {"predicted": 12, "the card": 12}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["NTA"], "NF: nf: 'NTA' is not profiled"),
        (["NAT:mtbr=lots"], "NF: mtbr: 'lots' is not a number"),
        (["NAT:speed=1"], "'speed' is not understood"),
        (["NAT", "--beside", "ACL:flows=9e9"], "--beside: flows: "),
        (["NAT", "--along", "time"], "--along: 'time' is not understood"),
        (["NAT", *["--beside", "ACL"] * 4], "--beside: together they take 10 cores, a bluefield-2 has 8"),
    ],
)
def test_what_cannot_run_is_refused(arguments: list[str], told: str) -> None:
    """The fault names the option and the attribute."""
    ended = CliRunner().invoke(app, ["diagnose", *arguments])
    assert told in str(ended.exception)
