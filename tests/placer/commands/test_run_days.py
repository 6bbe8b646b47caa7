"""`placer run --loads`: instances that peak at different times share NICs, and the output says what that saves."""

import json
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer

LOADS = "name,1,2,3\nday,0.1,1,0.2\nnight,1,0,0.1\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Eight instances of 27 Gb/s on two cores each, half of which have their peak at night."""
    (tmp_path / "loads.csv").write_text(LOADS, encoding="utf-8")
    rows = [f"{at},0,ACL,27,1500,{'day' if at % 2 else 'night'}" for at in range(8)]
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(["id,time,nf,rate_gbps,packet_size,load", *rows]) + "\n", encoding="utf-8")
    return path


def test_knowing_the_hours_saves_nics(placer: Placer, trace: Path) -> None:
    """By peaks three fit on a port of 100 Gb/s, by hours four on the cores of a NIC. Online strategies are by peaks."""
    loads = trace.parent / "loads.csv"
    status, out, err = placer("run", trace, "--loads", loads, "--format", "json", "--range", 0, "--time-limit", 20)
    assert status == 0, err
    rows = {row["strategy"]: row for row in json.loads(out)["strategies"]}
    assert [(rows[name]["nics"], rows[name]["peak_nics"]) for name in ("planned", "optimal")] == [(2, 3), (2, 3)]
    assert rows["contention-aware"]["nics"] == rows["contention-aware"]["peak_nics"] == 3
    assert all(row["violated"] == 0 for row in rows.values())
    assert rows["planned"]["bound_nics"] == 2


def test_the_table_says_what_knowing_the_hours_saves(placer: Placer, trace: Path) -> None:
    options = ("--strategy", "planned", "--range", 0, "--time-limit", 5)
    status, out, _ = placer("run", trace, "--loads", trace.parent / "loads.csv", *options)
    assert status == 0
    assert "Knowing the hours saves 1 NIC (33 %): by peaks, planned, tomur needs 3 NICs." in out
    assert "by peaks" in out.splitlines()[0]


def test_loads_that_no_arrival_names_are_reported(placer: Placer, trace: Path) -> None:
    trace.write_text("id,time,nf,rate_kpps\n1,0,NAT,100\n", encoding="utf-8")
    options = ("--strategy", "greedy", "--format", "json", "--range", 0, "--time-limit", 2)
    status, out, err = placer("run", trace, "--loads", trace.parent / "loads.csv", *options)
    assert (status, "peak_nics" in out) == (0, False)
    assert f"{trace}: no arrival has a load of --loads" in err


def test_a_generated_day_is_read(placer: Placer, tmp_path: Path) -> None:
    """The same instances as without it; `--day` needs rates."""
    trace, loads, count = tmp_path / "t.csv", tmp_path / "d.csv", ("--count", 6, "--loads", "0.1:0.5")
    assert placer("generate", *count, "--day", loads, "--out", trace).status == 0
    without = placer("generate", *count).stdout
    rows = trace.read_text(encoding="utf-8").splitlines()
    assert [row.rpartition(",")[0] for row in rows] == without.splitlines()
    assert {row.rpartition(",")[2] for row in rows[1:]} <= {"office", "evening", "night"}
    options = ("--strategy", "greedy", "--format", "json", "--range", 0, "--time-limit", 2)
    status, out, err = placer("run", trace, "--loads", loads, *options)
    assert (status, json.loads(out)["strategies"][0]["peak_nics"] > 0) == (0, True), err


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_hours_never_take_more_nics_than_peaks(placer: Placer, tmp_path: Path, seed: int) -> None:
    """Of planned and optimal, on a day of 24 hours; and the bound of all plans by hours is kept."""
    trace, loads = tmp_path / "t.csv", tmp_path / "d.csv"
    size = ("--count", 20, "--loads", "0.1:1.0", "--sla", "0-0.05", "--seed", seed)
    assert placer("generate", *size, "--day", loads, "--out", trace).status == 0
    options = ("--strategy", "planned", "--strategy", "optimal", "--format", "json", "--range", 0)
    status, out, err = placer("run", trace, "--loads", loads, "--time-limit", 20, *options)
    assert status == 0, err
    found = json.loads(out)
    planned, optimal = found["strategies"]
    assert found["optimal"]["lower_bound"] <= optimal["nics"] <= planned["nics"] <= planned["peak_nics"]
    assert optimal["nics"] <= optimal["peak_nics"]
    assert (optimal["violated"], optimal["rejected"], planned["rejected"]) == (0, 0, 0)
