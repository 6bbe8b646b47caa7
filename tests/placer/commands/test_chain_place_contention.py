"""`placer chain place --models`: contention in the loop, what it prints, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from placer.inputs import models
from tests.placer.commands.conftest import Placer, refuse
from tests.placer.rack.contention.fake_models import SIX, fake_models

RACK = """crossing_us = 5
[testbed]
spec = "simulated:server"
[[server]]
name = "s0"
cores = 4
clock_mhz = 1700
nic_mbps = 100_000
[nf]
ACL = {server = {cycles = 1700}}
Filter = {server = {cycles = 1700, testbed_nf = "NAT"}}
"""
OPENED: list[Any] = []  # folder and recorded profile of the models that were opened
CHAINS = """slo a: 10 Gbps to 20 Gbps
slo b: 11.9 Gbps to 20 Gbps
chain a: ACL
chain b: Filter
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A core carries 12 Gbps of each NF by cycles; models say that each core with ACL costs NAT 10 %."""
    (tmp_path / "rack.toml").write_text(RACK, encoding="utf-8")
    (tmp_path / "edge.chains").write_text(CHAINS, encoding="utf-8")
    OPENED.clear()

    def open_models(directory: Path | None, say: object, recorded: str) -> Any:
        OPENED.append((directory, recorded))
        return fake_models(SIX)

    monkeypatch.setattr(models, "open_models", open_models)
    return tmp_path


def place(placer: Placer, folder: Path, *more: object) -> tuple[int, str, str]:
    return placer("chain", "place", folder / "edge.chains", "--rack", folder / "rack.toml", *more)


def test_a_rack_that_names_its_testbed_gets_plans_as_its_models_predict(placer: Placer, folder: Path) -> None:
    """Two cores carry 24 Gbps by cycles. Beside one core with ACL (10.1 %) and two with NAT (5 %), an ACL grows by 15.1
    %; beside two with ACL and one with NAT (2.5 %), a NAT by 22.7 %: to 19,560 Mbps."""
    status, stdout, stderr = place(placer, folder, "--risk", 0.5)
    assert status == 0 and OPENED == [(None, "server-simulated")]
    assert stdout.splitlines()[-6:] == [
        "chain      Mbps  these cores by cycles  plan by cycles     t_min  cycles grow by",
        "a      20,000.0               20,000.0        20,000.0  10,000.0          15.1 %",
        "b      19,559.9               20,000.0        20,000.0  11,900.0          22.7 %",
        "",
        "The plan by cycles alone has 40,000.0 Mbps, which contention only lessens.",
        "Contention: 2 rounds; plan and prediction agree.",
    ]
    assert "the gap is 2.43 %" in stdout and "at most 50 % of NFs are expected to be slower" in stderr


def test_json_has_further_keys(placer: Placer, folder: Path) -> None:
    """Those of CONTRACTS 9, and what is predicted; `latency_us` is that of cycles alone."""
    answer = json.loads(place(placer, folder, "--risk", 0.5, "--format", "json")[1])
    assert answer["contention"] == {
        "rounds": 2, "agreed": True, "marginal_by_cycles_mbps": pytest.approx(18_100), "notes": []
    }  # fmt: skip
    assert answer["bound_mbps"] == pytest.approx(18_100)
    assert answer["gap"] == pytest.approx(1 - answer["marginal_mbps"] / 18_100)
    second = answer["chains"][1]
    assert second["rate_by_cycles_mbps"] == pytest.approx(20_000)
    assert (second["latency_us"], second["predicted_latency_us"]) == (11, pytest.approx(11.227))
    assert second["subgroups"][0]["cycles_grow_by"] == [pytest.approx(1.227)]


def test_explain_and_replan_predict_with_models(placer: Placer, folder: Path) -> None:
    """Without models there is room for more; with them the rates are those that `place` gives, and nothing moves."""
    plan, files = folder / "plan.json", ("--rack", folder / "rack.toml")
    place(placer, folder, "--risk", 0.5, "--plan", plan)
    known = ("--models", "recorded", "--risk", 0.5)
    for more, rate in (((), "20,000.0"), (known, "19,559.9")):
        explained = placer("chain", "explain", folder / "edge.chains", *files, *more)
        assert f"b, {rate} Mbps: Filter on s0\n" in explained.stdout
        assert ("contention between subgroups on a device is ignored" in explained.stderr) == (not more)
        again = placer("chain", "replan", plan, folder / "edge.chains", *more)
        assert f"b       {rate}" in again.stdout and "No NF moves" in again.stdout
    answer = json.loads(placer("chain", "replan", plan, folder / "edge.chains", *known, "--format", "json").stdout)
    assert answer["chains"][1]["subgroups"][0]["cycles_grow_by"] == [pytest.approx(1.227)]
    assert answer["moves"] == [] and answer["least_moves"] == 0


def test_replan_moves_an_nf_whose_neighbours_would_slow_it(placer: Placer, folder: Path) -> None:
    """By cycles b keeps 11.9 Gbps on one core beside a; by prediction no server of two cores carries both."""
    text = (
        RACK.replace("cores = 4", "cores = 2")
        + '[[server]]\nname = "s1"\ncores = 2\nclock_mhz = 1700\nnic_mbps = 100_000\n'
    )
    (folder / "rack.toml").write_text(text, encoding="utf-8")
    both = "slo a, b: 11.9 Gbps to 20 Gbps\nchain a: ACL\nchain b: Filter\n"
    (folder / "edge.chains").write_text(both, encoding="utf-8")
    plan = folder / "plan.json"
    place(placer, folder, "--models", "none", "--plan", plan)
    document = json.loads(plan.read_text(encoding="utf-8"))
    for chain in document["answer"]["chains"]:
        chain["placement"] = dict.fromkeys(chain["placement"], "s0")
        chain["subgroups"] = [{**group, "on": "s0", "cores": 1} for group in chain["subgroups"]]
    plan.write_text(json.dumps(document), encoding="utf-8")
    assert "No NF moves" in placer("chain", "replan", plan, folder / "edge.chains").stdout
    ended = placer("chain", "replan", plan, folder / "edge.chains", "--models", "recorded", "--format", "json")
    answer = json.loads(ended.stdout)
    assert len(answer["moves"]) == 1 and answer["least_moves"] == 0, ended
    assert min(chain["rate_mbps"] for chain in answer["chains"]) >= 11_900


def test_the_plan_file_holds_the_same_answer(placer: Placer, folder: Path) -> None:
    """With the testbed and its names in the rack."""
    status, stdout, _ = place(placer, folder, "--format", "json", "--plan", folder / "plan.json")
    written = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    assert status == 0 and written["answer"] | {"seconds": 0} == json.loads(stdout) | {"seconds": 0}
    assert written["rack"]["testbed"] == {"spec": "simulated:server"}
    assert written["rack"]["nfs"]["Filter"]["server"]["testbed_nf"] == "NAT"


def test_a_margin_is_the_default(placer: Placer, folder: Path) -> None:
    """At 5 %, rates are lower than the median."""
    rates = [
        sum(one["rate_mbps"] for one in json.loads(place(placer, folder, *more, "--format", "json")[1])["chains"])
        for more in ((), ("--risk", 0.5))
    ]
    assert rates[0] < rates[1]


def test_none_leaves_contention_out(placer: Placer, folder: Path) -> None:
    status, stdout, stderr = place(placer, folder, "--models", "none")
    assert (status, stderr, OPENED) == (0, "", [])
    assert "Contention" not in stdout and "Optimal, proven" in stdout


def test_a_rack_without_testbed_takes_models_that_are_named(placer: Placer, folder: Path) -> None:
    """Without either, cycles alone count."""
    (folder / "rack.toml").write_text(RACK.replace('[testbed]\nspec = "simulated:server"\n', ""), encoding="utf-8")
    assert "Contention" not in place(placer, folder)[1] and not OPENED
    assert "Contention" in place(placer, folder, "--models", folder / "mine")[1]
    assert OPENED[0][0] == folder / "mine"


def test_says_that_no_plan_keeps_the_slos(placer: Placer, folder: Path) -> None:
    """Four cores at 12 Gbps are just enough by cycles, and not beside one another."""
    (folder / "edge.chains").write_text(CHAINS.replace("10 Gbps to 20", "20 Gbps to 24").replace("11.9", "24")
                                        .replace("to 20", "to 24"), encoding="utf-8")  # fmt: skip
    status, stdout, _ = place(placer, folder)
    assert status == 0 and stdout.startswith("optimal finds no plan.")
    assert "no plan was found that keeps every SLO beside its neighbours; of the last plan, b reaches" in stdout
    assert stdout.endswith("none of these plans keeps every SLO by prediction.\n")
    answer = json.loads(place(placer, folder, "--format", "json")[1])
    assert (answer["status"], answer["proven"], answer["chains"]) == ("unknown", False, [])
    assert answer["contention"]["notes"][0].startswith("no plan was found")


def test_what_is_infeasible_by_cycles_is_explained_as_ever(placer: Placer, folder: Path) -> None:
    (folder / "edge.chains").write_text("slo a: 90 Gbps to 95 Gbps\nchain a: ACL\n", encoding="utf-8")
    status, stdout, _ = place(placer, folder)
    assert status == 0 and stdout.startswith("Infeasible, proven") and stdout[-4:] == " s.\n"
    answer = json.loads(place(placer, folder, "--format", "json")[1])
    assert answer["relaxations"] and answer["contention"]["rounds"] == 0


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (', testbed_nf = "NAT"', "",
            "edge.chains:4: column 10: NF Filter is not in the models\nhint: testbed_nf = ..."),
        ("simulated:server", "exec:lab",
            "testbed.spec: there are no recorded models of 'exec:lab'\nhint: name a folder"),
    ],
)  # fmt: skip
def test_what_has_no_models_is_refused(placer: Placer, folder: Path, old: str, new: str, fault: str) -> None:
    (folder / "rack.toml").write_text(RACK.replace(old, new), encoding="utf-8")
    status, stdout, stderr = place(placer, folder)
    assert (status, stdout) == (2, "") and fault in stderr


def test_missing_models_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert "x" in refuse(
        "chain", "place", folder / "edge.chains", "--rack", folder / "rack.toml", "--models", folder / "x"
    )


@pytest.mark.parametrize("risk", [0, 0.6])
def test_a_risk_out_of_range_is_refused(placer: Placer, folder: Path, risk: float) -> None:
    assert place(placer, folder, "--risk", risk)[0] == 2
