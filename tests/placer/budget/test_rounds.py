"""`placer profile --for`: plan, measure, train."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from placer.budget.rounds import measure, open_rounds, retrain
from placer.commands.profile import as_table
from placer.inputs.arrivals import TraceOptions
from predictor import load_models, train
from predictor.training.recorded import ASSUMED_NOISE
from profiler.further import FURTHER_ROUNDS, profile_further, with_runs
from profiler.profiling import profile
from profiles import InputError, TrafficProfile, Workload
from profiles.profile import read_profile
from tests.placer.commands.conftest import Placer, placer
from tests.profiler.crowd_testbed import CrowdTestbed
from tests.profiler.foreign import bytes_of

__all__ = ["placer"]

LIGHT = TrafficProfile(1000, 512)
ARRIVALS = "id,time,nf,flows,sla_drop,departure\n" + "".join(
    f"i{at},{10 * at},{('heavy', 'light', 'middle')[at % 3]},{(1000, 3000)[at % 2]},{0.05 + 0.01 * (at % 15)},"
    f"{10 * at + 90 if at % 2 else ''}\n"
    for at in range(24)
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a profile, its models, and arrivals at two traffic profiles that come and go."""
    folder = tmp_path_factory.mktemp("rounds")
    profile(CrowdTestbed(), folder / "profile", quota=80)
    train(read_profile(folder / "profile"), ["tomur"]).save(folder / "models")
    (folder / "arrivals.csv").write_text(ARRIVALS)
    return folder


@pytest.mark.long
def test_runs_are_spent_in_rounds_and_reported(trained: Path, tmp_path: Path) -> None:
    """A line after each round; the same call elsewhere ends in the same table and bytes."""
    tables = []
    for name in ("a", "b"):
        out, lines = tmp_path / name, list[str]()
        shutil.copytree(trained / "profile", out)
        rounds, key = open_rounds(str(trained / "arrivals.csv"), trained / "models", out, lines.append)
        testbed = CrowdTestbed()
        rounds.finish(profile_further(testbed, out, rounds.choose, key=key, most=15))
        assert sum(one.runs for one in rounds.rounds) <= 15
        assert all(one.runs == one.co_locations + one.repeats > 0 for one in rounds.rounds)
        assert 1 <= len(rounds.rounds) <= FURTHER_ROUNDS
        assert [line.split(":")[0] for line in lines] == [f"round {one + 1}" for one in range(len(rounds.rounds))]
        assert any(load.traffic.flows == 3000 for loads in testbed.requests for load in loads)
        tables.append(as_table(rounds.rounds))
    assert tables[0] == tables[1] and "largest change %" in tables[0]
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b") != bytes_of(trained / "profile")


@pytest.mark.long
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--models": None}, "--models: is missing"),
        ({"--quota": None}, "--quota: is missing"),
        ({"--quota": 3}, "--quota: 3 runs are too few"),
        ({"--nf": "light"}, "--for: chooses the runs"),
        ({"--method": "random"}, "--for: chooses the runs"),
        ({"--out": "nowhere"}, "is not a profile directory"),
        ({"--for": "strange.csv"}, "'stranger' is not profiled"),
        ({"--for": "missing.csv"}, "missing.csv"),
        ({"--for": None}, "--models: needs --for"),
        ({"--for": None, "--models": None, "--budget": 1}, "--budget: needs --for"),
        ({"--budget": 0}, "--budget: 0 is not above 0"),
        ({"--testbed": "simulated"}, "--testbed: is"),  # another card than the profile's
    ],
)
def test_what_does_not_fit_is_refused(
    trained: Path, placer: Placer, monkeypatch: pytest.MonkeyPatch, changed: dict[str, object], message: str
) -> None:
    """With exit status 2; the profile stays as it is."""
    monkeypatch.chdir(trained)
    (trained / "strange.csv").write_text("id,time,nf,sla_drop\na,0,stranger,0.1\n")
    before = bytes_of(trained / "profile")
    options: dict[str, object] = {
        "--testbed": "simulated", "--out": "profile", "--for": "arrivals.csv", "--models": "models", "--quota": 20,
    } | changed  # fmt: skip
    arguments = [part for name, value in options.items() if value is not None for part in (name, value)]
    ended = placer("profile", *arguments)
    assert ended.status == 2 and message in ended.stderr and bytes_of(trained / "profile") == before


@pytest.mark.long
def test_an_nf_that_is_not_in_the_profile_is_refused(trained: Path, tmp_path: Path) -> None:
    """The models know it, but they cannot be trained again."""
    shutil.copytree(trained / "profile", tmp_path / "p")
    shutil.rmtree(tmp_path / "p" / "heavy")
    with pytest.raises(InputError, match=r"--for: .* has no profile of heavy"):
        open_rounds(str(trained / "arrivals.csv"), trained / "models", tmp_path / "p", lambda line: None)


@pytest.mark.long
def test_rows_and_columns_are_skipped_on_request(trained: Path, tmp_path: Path) -> None:
    """The call is that of the plain arrivals, which it resumes; without the option, they are refused."""
    header, *rows = (trained / "arrivals.csv").read_text().splitlines()
    own = tmp_path / "own.csv"
    own.write_text("\n".join([f"{header},owner", *(f"{row},ops" for row in rows)]))
    said = list[str]()
    opened = [trained / "models", trained / "profile", said.append]
    options = TraceOptions(ignore_columns=True, say=said.append)
    assert open_rounds(str(own), *opened, options=options)[1] == open_rounds(str(trained / "arrivals.csv"), *opened)[1]
    assert said == [f"{own}: ignored columns: owner"]
    with pytest.raises(InputError, match="owner: unknown column"):
        open_rounds(str(own), *opened)


def test_the_budget_of_the_plans_is_chosen(trained: Path) -> None:
    """A call with another budget is another call, which does not resume the first."""
    opened = [
        open_rounds(str(trained / "arrivals.csv"), trained / "models", trained / "profile", lambda line: None, budget)
        for budget in (None, 1.0, 5.0)
    ]
    assert [rounds.budget_pct for rounds, _ in opened] == [2.0, 1.0, 5.0] and len({key for _, key in opened}) == 3


def test_few_repeats_that_agree_do_not_make_runs_exact(trained: Path) -> None:
    """The rounds assume as much noise as `run --measure` does, so that they repeat what is near an SLA."""
    read = read_profile(trained / "profile")
    light = read.nfs["light"]
    table = pd.DataFrame([{"run": run, "nf": "light", **LIGHT.as_dict(), "throughput_kpps": 900.0} for run in range(2)])
    nfs = {name: replace(nf, co_locations=table if nf is light else table[:0]) for name, nf in read.nfs.items()}
    runs, noise = measure(replace(read, nfs=nfs))
    assert runs == {(Workload("light", LIGHT),): 2} and 0.8 * ASSUMED_NOISE < noise < ASSUMED_NOISE


@pytest.mark.long
def test_what_is_fitted_anew_is_what_training_would_find(trained: Path) -> None:
    """After further runs the corrections are fitted to all of them, and predict and err as models trained from all."""
    read = read_profile(trained / "profile")
    before = load_models(trained / "models")
    pair = (Workload("heavy", LIGHT), Workload("light", LIGHT))
    further = with_runs(read, [(pair, (500.0 + run, 600.0 - run)) for run in range(3)])
    again, anew = retrain(before, further, "tomur"), train(further, ["tomur"])
    for risk in (None, 0.05):
        found, expected, former = (
            np.concatenate(one.predictors["tomur"].throughput([pair, (*pair, pair[0])], risk=risk))
            for one in (again, anew, before)
        )
        assert found == pytest.approx(expected, rel=1e-9) and found != pytest.approx(former, rel=0.01)


@pytest.mark.long
def test_a_profile_of_other_nfs_is_trained_from_the_beginning(trained: Path) -> None:
    """Models of fewer NFs than the profile has lack what the corrections rest on."""
    read = read_profile(trained / "profile")
    fewer = replace(read, nfs={name: nf for name, nf in read.nfs.items() if name != "heavy"})
    assert set(retrain(train(fewer, ["tomur"]), read, "tomur").nfs) == {"heavy", "light", "middle"}
