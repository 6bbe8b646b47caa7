"""`placer run` of instances at offered rates, for which cores are chosen; with --loads, those that peak at different
times share NICs, and the output says what that saves."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer, refuse

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


def test_arrivals_are_explained_at_their_peaks(placer: Placer, trace: Path) -> None:
    """As contention-aware places them: three of them fill the port of a NIC, whatever their hours."""
    status, out, err = placer("explain", trace, "--every", "--loads", trace.parent / "loads.csv")
    assert status == 0, err
    explained = [json.loads(line) for line in out.splitlines()]
    assert sorted(Counter(arrival["nic"] for arrival in explained).values()) == [2, 3, 3]
    assert [arrival["nic"] for arrival in explained] == [
        json.loads(line)["nic"] for line in placer("explain", trace, "--every", "--ignore-columns")[1].splitlines()
    ]


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


NFS = ("FlowMonitor", "NAT", "ACL", "IPRouter", "FlowStats")


def _trace(path: Path, rows: list[str], header: str = "id,time,nf,rate_kpps") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def light(tmp_path: Path) -> Path:
    """Forty instances at 100 or 490 kpps, of which each takes one core or two."""
    return _trace(tmp_path / "light.csv", [f"{at},{at},{NFS[at % 5]},{(100, 490)[at % 2]}" for at in range(40)])


def test_light_instances_share_nics_by_what_is_offered(placer: Placer, light: Path) -> None:
    """As many on a NIC as it has cores, so few NICs are enough; no plan has more than one violation."""
    status, out, err = placer("run", light, "--format", "json", "--time-limit", "20", "--range", "0", "--risk", "0.22")
    assert status == 0, err
    assert "slomo is left out: it knows no offered rates and no numbers of cores" in err
    found = json.loads(out)
    rows = {row["strategy"]: row for row in found["strategies"]}
    assert rows["monopolization"]["nics"] == 40
    assert found["optimal"]["lower_bound"] <= found["optimal"]["nics"] <= rows["contention-aware"]["nics"] <= 9
    assert found["optimal"]["nics"] <= rows["planned"]["nics"] + 1
    assert all(row["violated"] <= 1 and row["rejected"] == 0 for row in found["strategies"])


def test_cores_that_are_given_are_kept(placer: Placer, tmp_path: Path) -> None:
    """Two instances that get four cores each fill a NIC, whatever they are offered."""
    trace = _trace(tmp_path / "given.csv", [f"{at},0,NAT,100,4" for at in range(4)], "id,time,nf,rate_kpps,cores")
    status, out, _ = placer("run", trace, "--format", "json", "--time-limit", "5")
    found = json.loads(out)
    assert status == 0
    assert [row["nics"] for row in found["strategies"] if row["strategy"] != "monopolization"] == [2, 2, 2, 2]


def test_headroom_is_kept_for_growth(placer: Placer, tmp_path: Path) -> None:
    """Eight instances that fill the cores of a NIC need more NICs where each may double; none may tenfold."""
    trace = _trace(tmp_path / "full.csv", [f"{at},0,NAT,500" for at in range(8)])
    run = ("run", trace, "--strategy", "contention-aware", "--format", "json")
    status, out, _ = placer(*run)
    assert (status, json.loads(out)["strategies"][0]["nics"]) == (0, 1)
    status, out, err = placer(*run, "--headroom", "100")
    assert (status, json.loads(out)["strategies"][0]["nics"]) == (0, 2)
    assert "every offered rate is planned 100 % higher" in err
    assert "--headroom: 0: 5,000 kpps is more than 'NAT' carries" in refuse(*run, "--headroom", "900")
