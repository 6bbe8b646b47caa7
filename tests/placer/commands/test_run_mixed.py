"""`placer run` on fleets of SmartNICs and GPUs: exit status, stdout and stderr."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer

REPO = Path(__file__).parents[3]
TRACE, FLEET = REPO / "examples" / "mixed.csv", REPO / "examples" / "mixed-fleet.toml"
DEVICE = REPO / "examples" / "gpu.json"


def fleet_of(folder: Path, *lines: str) -> Path:
    """A fleet of one kind, whose table has these lines."""
    path = folder / "fleet.toml"
    path.write_text("\n".join(["[[nic]]", 'model = "titan-xp"', *lines]) + "\n", encoding="utf-8")
    return path


def trace_of(folder: Path, *rows: str) -> Path:
    path = folder / "trace.csv"
    path.write_text("id,time,nf,sla_drop,rate_kpps,sla_latency_us\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.long
def test_every_strategy_and_the_optimum_place_a_mixed_fleet(placer: Placer, tmp_path: Path) -> None:
    """What is promised a latency is on GPUs and keeps it as predicted, the rest is on SmartNICs; costs count."""
    plan = tmp_path / "plan.csv"
    ended = placer("run", TRACE, "--fleet", FLEET, "--format", "json", "--plan", plan)
    assert ended.status == 0
    found = json.loads(ended.stdout)
    assert found["truth"] == "predicted"
    assert found["optimal"]["proven"]
    assert (found["optimal"]["cost"], found["optimal"]["rejected"]) == (2.6, 0)
    rows = {(one["strategy"], one["predictor"]): one for one in found["strategies"]}
    assert len(rows) == 6
    assert rows["planned", "tomur"]["rejected"] == 0
    assert {one["sla_violations_pct"] for one in rows.values()} == {None}
    assert rows["contention-aware", "tomur"]["cost"] >= 2.6
    assert rows["monopolization", None]["rejected"] == 3
    assert rows["greedy", None]["rejected"] == 0
    promised = {row["id"]: row["sla_latency_us"] for row in csv.DictReader(TRACE.open(encoding="utf-8"))}
    for row in csv.DictReader(plan.open(encoding="utf-8")):
        if row["nic"]:
            assert row["nic_model"] == ("titan-xp" if promised[row["id"]] else "bluefield-2")
        if row["predicted_latency_us"]:
            assert float(row["predicted_latency_us"]) <= float(promised[row["id"]])


def test_a_fleet_of_gpus_needs_no_models(placer: Placer, tmp_path: Path) -> None:
    """Its admission test is the predictor; what keeps no promise even alone is rejected."""
    fleet = fleet_of(tmp_path, f'device = "{DEVICE}"')
    trace = trace_of(tmp_path, "a,0,ACL,,600,400", "b,1,ACL,,600,400", "c,2,IPSec,,250,20")
    found = json.loads(placer("run", trace, "--fleet", fleet, "--format", "json").stdout)
    assert [(one["strategy"], one["predictor"]) for one in found["strategies"]] == [
        ("monopolization", None),
        ("greedy", None),
        ("contention-aware", "admission"),
        ("planned", "admission"),
        ("optimal", None),
    ]
    assert {(one["nics"], one["rejected"]) for one in found["strategies"]} == {(2, 1), (1, 1)}
    assert found["optimal"]["shortfall"]["hopeless"] == ["c"]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ([f'device = "{DEVICE}"', 'models = "m"'], ":3: device: is given beside models"),
        (['device = "nowhere.json"'], "nowhere.json: No such file"),
        ([f'device = "{DEVICE}"', "cores = 23"], "cores: 23 are more than the 22 workers of gpu.json"),
        ([f'device = "{DEVICE}"', 'testbed = "simulated"'], "is a bluefield-2, which is no GPU"),
    ],
)
def test_a_bad_kind_of_gpu_is_refused(placer: Placer, tmp_path: Path, lines: list[str], fault: str) -> None:
    """Exit status 2 and nothing on stdout."""
    ended = placer("run", TRACE, "--fleet", fleet_of(tmp_path, *lines))
    assert (ended.status, ended.stdout) == (2, "")
    assert fault in ended.stderr


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("a,0,ACL,0.1,,", ":2: rate_kpps: is missing, and 'ACL' runs on GPUs only, which need it"),
        ("a,0,ACL,,,90", ":2: rate_kpps: is missing: latency depends on the rate that is offered"),
        ("a,0,ALC,,5,90", ":2: nf: 'ALC' is not profiled, and no GPU runs it (did you mean ACL?)"),
    ],
)
def test_what_no_gpu_can_take_is_refused(placer: Placer, tmp_path: Path, row: str, fault: str) -> None:
    """The fault has its line and its column."""
    ended = placer("run", trace_of(tmp_path, row), "--fleet", fleet_of(tmp_path, f'device = "{DEVICE}"'))
    assert (ended.status, ended.stdout) == (2, "")
    assert fault in ended.stderr


def test_a_latency_that_no_nic_can_promise_is_refused(placer: Placer, tmp_path: Path) -> None:
    """The recorded models of the simulated card have no latency."""
    ended = placer("run", trace_of(tmp_path, "a,0,ACL,,5,90"))
    assert (ended.status, ended.stdout) == (2, "")
    assert ":2: sla_latency_us: the latency of 'ACL' cannot be promised" in ended.stderr


@pytest.mark.parametrize(
    ("option", "fault"), [("--certificate", "only throughput can be certified"), ("--measure", "measures throughput")]
)
def test_what_knows_only_throughput_is_refused(placer: Placer, tmp_path: Path, option: str, fault: str) -> None:
    """Certificates and plans by measuring are of throughput."""
    value = tmp_path / "c.json" if option == "--certificate" else 5
    ended = placer("run", TRACE, "--fleet", FLEET, option, value)
    assert (ended.status, ended.stdout) == (2, "")
    assert f"{option}: {fault}" in ended.stderr
