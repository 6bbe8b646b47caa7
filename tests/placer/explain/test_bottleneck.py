"""Bottlenecks: shifts found by bisection, compared with the simulated card; the command and the page."""

import csv
import io
import json
from dataclasses import replace

import pytest

from placer.explain import bottleneck
from placer.inputs.models import open_models
from placer.model.nic_kind import NicKind
from placer.report.html.diagnosis import page_of_diagnosis
from placer.report.html.page import render
from placer.report.text.diagnosis import as_table, load_sentences
from profiler.simulated import SimulatedTestbed
from profiles import TrafficProfile, Workload
from tests.placer.commands.test_compare import placer

DEFAULT = TrafficProfile(16000, 1500, 600)
MONITOR, NIDS = Workload("FlowMonitor", DEFAULT), Workload("NIDS", DEFAULT)


@pytest.fixture(scope="module")
def diagnosis() -> bottleneck.Diagnosis:
    """FlowMonitor co-located with NIDS on the simulated card."""
    tomur = open_models(None, print).predictors["tomur"]
    return bottleneck.diagnose(tomur, MONITOR, [NIDS], {"mtbr": (0.0, 1100.0)}, testbed=SimulatedTestbed(), steps=12)


def test_the_bottleneck_shifts_from_memory_to_regex(diagnosis: bottleneck.Diagnosis) -> None:
    """With few matches the bottleneck of FlowMonitor is memory, with many it is regex, and it changes once."""
    (shift,) = diagnosis.shifts
    assert (shift.attribute, shift.before, shift.after) == ("mtbr", "memory", "regex")
    below = [one for one in diagnosis.along["mtbr"] if one.traffic.mtbr < shift.at]
    assert {one.bottleneck for one in below} == {"memory"}
    assert {one.bottleneck for one in diagnosis.along["mtbr"][len(below) :]} == {"regex"}


def test_prediction_and_simulated_card_agree(diagnosis: bottleneck.Diagnosis) -> None:
    """The bottleneck is the same in at least eleven of twelve readings, throughput is within 5 %."""
    readings = diagnosis.along["mtbr"]
    assert sum(one.bottleneck == one.true_bottleneck for one in readings) >= 11
    assert all(one.predicted_kpps == pytest.approx(one.true_kpps, rel=0.05) for one in readings)


def test_without_the_simulated_card_the_true_bottleneck_is_unknown() -> None:
    """Only predictions are reported."""
    (reading,) = bottleneck.readings_of(open_models(None, print).predictors["tomur"], [MONITOR], [])
    assert reading.true_bottleneck is None and reading.predicted_kpps == reading.solo_kpps


def test_values_are_whole_and_include_both_ends() -> None:
    """Flows are spaced evenly in their logarithm, other attributes evenly."""
    assert bottleneck.steps_between("flows", 1, 1000, 4) == [1, 10, 100, 1000]
    assert bottleneck.steps_between("mtbr", 0, 1100, 3) == [0, 550, 1100]


def test_table_json_and_csv_agree() -> None:
    """All have the same bottleneck; CSV has a row for the given traffic, then one per reading."""
    common = ["diagnose", "FlowMonitor", "--beside", "NIDS:mtbr=900", "--along", "mtbr", "--steps", 3, "--quiet"]
    document = json.loads(placer(*common, "--format", "json"))
    table = placer(*common)
    assert table.startswith("FlowMonitor (flows 16000, packet_size 1500, mtbr 600), co-located with NIDS")
    assert f"the bottleneck is {document['bottleneck']}." in table
    rows = list(csv.DictReader(io.StringIO(placer(*common, "--format", "csv"))))
    assert [row["along"] for row in rows] == ["", "mtbr", "mtbr", "mtbr"]
    assert rows[0]["bottleneck"] == document["bottleneck"] and document["beside"][0]["traffic"]["mtbr"] == 900


def test_a_diagnosis_has_a_page(diagnosis: bottleneck.Diagnosis) -> None:
    """The first sentence names the bottleneck; the chart has a point per reading of predictor and card."""
    page = page_of_diagnosis(diagnosis)
    assert page.summary[0].endswith(f"is {diagnosis.reading.bottleneck}.")
    (section,) = page.sections
    assert section.table is not None
    assert section.table["source"].value_counts().to_dict() == {"predicted": 12, "simulated card": 12}


def test_a_diagnosis_without_readings_has_a_page(diagnosis: bottleneck.Diagnosis) -> None:
    """A testbed may declare no range for an attribute: its section has no chart, in text it has no table."""
    page = page_of_diagnosis(replace(diagnosis, along={}, shifts=()))
    assert page.sections == () and page.summary[-1] == "The bottleneck does not change."
    empty = replace(diagnosis, along={"mtbr": ()}, shifts=(), neighbours=())
    (section,) = page_of_diagnosis(empty).sections
    assert section.figures == () and render(page_of_diagnosis(empty))
    assert "alone on its NIC: the bottleneck is" in as_table(empty)


def core_need(cores: int, share: float, *, fits: bool = True) -> bottleneck.CoreNeed:
    """What is carried of 1,000 kpps."""
    return bottleneck.CoreNeed(cores, 1000 * share, share, fits)


@pytest.mark.parametrize(
    ("shares", "cores", "sentences"),
    [
        ((0.416, 0.81, 1.5), 4,
            "It carries its load of 1,000 kpps on 4 cores: its capacity there is 1,500 kpps, 50 % more. "
            "At 81 % of its load it could do with 2 cores. At 41 % of its load it could do with 1 core."),
        ((1.2, 2.0, 4.0), 2,
            "It carries its load of 1,000 kpps on 2 cores: its capacity there is 2,000 kpps, 100 % more. "
            "It could do with 1 core: its capacity there is 1,200 kpps, 20 % more."),
        ((0.416, 0.997, 1.5), 2, "It does not carry its load of 1,000 kpps on 2 cores: at most 99 % of it. "
            "On 4 cores, which the NIC does not have beside the others, its capacity would be 1,500 kpps, 50 % more. "
            "At 41 % of its load it could do with 1 core."),
    ],
)  # fmt: skip
def test_sentences_say_at_which_load_fewer_cores_would_do(
    diagnosis: bottleneck.Diagnosis, shares: tuple[float, ...], cores: int, sentences: str
) -> None:
    """Of an NF on one, two and four cores, of which four may not be free."""
    needs = tuple(core_need(n, share, fits=n <= cores) for n, share in zip((1, 2, 4), shares, strict=True))
    workload = replace(MONITOR, rate_kpps=1000.0, cores=cores)
    assert " ".join(load_sentences(replace(diagnosis, workload=workload, needs=needs))) == sentences


def test_the_fewest_cores_that_carry_the_load_are_chosen() -> None:
    """Else as many as the NIC has."""
    one, two, four = core_need(1, 0.4), core_need(2, 1.0), core_need(4, 2.0)
    assert bottleneck.choose_cores([one, two, four]) == 2
    assert bottleneck.choose_cores([one, core_need(2, 0.9), replace(four, fits=False)]) == 2
    assert bottleneck.choose_cores([replace(one, fits=False)]) == 0


def test_capacities_on_numbers_of_cores_are_the_predictor_s() -> None:
    """NAT at a rate beside NIDS: what `placer predict` says, and more cores carry more."""
    models = open_models(None, print)
    kind = NicKind(0, "nic", 8, {"NAT": 2, "NIDS": 2}, core_counts={"NAT": (1, 2, 4)})
    nat = Workload("NAT", DEFAULT, 2000.0)
    needs = bottleneck.core_needs(models.predictors["tomur"], kind, nat, [NIDS])
    (of_two, _) = models.predictors["tomur"].predict([(replace(nat, cores=2), NIDS)])[0]
    assert [need.cores for need in needs] == [1, 2, 4] and needs[1].capacity_kpps == of_two.capacity_kpps
    assert needs[0].share < needs[1].share < 1 < needs[2].share


def test_a_load_is_diagnosed_on_the_cores_that_carry_it() -> None:
    """In JSON and in words; the capacity stands beside the throughput, as predicted and as the card has it."""
    common = ["diagnose", "NAT:rate_gbps=24.32", "--along", "mtbr", "--steps", 2, "--quiet"]
    document = json.loads(placer(*common, "--format", "json"))
    assert (document["rate_kpps"], document["cores"]) == (pytest.approx(2000), 4)
    assert [need["cores"] for need in document["by_cores"]] == [1, 2, 4]
    assert document["predicted_kpps"] == pytest.approx(2000)
    assert document["capacity_kpps"] == document["by_cores"][2]["capacity_kpps"] > 2000
    assert document["true_kpps"] == pytest.approx(2000)
    saturated = json.loads(placer("diagnose", "NAT:cores=4", *common[2:], "--format", "json"))
    assert document["true_capacity_kpps"] == saturated["true_kpps"]
    assert document["true_capacity_kpps"] == pytest.approx(document["capacity_kpps"], rel=0.05)
    assert "true_capacity_kpps" not in saturated
    beside = placer("diagnose", "NAT", "--beside", "NIDS:rate_kpps=90,cores=4", *common[2:], "--format", "json")
    (neighbour,) = json.loads(beside)["beside"]
    assert (neighbour["rate_kpps"], neighbour["cores"]) == (90, 4)
    table = placer(*common)
    assert f"On the simulated card: 2,000 kpps of a capacity of {document['true_capacity_kpps']:,.0f} kpps" in table
    assert f"At {int(100 * document['by_cores'][0]['share_of_load'])} % of its load it could do with 1 core." in table
    assert "capacity kpps" in table
