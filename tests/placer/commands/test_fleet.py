"""Fleets of several NIC models, as somebody meets them who writes the first fleet file: every refusal leads on."""

import csv
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer

REPO = Path(__file__).parents[3]
EXAMPLE = REPO / "examples" / "two-models.toml"
AGENT = f"exec:{sys.executable} {REPO / 'tests' / 'data' / 'foreign_testbed.py'}"

KNOWN = "models of bluefield-2, bluefield-2-contended and server-16 come with placer (simulated)"
PROFILE = "`placer profile --testbed exec:COMMAND --out PROFILE`, where COMMAND starts an agent on it,"
HOW = (
    f"hint: {KNOWN}; of another NIC, run {PROFILE} and `placer train PROFILE --out MODELS`, "
    'then write models = "MODELS" into its table\n'
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the planner: two arrivals, a profile, and an empty folder."""
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,time,nf,sla_drop\na,0,NAT,0.1\nb,1,ACL,0.1\n", encoding="utf-8")
    Path("profile").mkdir()
    Path("profile/testbed.json").write_text("{}", encoding="utf-8")
    Path("empty").mkdir()
    return tmp_path


def nics(*tables: str) -> None:
    """A fleet file; keys of a table are separated by semicolons."""
    text = "".join(f"[[nic]]\n{table.replace('; ', chr(10))}\n" for table in tables)
    Path("fleet.toml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("tables", "options", "refused"),
    [
        pytest.param(['model = "bluefield-3"'], [], f"fleet.toml:2: model: there are no models of 'bluefield-3'\n{HOW}",
            id="a model that nobody measured"),
        pytest.param(['model = "bluefield-2"', 'model = "bluefield-3"; cost = 1.8', 'model = "bluefeild-2"'], [],
            "fleet.toml:4: model: there are no models of 'bluefield-3'\n"
            f"fleet.toml:7: model: there are no models of 'bluefeild-2'\n{HOW}", id="two models, and a misspelt one"),
        pytest.param(['model = "nfp"; models = "nowhere"', 'model = "nfp"; models = "empty"',
            'model = "nfp"; models = "profile"'], [], "fleet.toml:3: models: there is no folder nowhere\n"
            "fleet.toml:6: models: empty holds no models\n"
            "fleet.toml:9: models: profile is a profile\n"
            f"hint: to make it, run {PROFILE} and `placer train PROFILE --out nowhere`\n"
            f"hint: to make it, run {PROFILE} and `placer train PROFILE --out empty`\n"
            'hint: train models of it: `placer train profile --out MODELS`, then models = "MODELS"\n',
            id="folders without models"),
        pytest.param(['model = "bluefield-2"; testbed = "simulated:server"',
            'model = "bluefield-2"; testbed = "simulatd"'], [],
            "fleet.toml:3: testbed: simulated:server is a server-16, not a bluefield-2\n"
            "fleet.toml:6: testbed: 'simulatd' is not a testbed\n"
            'hint: simulated:server needs model = "server-16"; for a bluefield-2, write testbed = "simulated"\n'
            "hint: did you mean simulated?\n", id="testbeds of another NIC, and misspelt"),
        pytest.param(['model = "bluefield-3"; testbed = "simulated"'], [],
            "fleet.toml:2: model: there are no models of 'bluefield-3'\n"
            f"fleet.toml:3: testbed: simulated is a bluefield-2, not a bluefield-3\n{HOW}"
            'hint: simulated needs model = "bluefield-2"; for a bluefield-3, write the testbed of a bluefield-3\n',
            id="a simulation under another name"),
        pytest.param(['model = "bluefield-3"; testbed = "exec:ssh bf3 agent"'], [],
            "fleet.toml:2: model: there are no models of 'bluefield-3'\n" + HOW.replace(PROFILE,
            "`placer profile --testbed 'exec:ssh bf3 agent' --out PROFILE`"), id="an agent, which is not started"),
        pytest.param(['model = "bluefield-2"', 'model = "server-16"'], ["--testbed", "simulated"],
            "fleet.toml:4: model: is server-16, --testbed simulated is a bluefield-2\n"
            'hint: write testbed = "simulated:server" into its table, or testbed = "none"\n',
            id="--testbed of one of two"),
        pytest.param(['model = "bluefield-2"; cores = 12', 'model = "bluefield-3"', 'model = "nfp"; count = -1'], [],
            "fleet.toml:3: cores: 12 are more than the 8 of a bluefield-2, on which the models were trained\n"
            "fleet.toml:5: model: there are no models of 'bluefield-3'\n"
            f"fleet.toml:8: count: -1 is below 0\n{HOW}", id="all that is wrong at once"),
        pytest.param(['model = "bluefield-2"'], ["--models", "nowhere"],
            "nowhere: is not a models directory: no models.json in it\n"
            "hint: train them again with `placer train PROFILE --out MODELS`\n", id="--models that are not there"),
    ],
)  # fmt: skip
def test_the_first_refusal_says_what_to_do(placer: Placer, tables: list[str], options: list[str], refused: str) -> None:
    """It names every table that is wrong, the models there are, and the commands that make others."""
    nics(*tables)
    assert placer("run", "a.csv", "--fleet", "fleet.toml", *options) == (2, "", refused)


def test_faults_of_the_file_come_before_a_testbed_that_fails(placer: Placer) -> None:
    """A program that does not start does not hide what is wrong in other tables."""
    broken = 'model = "bluefield-2"; testbed = "exec:false"'
    nics(broken, 'model = "bluefield-3"')
    assert placer("run", "a.csv", "--fleet", "fleet.toml").status == 2
    nics(broken)
    ended = placer("run", "a.csv", "--fleet", "fleet.toml")
    assert ended.status == 1 and "testbed `false` ended before it answered" in ended.stderr


@pytest.mark.long
def test_the_hint_leads_to_a_plan(placer: Placer) -> None:
    """Its commands are run as they are, narrowed to one NF; then the key is written that it names."""
    own, simulated = f'model = "nfp-7000"; testbed = "{AGENT}"', 'model = "bluefield-2"; testbed = "simulated"'
    nics(own, simulated)
    Path("a.csv").write_text("id,time,nf,sla_drop\na,0,edge-firewall,0.2\nb,1,NAT,0.2\n", encoding="utf-8")
    hint = placer("run", "a.csv", "--fleet", "fleet.toml").stderr.splitlines()[-1]
    profile, train = (shlex.split(command) for command in re.findall("`placer ([^`]*)`", hint))
    assert placer(*profile, "--nf", "edge-firewall", "--quota", 40).status == 0 and placer(*train).status == 0
    (key,) = re.findall(r'models = "\w+"', hint)
    nics(f"{own}; {key}", simulated)
    by_table = placed(placer)
    assert by_table == {"a": "nfp-7000", "b": "bluefield-2"}

    nics(own, 'model = "bluefield-2"')
    refused = placer("run", "a.csv", "--fleet", "fleet.toml", "--models", "MODELS")
    assert refused.stderr == (
        "fleet.toml:5: model: is bluefield-2, --models MODELS were trained on nfp-7000\n"
        'hint: testbed = "simulated" in its table takes the models that come with placer\n'
    )
    nics(own, simulated)
    assert placed(placer, "--models", "MODELS") == by_table

    nics(f"{own.replace('nfp-7000', 'bluefield-3')}; {key}")
    assert placer("run", "a.csv", "--fleet", "fleet.toml").stderr == (
        "fleet.toml:2: model: is bluefield-3, its models were trained on nfp-7000\n"
        'hint: write model = "nfp-7000", or name the models of a bluefield-3\n'
    )


@pytest.mark.long
def test_a_model_that_comes_with_placer_needs_its_name_only(placer: Placer) -> None:
    """Models and ground truth are found by it, and both kinds of the example are used."""
    trace = EXAMPLE.with_suffix(".csv")
    ended = placer("run", trace, "--fleet", EXAMPLE, "--strategy", "greedy", "--plan", "plan.csv", "--quiet")
    assert (ended.status, ended.stderr) == (0, "")
    assert "SLA violations are measured on the simulated card" in ended.stdout
    with Path("plan.csv").open(encoding="utf-8") as plan:
        used = {(row["nic_model"], row["nic"]) for row in csv.DictReader(plan)}
    old = [nic for model, nic in used if model == "bluefield-2-contended"]
    assert len(old) == 10 and len(used) > 10


def placed(placer: Placer, *options: str) -> dict[str, str]:
    """By instance, the model of its NIC."""
    ended = placer("run", "a.csv", "--fleet", "fleet.toml", "--strategy", "greedy", "--plan", "plan.csv", *options)
    assert ended.status == 0, ended.stderr
    with Path("plan.csv").open(encoding="utf-8") as rows:
        return {row["id"]: row["nic_model"] for row in csv.DictReader(rows)}
