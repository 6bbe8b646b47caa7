"""Studies as files: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from placer.studies import judged, read_study, units_of
from profiles import InputError
from traces.arrivals import Recipe, generate


def units(path: Path) -> list[tuple[object, float | None, tuple[str, ...]]]:
    """Draw, risk and strategies of every unit."""
    return [(unit.labels["draw"], unit.risk, unit.strategies) for unit in units_of(read_study(path), print)]


def test_a_study_is_every_draw_at_every_risk(study: Path, risky: Path) -> None:
    """What looks at no predictor runs at the first risk alone."""
    assert units(study) == [(draw, None, ("greedy", "optimal")) for draw in range(3)]
    assert units(risky) == [
        (0, 0.05, ("greedy", "contention-aware", "optimal")),
        (0, 0.5, ("contention-aware",)),
    ]


def test_predictors_without_errors_of_their_own_run_once(risky: Path) -> None:
    """SLOMO takes no notice of the risk: it is asked at the first alone, and its rows name none."""
    risky.write_text(risky.read_text(encoding="utf-8").replace('["tomur"]', '["tomur", "slomo"]'), encoding="utf-8")
    first, second = units_of(read_study(risky), print)
    assert (first.predictors, second.predictors) == (("tomur", "slomo"), ("tomur",))
    risks = {row["predictor"]: row["risk"] for row in judged(first)}
    assert risks == {None: None, "tomur": 0.05, "slomo": None}


def test_draws_differ_and_come_again(study: Path) -> None:
    """Draws of a recipe are different traces, and the same ones the next time."""
    first, again = ([unit.trace for unit in units_of(read_study(study), print)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 3


def test_files_are_found_beside_the_study(tmp_path: Path) -> None:
    """Traces and fleets are relative to the study's own folder; each fleet is a unit."""
    (tmp_path / "own.csv").write_text("".join(generate(Recipe(count=5))), encoding="utf-8")
    (tmp_path / "few.toml").write_text('[[nic]]\nmodel = "bluefield-2"\ncount = 2\n', encoding="utf-8")
    path = tmp_path / "study.toml"
    path.write_text('strategies = ["greedy"]\nfleets = ["few.toml"]\n[[trace]]\nfile = "own.csv"\n', encoding="utf-8")
    (unit,) = units_of(read_study(path), print)
    assert unit.labels == {"trace": "own.csv", "draw": 0, "fleet": "few"}
    assert unit.fleet == tmp_path / "few.toml"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("seed = 1", "trace: is missing"),
        ("seed = -1\n[[trace]]", ":1: seed: -1 is below 0"),
        ("sead = 1\n[[trace]]", "sead: unknown key"),
        ("sead = 1\n[[trace]]", "hint: a study holds seed, "),
        ("[[trace]]\ndrawz = 2", "hint: [[trace]] holds name, "),
        ("risks = [0.7]\n[[trace]]", ":1: risks.1: 0.7 is above 0.5"),
        ('[[trace]]\nfile = "a.csv"\ncount = 3', ":1: trace.1: a trace with a file takes no count"),
        ("seed = 2\n[[trace]]\n[[trace]]\nname = 'b'\ncount = 1.5", ":5: trace.2.count: 1.5 is not a whole number"),
        ("[[trace]]\nsla = 0.1", ":2: trace.1.sla: 0.1 is not a list"),
        ("[[trace]]\nsla = [0.1]", ":2: trace.1.sla.2: is missing"),
        ('strategies = "greedy"\n[[trace]]', ":1: strategies: 'greedy' is not a list"),
        ('[[trace]]\ntraffic = "odd"', "trace.1: traffic 'odd' is not one of default, mixed, unique"),
        ("[[trace]]\nsla = [0.2, 0.1]", "trace.1: sla [0.2, 0.1] is not a range of drops"),
        ("[[trace]]\n[[trace]]", "two traces are called default 500: give them a name"),
        ("seed =", "is not TOML"),
        ('[[trace]]\nfile = "nowhere.csv"', "nowhere.csv: No such file"),
        ('fleets = ["a/one.toml", "one.toml"]\n[[trace]]', "fleets: two fleets are called one"),
        ('[[trace]]\nnfs = ["NTA"]', "trace.nfs: not profiled: NTA"),
        ('strategies = ["luck"]\n[[trace]]', "--strategy: unknown: luck"),
    ],
)
def test_a_bad_study_is_refused(tmp_path: Path, text: str, told: str) -> None:
    """Every fault names its key, and nothing has run."""
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        units_of(read_study(path), print)
    assert told in str(refused.value)
