"""Studies: faults of their files, results that are kept and continued, to the byte, and statistics over draws."""

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from signal import SIG_DFL, SIGINT, signal

import pandas as pd
import pytest

from placer.studies import GROUP_COLUMNS, execute, read_study, run_task, summarize, tasks_of_study
from placer.studies.execute import RESULTS_FILE, fingerprint
from profiles import InputError
from traces.arrivals import Recipe, generate


@pytest.mark.long
def test_an_interrupted_study_continues_to_the_same_bytes(study: Path, tmp_path: Path) -> None:
    """A study interrupted after its first run and continued by two workers gives the bytes of an uninterrupted one."""
    tasks = tasks_of_study(read_study(study), print)
    execute(tasks, tmp_path / "whole")

    def stop(done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(tasks, tmp_path / "parted", advance=stop)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "parted" / "parts").iterdir()}
    assert len(kept) == 1
    execute(tasks, tmp_path / "parted", jobs=2)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert (tmp_path / "parted" / RESULTS_FILE).read_bytes() == (tmp_path / "whole" / RESULTS_FILE).read_bytes()


def test_a_result_is_named_after_what_it_depends_on(study: Path, risky: Path, tmp_path: Path) -> None:
    """Another risk gives another name, and so does a changed fleet file; the same task gives the same name."""
    one, other = tasks_of_study(read_study(risky), print)
    assert fingerprint(one) == fingerprint(one) != fingerprint(other)
    fleet = tmp_path / "fleet.toml"
    study.write_text(f'fleets = ["{fleet.name}"]\n[[trace]]\ncount = 5\n', encoding="utf-8")
    names = set()
    for count in (3, 4):
        fleet.write_text(f'[[nic]]\nmodel = "bluefield-2"\ncount = {count}\n', encoding="utf-8")
        names |= {fingerprint(task) for task in tasks_of_study(read_study(study), print)}
    assert len(names) == 2


@pytest.mark.long
def test_ctrl_c_keeps_finished_results(study: Path, tmp_path: Path) -> None:
    """Interrupted while two runs are active, the command exits with status 130, and only whole results are kept."""
    study.write_text('strategies = ["greedy"]\n[[trace]]\ncount = 20\ndraws = 100\n', encoding="utf-8")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "placer", "compare", str(study), "--out", str(out), "--jobs", "2", "--quiet"]
    # a shell that starts these tests in the background makes them and their children ignore interrupts
    restored = partial(signal, SIGINT, SIG_DFL)
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=restored)
    for _ in range(600):
        if list(out.glob("parts/*.parquet")):
            break
        time.sleep(0.05)
    running.send_signal(SIGINT)
    _, stderr = running.communicate(timeout=20)
    assert running.returncode == 130 and "the same command" in stderr
    assert all(len(pd.read_parquet(part)) == 1 for part in out.glob("parts/*.parquet"))
    assert not (out / RESULTS_FILE).exists()


def test_statistics_of_five_and_of_two_draws() -> None:
    """The median of five draws is the third, their range all five; the median of two counts is the upper."""
    figures = {"wastage_pct": 0.0, "violations_pct": 1.0, "rejected": 0, "cost": 1.0}
    rows = [{"strategy": "s", "predictor": None, "nics": nics, **figures} for nics in (10, 20, 30, 40, 50)]
    (row,) = summarize(pd.DataFrame(rows), ["strategy", "predictor"]).to_dict("records")
    assert (row["draws"], row["nics"], row["nics_low"], row["nics_high"]) == (5, 30, 10, 50)
    (row,) = summarize(pd.DataFrame(rows[:2]), ["strategy", "predictor"]).to_dict("records")
    assert (row["nics"], row["nics_low"], row["nics_high"]) == (20, 10, 20)


@pytest.mark.parametrize("draws", [1, 4, 5, 10, 11, 37, 100])
def test_four_draws_in_five_lie_between_low_and_high(draws: int) -> None:
    """For any number of draws, at most a tenth is outside at either end."""
    figures = {"strategy": "s", "wastage_pct": 0.0, "violations_pct": None, "rejected": 0, "cost": 1.0}
    rows = pd.DataFrame([{**figures, "nics": nics} for nics in range(draws)]).astype({"violations_pct": float})
    (row,) = summarize(rows, ["strategy"]).to_dict("records")
    assert 10 * (rows["nics"] < row["nics_low"]).sum() <= draws
    assert 10 * (rows["nics"] > row["nics_high"]).sum() <= draws


def test_statistics_keep_the_order_of_the_study(risky: Path, tmp_path: Path) -> None:
    """Rows are ordered by strategy, then by risk, as in the study."""
    statistics = summarize(execute(tasks_of_study(read_study(risky), print), tmp_path / "out"), GROUP_COLUMNS)
    assert statistics["strategy"].tolist() == ["greedy", "contention-aware", "contention-aware", "optimal"]
    assert statistics["risk"].tolist()[1:3] == [0.05, 0.5] and (statistics["draws"] == 1).all()


def test_results_of_earlier_versions_are_summarized() -> None:
    """They have no budgets: a risk was given, and whether a budget was kept is not known."""
    figures = {"nics": 5, "wastage_pct": 0.0, "violations_pct": 1.0, "rejected": 0, "cost": 1.0}
    named = {"trace": "t", "fleet": "f", "strategy": "s", "predictor": "tomur", "risk": 0.05}
    (row,) = summarize(pd.DataFrame([{**named, **figures}]), GROUP_COLUMNS).to_dict("records")
    assert row["risk"] == row["chosen_risk"] == 0.05
    assert row["keeps_budget"] is None and pd.isna(row["budget_pct"])


def test_the_risks_that_a_budget_chose_are_draws_of_one_row() -> None:
    """Two draws for one budget at two risks are one row with the median risk and the mean of what is expected."""
    figures = {"nics": 5, "wastage_pct": 0.0, "violations_pct": 1.0, "rejected": 0, "cost": 1.0, "strategy": "s"}
    rows = [{**figures, "budget_pct": 2.0, "risk": 0.1 * n, "expected_violations_pct": float(n)} for n in (1, 3)]
    (row,) = summarize(pd.DataFrame(rows), ["strategy", "budget_pct", "risk"]).to_dict("records")
    assert (row["draws"], row["expected_violations_pct"], row["keeps_budget"]) == (2, 2.0, True)
    assert pd.isna(row["risk"]) and row["chosen_risk"] == pytest.approx(0.2)


def test_zero_jobs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--jobs: 0 runs at a time can finish no study"):
        execute([], tmp_path, jobs=0)


def runs(path: Path) -> list[tuple[object, float | None, tuple[str, ...]]]:
    return [(task.labels["draw"], task.cards.risk, task.strategies) for task in tasks_of_study(read_study(path), print)]


def test_a_study_is_every_draw_at_every_risk(study: Path, risky: Path) -> None:
    """Strategies that use no predictor run at the first risk only."""
    assert runs(study) == [(draw, None, ("greedy", "optimal")) for draw in range(3)]
    assert runs(risky) == [(0, 0.05, ("greedy", "contention-aware", "optimal")), (0, 0.5, ("contention-aware",))]


def test_predictors_without_risk_run_once(risky: Path) -> None:
    """The risk has no effect on SLOMO: it runs at the first risk only, and its rows have no risk."""
    risky.write_text(risky.read_text(encoding="utf-8").replace('["tomur"]', '["tomur", "slomo"]'), encoding="utf-8")
    first, second = tasks_of_study(read_study(risky), print)
    assert (first.predictors, second.predictors) == (("tomur", "slomo"), ("tomur",))
    assert {row["predictor"]: row["risk"] for row in run_task(first)} == {None: None, "tomur": 0.05, "slomo": None}


def test_draws_differ_and_are_reproducible(study: Path) -> None:
    """Draws of a recipe are different traces, and the same traces the next time."""
    first, again = ([task.trace for task in tasks_of_study(read_study(study), print)] for _ in range(2))
    assert first == again and len(set(first)) == 3


def test_files_are_relative_to_the_study(tmp_path: Path) -> None:
    """Traces and fleets are found in the folder of the study; each fleet is a run."""
    (tmp_path / "own.csv").write_text("".join(generate(Recipe(count=5))), encoding="utf-8")
    (tmp_path / "few.toml").write_text('[[nic]]\nmodel = "bluefield-2"\ncount = 2\n', encoding="utf-8")
    path = tmp_path / "study.toml"
    path.write_text('strategies = ["greedy"]\nfleets = ["few.toml"]\n[[trace]]\nfile = "own.csv"\n', encoding="utf-8")
    (task,) = tasks_of_study(read_study(path), print)
    assert task.labels == {"trace": "own.csv", "draw": 0, "fleet": "few"}
    assert task.cards.fleet == tmp_path / "few.toml"


@pytest.mark.long
def test_a_study_is_every_draw_for_every_budget(study: Path, risky: Path) -> None:
    """The largest budget first, for which strategies without a predictor run; the default is 2 %."""
    risky.write_text(risky.read_text(encoding="utf-8").replace("risks = [0.05, 0.5]", "budgets = [1, 4]"))
    tasks = tasks_of_study(read_study(risky), print)
    assert [(task.cards.budget_pct, task.cards.risk, task.strategies) for task in tasks] == [
        (4.0, None, ("greedy", "contention-aware", "optimal")), (1.0, None, ("contention-aware",)),
    ]  # fmt: skip
    assert {task.cards.budget_pct for task in tasks_of_study(read_study(study), print)} == {2.0}
    (row,) = run_task(tasks[1])
    assert row["budget_pct"] == 1.0
    assert isinstance(row["risk"], float) and isinstance(row["expected_violations_pct"], float)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("seed = 1", "trace: is missing"),
        ("seed = -1\n[[trace]]", ":1: seed: -1 is below 0"),
        ("sead = 1\n[[trace]]", "sead: unknown key"),
        ("sead = 1\n[[trace]]", "hint: did you mean seed?"),
        ("[[trace]]\ndrawz = 2", "hint: did you mean draws?"),
        ("budgets = [2, 0]\n[[trace]]", ":1: budgets.2: 0 is not above 0"),
        ("budgets = [101]\n[[trace]]", ":1: budgets.1: 101 is above 100"),
        ("budgets = [2]\nrisks = [0.1]\n[[trace]]", "budgets and risks are both given"),
        ("risks = [0.7]\n[[trace]]", ":1: risks.1: 0.7 is above 0.5"),
        ('[[trace]]\nfile = "a.csv"\ncount = 3', ":1: trace.1: a trace with a file takes no count"),
        ("seed = 2\n[[trace]]\n[[trace]]\nname = 'b'\ncount = 1.5", ":5: trace.2.count: 1.5 is not a whole number"),
        ("[[trace]]\nsla = 0.1", ":2: trace.1.sla: 0.1 is not a list"),
        ("[[trace]]\nsla = [0.1]", ":2: trace.1.sla.2: is missing"),
        ('strategies = "greedy"\n[[trace]]', ":1: strategies: 'greedy' is not a list"),
        ('[[trace]]\ntraffic = "odd"', "trace.1: traffic 'odd' is not one of default, mixed, unique"),
        ("[[trace]]\nsla = [0.2, 0.1]", "trace.1: sla [0.2, 0.1] is not a range of drops"),
        ("[[trace]]\n[[trace]]", "two traces are called default 500: give them a name"),
        ("[[trace]]\ncount = 99999999999999999999", ":2: trace.1.count: 99999999999999999999 is above 20000000"),
        ("[[trace]]\ncount = -5", ":2: trace.1.count: -5 is not above 0"),
        ("[[trace]]\ncount = nan", ":2: trace.1.count: nan is not a whole number"),
        ("[[trace]]\ncount = 1e308", ":2: trace.1.count: "),
        ("[[trace]]\ncount = '4'", ":2: trace.1.count: '4' is not a whole number"),
        ("[[trace]]\ncount = true", ":2: trace.1.count: True is not a whole number"),
        ("[[trace]]\nnfs = []", ":2: trace.1.nfs: is too short: there must be at least 1"),
        ("[[trace]]\ndraws = 1000000", ":2: trace.1.draws: 1000000 is above 100000"),
        ("[[trace]]\ncount = 20000000\ndraws = 2", "count times draws is 40,000,000 arrivals, the limit is 20,000,000"),
        ("[[trace]]\nmean_stay_s = 1e308", ":2: trace.1.mean_stay_s: 1e+308 is above 1000000000"),
        ("[[trace]]\nmean_stay_s = inf", ":2: trace.1.mean_stay_s: inf is "),
        ("[[trace]]\nsla = [nan, 0.2]", ":2: trace.1.sla.1: nan is "),
        ("time_limit = 1e308\n[[trace]]", ":1: time_limit: 1e+308 is above 1000000000"),
        ("time_limit = nan\n[[trace]]", ":1: time_limit: nan is "),
        ("seed = 99999999999999999999\n[[trace]]", ":1: seed: 99999999999999999999 is above 9223372036854775807"),
        ("risks = [-0.1]\n[[trace]]", ":1: risks.1: -0.1 is not above 0"),
        ("seed =", "is not TOML"),
        ('[[trace]]\nfile = "nowhere.csv"', "nowhere.csv: No such file"),
        ('fleets = ["a/one.toml", "one.toml"]\n[[trace]]', "fleets: two fleets are called one"),
        ('[[trace]]\nnfs = ["NTA"]', "trace.nfs: not profiled: NTA"),
        ('[[trace]]\nnfs = ["Nat"]', "trace.nfs: not profiled: Nat\nhint: did you mean NAT?"),
        ('strategies = ["luck"]\n[[trace]]', "--strategy: 'luck' is not a strategy"),
    ],
)
def test_a_bad_study_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    """The fault names its key, and nothing has run."""
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        tasks_of_study(read_study(path), print)
    assert fault in str(refused.value)


def test_traces_with_loads_are_generated(study: Path) -> None:
    """Each instance has a rate and, unless the study says so, no SLA; a range that goes downwards is refused."""
    head = 'strategies = ["greedy"]\n[[trace]]\ncount = 5\n'
    study.write_text(f"{head}loads = [0.1, 0.5]\n", encoding="utf-8")
    (task,) = tasks_of_study(read_study(study), print)
    assert task.trace.splitlines()[0] == "id,time,nf,rate_kpps"
    study.write_text(f"{head}loads = [0.1, 0.5]\nsla = [0.0, 0.02]\n", encoding="utf-8")
    (task,) = tasks_of_study(read_study(study), print)
    assert task.trace.splitlines()[0] == "id,time,nf,rate_kpps,sla_drop"
    study.write_text(f"{head}loads = [0.5, 0.1]\n", encoding="utf-8")
    with pytest.raises(InputError, match="is not a range of shares"):
        read_study(study)
