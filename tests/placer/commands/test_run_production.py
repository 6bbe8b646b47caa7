"""`placer run --production`: what is printed, written and refused."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer

DRIFT = """\
seed = 1

[measure]
share = 0.2
noise_pct = 2

[[drift]]
nf = "FlowStats"
at = 20
factor = 0.85
"""


@pytest.fixture
def drift(tmp_path: Path) -> Path:
    path = tmp_path / "drift.toml"
    path.write_text(DRIFT, encoding="utf-8")
    return path


@pytest.fixture
def simulated(trace: Path, drift: Path) -> list[object]:
    """Arguments: the risk is given, as choosing one takes longer than the simulation."""
    return ["run", trace, "--production", drift, "--risk", 0.3, "--quiet"]


@pytest.mark.slow
def test_all_formats_print_the_same_simulation(
    placer: Placer, simulated: list[object], drift: Path, tmp_path: Path
) -> None:
    """A row per fleet as a table; JSON has the alarms, CSV the time; the page is the same to the byte twice."""
    page = tmp_path / "page.html"
    table = placer(*simulated, "--report", page, "--plots", tmp_path / "plots")
    assert table.status == 0 and not table.stderr
    lines = table.stdout.splitlines()
    assert [line[:17].strip() for line in lines[:4]] == [
        "fleet", "without feedback", "with feedback", "retrained by hand",
    ]  # fmt: skip
    assert "FlowStats has 0.85 times its throughput from event 20 on." in lines
    assert (
        "30 arrivals, placed by tomur and look-ahead. SLA violations are those on the simulated card, not on hard"
        in (table.stdout)
    )
    printed = json.loads(placer(*simulated, "--format", "json").stdout)
    assert (printed["seed"], printed["truth"], printed["risk"]) == (1, "simulated", 0.3)
    assert printed["drift"] == [{"nf": "FlowStats", "event": 20, "until": None, "factor": 0.85}]
    without, learned, by_hand = printed["fleets"]
    for fleet, line in zip(printed["fleets"], lines[1:4], strict=True):
        assert fleet["placed"] == 30 and f"{fleet['sla_violations_pct']:.2f} %" in line
    assert learned["measurements"] >= 30 > 0 == without["measurements"] == by_hand["readings"]
    rows = list(csv.DictReader(io.StringIO(placer(*simulated, "--format", "csv").stdout)))
    assert len(rows) == 3 * 30 and rows[29]["nics"] == rows[29]["nics"].strip()
    assert [row["drift_FlowStats"] for row in rows if row["fleet"] == "retrained by hand"][18:20] == ["1.0", "0.85"]
    first = page.read_bytes()
    placer(*simulated, "--report", page)
    assert page.read_bytes() == first and "Drift over time" in first.decode()
    assert {one.name for one in (tmp_path / "plots").iterdir()} >= {"violations.svg", "nics.svg", "drift.svg"}


@pytest.mark.long
def test_the_seed_of_the_command_line_replaces_that_of_the_file(placer: Placer, simulated: list[object]) -> None:
    """Also where it is the default of other runs."""
    assert json.loads(placer(*simulated, "--format", "json", "--seed", 0).stdout)["seed"] == 0


@pytest.mark.long
def test_a_rule_is_chosen_by_the_strategy(placer: Placer, simulated: list[object]) -> None:
    """As in a comparison with the optimum."""
    ended = placer(*simulated, "--strategy", "contention-aware:best-fit", "--format", "json")
    assert json.loads(ended.stdout)["rule"] == "best-fit"


@pytest.mark.slow
def test_models_are_retrained_while_a_trace_is_played(placer: Placer, tmp_path: Path) -> None:
    """Twice with the same file: the same bytes, and others than without retraining, as trials narrow placement."""
    trace, file = tmp_path / "trace.csv", tmp_path / "production.toml"
    assert placer("generate", "--count", 400, "--seed", 3, "--out", trace).status == 0
    file.write_text('[measure]\nshare = 0.1\n[retrain]\nprofiles = ["traces/bluefield-2-simulated"]\n')
    command = ["run", trace, "--production", file, "--risk", 0.3, "--format", "json", "--quiet"]
    first, second = placer(*command), placer(*command)
    assert first.status == 0 and first.stdout == second.stdout
    file.write_text("[measure]\nshare = 0.1\n")
    assert placer(*command).stdout != first.stdout
