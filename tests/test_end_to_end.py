"""From a testbed that this project has never seen to a judged plan, through the commands alone."""

import csv
import json
import random
import sys
from pathlib import Path

import pytest

from tests.effort import THOROUGH
from tests.placer.commands.test_compare import placer

REPO = Path(__file__).parents[1]
FOREIGN = f"exec:{sys.executable} {REPO / 'tests' / 'data' / 'foreign_testbed.py'}"
ALL_NFS = ("edge-firewall", "load-balancer", "packet-sampler", "tls-proxy", "vpn-gateway")
NFS = ALL_NFS if THOROUGH else ("edge-firewall", "tls-proxy", "vpn-gateway")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of the foreign testbed, from 80 runs per NF."""
    folder = tmp_path_factory.mktemp("foreign")
    chosen = [option for nf in NFS for option in ("--nf", nf)]
    placer("profile", "--testbed", FOREIGN, "--out", folder / "profile", "--quota", 80, *chosen, "--quiet")
    placer("train", folder / "profile", "--out", folder / "models", "--quiet")
    return folder / "models"


@pytest.mark.long
def test_another_testbed_is_profiled_placed_and_evaluated(models: Path, tmp_path: Path) -> None:
    """Names, cores, NIC and ranges come from `describe`: twelve cores, one-core NFs, an accelerator called crypto."""
    trace, plan = tmp_path / "a.csv", tmp_path / "plan.csv"
    placer("generate", "--count", 16, "--nfs", ",".join(NFS), "--models", models, "--out", trace)
    printed = json.loads(
        placer("run", trace, "--models", models, "--testbed", FOREIGN, "--format", "json", "--plan", plan, "--quiet")
    )
    assert printed["truth"] == "somewhere-else"
    assert printed["optimal"]["proven"]
    assert {row["nic_model"] for row in csv.DictReader(plan.open(encoding="utf-8"))} == {"nfp-7000"}
    tomur = next(row for row in printed["strategies"] if row["predictor"] == "tomur")
    assert tomur["nics"] < 16
    assert tomur["violated"] < 16 * 0.2


@pytest.mark.long
def test_models_of_another_card_are_not_evaluated_on_the_simulated_card(models: Path, tmp_path: Path) -> None:
    """Without --testbed, models of another card have no ground truth."""
    trace = tmp_path / "a.csv"
    placer("generate", "--count", 8, "--nfs", ",".join(NFS), "--models", models, "--out", trace)
    assert json.loads(placer("run", trace, "--models", models, "--format", "json", "--quiet"))["truth"] == "predicted"


@pytest.mark.long
def test_predictions_for_another_testbed_are_near_its_measurements(models: Path, tmp_path: Path) -> None:
    """The mean error of 40 random co-locations at random traffic is below 5 %, even with few runs."""
    from profiler.testbeds import open_testbed
    from profiles import TrafficProfile, Workload

    draw = random.Random(3)
    co_locations = [
        [Workload(draw.choice(NFS), TrafficProfile(draw.randint(10, 100000), draw.randint(128, 9000)))
         for _ in range(draw.randint(1, 4))]
        for _ in range(40)
    ]  # fmt: skip
    scenarios = tmp_path / "s.jsonl"
    scenarios.write_text(
        "".join(json.dumps({"workloads": [workload.as_request() for workload in c]}) + "\n" for c in co_locations),
        encoding="utf-8",
    )
    lines = placer("predict", "--models", models, "--scenarios", scenarios).splitlines()
    with open_testbed(FOREIGN) as testbed:
        truths = [[m.throughput_kpps for m in run.measurements] for run in testbed.run_many(co_locations)]
    errors = [
        abs(predicted / true - 1)
        for line, truth in zip(lines, truths, strict=True)
        for predicted, true in zip(json.loads(line)["throughput_kpps"], truth, strict=True)
    ]
    assert sum(errors) / len(errors) < 0.05


@pytest.mark.long
def test_co_runs_reveal_an_execution_pattern_that_benches_cannot(models: Path) -> None:
    """A gateway that runs to completion also fits its benches as a pipeline; co-runs decide."""
    printed = json.loads((models / "vpn-gateway" / "nf.json").read_text(encoding="utf-8"))
    evidence = printed["evidence"]
    assert printed["execution_pattern"] == "run-to-completion"
    assert evidence["mape_pct"]["pipeline"] < 1.5 * evidence["mape_pct"]["run-to-completion"]
    in_co_locations = evidence["mape_in_co_locations_pct"]
    assert in_co_locations["pipeline"] > 1.3 * in_co_locations["run-to-completion"]
