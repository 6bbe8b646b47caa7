"""Study files: the runs that they describe, and the faults that are refused."""

from pathlib import Path

import pytest

from placer.studies import read_study, run_task, tasks_of_study
from profiles import InputError
from traces.arrivals import Recipe, generate


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
