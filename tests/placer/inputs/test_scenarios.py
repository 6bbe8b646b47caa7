"""Scenario and contention files: what is accepted, and what is refused with its line."""

import json
from pathlib import Path

import pytest

from placer.inputs.scenarios import read_contention, read_scenarios
from predictor import Models, load_models
from profiles import COUNTERS, InputError, TrafficProfile, Workload
from tests.predictor.made_up import CRYPTO, DEFAULT, PLAIN


@pytest.fixture(scope="module")
def models(made_up_models: Path) -> Models:
    """NFs of one core each on a NIC of six."""
    return load_models(made_up_models)


def _scenario(*names: str, **traffic: object) -> str:
    return json.dumps({"workloads": [{"name": name, "traffic": traffic} for name in names]})


def _fault(models: Models, path: Path, line: str, *, extrapolate: bool = False) -> str:
    path.write_text(f"{_scenario(PLAIN.name)}\n\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_scenarios(models, path, extrapolate=extrapolate)
    assert {fault.line for fault in refused.value.faults} == {3}
    return str(refused.value)


def test_traffic_that_is_left_out_is_the_default(models: Models, tmp_path: Path) -> None:
    """Of a scenario without traffic, and of one with its flows only; empty lines are skipped."""
    path = tmp_path / "s.jsonl"
    path.write_text(f'\n{{"workloads": [{{"name": "plain"}}]}}\n{_scenario(CRYPTO.name, flows=100)}\n', "utf-8-sig")
    flows = TrafficProfile(100.0, DEFAULT.packet_size, DEFAULT.mtbr)
    assert read_scenarios(models, path).co_locations == (
        (Workload(PLAIN.name, DEFAULT),),
        (Workload(CRYPTO.name, flows),),
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (_scenario("plain", flows="4000"), "'4000' is not a number"),
        (_scenario("plain", flows=True), "True is not a number"),
        (_scenario("plain", flows=None), "None is not a number"),
        (_scenario("plain", flows=float("nan")), "nan is not a finite number"),
        (_scenario("plain", mtbr=float("inf")), "inf is not a finite number"),
        (_scenario("plain", flows=1e308), "flows: 1e+308 is above"),
        (_scenario("plain", flows=-1), "flows: -1 is below 0"),
        (_scenario("plain", packet_size=0), "packet_size: 0 is not above 0"),
        (_scenario("plain", size=64), "traffic: unknown attribute size"),
        (_scenario("Plain"), "nf: 'Plain' is not profiled (did you mean plain?)"),
        (_scenario("Firewall"), "nf: 'Firewall' is not profiled (one of crypto-pipeline, lookup-serial, plain)"),
        ('{"workloads": []}', "workloads: is too short"),
        ('{"workloads": 5}', "workloads: "),
        ("5", "object"),
        ("{", "is not JSON"),
        ("[" * 100_000 + "]" * 100_000, "is not JSON: recursion limit exceeded"),
        ('{"workloads": [{"name": "plain", "traffic": ' + '{"flows":' * 5000 + "1" + "}" * 5002 + "]}", "recursion"),
        ('{"workloads": [{"name": "plain", "kind": "bench"}]}', "workloads.0.kind"),
    ],
)
@pytest.mark.parametrize("extrapolate", [False, True])
def test_lines_that_are_no_scenario_are_refused(
    models: Models, tmp_path: Path, line: str, message: str, extrapolate: bool
) -> None:
    """Whatever is to be extrapolated, with the line and the value."""
    assert message in _fault(models, tmp_path / "s.jsonl", line, extrapolate=extrapolate)


def test_a_rate_may_be_given_in_gbps(models: Models, tmp_path: Path) -> None:
    """With 20 bytes per packet on the wire besides: it is not taken for saturated."""
    path = tmp_path / "s.jsonl"
    path.write_text('{"workloads": [{"name": "plain", "rate_gbps": 1.25}]}\n', "utf-8")
    ((workload,),) = read_scenarios(models, path).co_locations
    assert workload.rate_kpps == pytest.approx(1.25e6 / (8 * (DEFAULT.packet_size + 20)))
    two = '{"workloads": [{"name": "plain", "rate_gbps": 1, "rate_kpps": 1}]}'
    assert "rate_gbps: two rates\nhint: give rate_kpps or rate_gbps" in _fault(models, path, two)


def test_more_cores_than_the_nic_has_are_refused(models: Models, tmp_path: Path) -> None:
    """Six NFs of one core fit on six cores, seven do not; on request they are read and their lines are returned."""
    path = tmp_path / "s.jsonl"
    refused = _fault(models, path, _scenario(*[PLAIN.name] * 7))
    assert "workloads: 7 NFs take 7 cores, a made-up has 6" in refused and "hint: --extrapolate" in refused
    assert read_scenarios(models, path, extrapolate=True).overfull == (3,)
    path.write_text(_scenario(*[PLAIN.name] * 6), encoding="utf-8")
    assert len(read_scenarios(models, path).co_locations[0]) == 6


def test_contention_that_overflows_is_refused(models: Models, tmp_path: Path) -> None:
    """1e308 of a counter, with line and column; an NF that is not profiled, with the nearest."""
    path = tmp_path / "c.csv"
    values = ["1e308" if name == "irt" else "1" for name in COUNTERS]
    path.write_text(f"flows,packet_size,{','.join(COUNTERS)}\n16000,1500,{','.join(values)}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"c\.csv:2: irt: 1e\+308 is above 1e\+15"):
        read_contention(models, PLAIN.name, path)
    with pytest.raises(InputError, match=r"'PLAIN' is not profiled\nhint: did you mean plain\?"):
        read_contention(models, "PLAIN", path)
