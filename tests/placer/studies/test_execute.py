"""Conducting a study: kept, continued, and the same to the byte."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from signal import SIG_DFL, SIGINT, signal

import pandas as pd
import pytest

from placer.report.text.study import BY
from placer.studies import conduct, locally, read_study, spread_of, units_of
from placer.studies.execute import RESULTS, fingerprint


def test_interrupted_and_continued_is_the_same(study: Path, tmp_path: Path) -> None:
    """A study that is stopped after its first unit and goes on with two workers ends in the bytes of one in one go."""
    units = units_of(read_study(study), print)
    conduct(units, tmp_path / "whole")

    def stop(done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        conduct(units, tmp_path / "parted", advance=stop)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "parted" / "parts").iterdir()}
    assert len(kept) == 1
    conduct(units, tmp_path / "parted", runner=locally(2))
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert (tmp_path / "parted" / RESULTS).read_bytes() == (tmp_path / "whole" / RESULTS).read_bytes()


def test_a_part_is_named_after_what_it_depends_on(study: Path, risky: Path, tmp_path: Path) -> None:
    """Another risk is another part, and so is the same fleet file with other NICs in it; the name comes again."""
    one, other = units_of(read_study(risky), print)
    assert fingerprint(one) == fingerprint(one) != fingerprint(other)
    fleet = tmp_path / "fleet.toml"
    study.write_text(f'fleets = ["{fleet.name}"]\n[[trace]]\ncount = 5\n', encoding="utf-8")
    names = set()
    for count in (3, 4):
        fleet.write_text(f'[[nic]]\nmodel = "bluefield-2"\ncount = {count}\n', encoding="utf-8")
        names |= {fingerprint(unit) for unit in units_of(read_study(study), print)}
    assert len(names) == 2


def test_ctrl_c_keeps_what_is_done(study: Path, tmp_path: Path) -> None:
    """Interrupted while two units run, the command says so with status 130, and whole parts are there."""
    study.write_text('strategies = ["greedy"]\n[[trace]]\ncount = 60\ndraws = 2000\n', encoding="utf-8")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "placer", "compare", str(study), "--out", str(out), "--jobs", "2", "--quiet"]
    # whoever starts these tests in the background has them ignore interrupts, and whatever they start
    heed = partial(signal, SIGINT, SIG_DFL)
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    for _ in range(600):
        if list(out.glob("parts/*.parquet")):
            break
        time.sleep(0.05)
    running.send_signal(SIGINT)
    _, said = running.communicate(timeout=20)
    assert running.returncode == 130
    assert "the same command goes on" in said
    assert all(len(pd.read_parquet(part)) == 1 for part in out.glob("parts/*.parquet"))
    assert not (out / RESULTS).exists()


def test_the_spread_is_by_hand() -> None:
    """Of five draws the median is the third; only all five hold four of five at both ends. Of two it is the upper."""
    figures = {"wastage_pct": 0.0, "violations_pct": 1.0, "rejected": 0, "cost": 1.0}
    rows = [{"strategy": "s", "predictor": None, "nics": nics, **figures} for nics in (10, 20, 30, 40, 50)]
    (row,) = spread_of(pd.DataFrame(rows), ["strategy", "predictor"]).to_dict("records")
    assert (row["draws"], row["nics"], row["nics_low"], row["nics_high"]) == (5, 30, 10, 50)
    (row,) = spread_of(pd.DataFrame(rows[:2]), ["strategy", "predictor"]).to_dict("records")
    assert (row["nics"], row["nics_low"], row["nics_high"]) == (20, 10, 20)


@pytest.mark.parametrize("draws", [1, 4, 5, 10, 11, 37, 100])
def test_four_draws_of_five_lie_between_low_and_high(draws: int) -> None:
    """Whatever the number of draws, no more than a tenth is left out at either end."""
    figures = {"strategy": "s", "wastage_pct": 0.0, "violations_pct": None, "rejected": 0, "cost": 1.0}
    rows = pd.DataFrame([{**figures, "nics": nics} for nics in range(draws)]).astype({"violations_pct": float})
    (row,) = spread_of(rows, ["strategy"]).to_dict("records")
    assert 10 * (rows["nics"] < row["nics_low"]).sum() <= draws
    assert 10 * (rows["nics"] > row["nics_high"]).sum() <= draws


def test_the_spread_keeps_the_order_of_the_study(risky: Path, tmp_path: Path) -> None:
    """Rows come strategy by strategy, and of each the risks in the study's order."""
    spread = spread_of(conduct(units_of(read_study(risky), print), tmp_path / "out"), BY)
    assert spread["strategy"].tolist() == ["greedy", "contention-aware", "contention-aware", "optimal"]
    assert spread["risk"].tolist()[1:3] == [0.05, 0.5]
    assert (spread["draws"] == 1).all()
