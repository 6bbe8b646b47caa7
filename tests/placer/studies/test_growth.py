"""Growth of a trace: drawn from itself, inside the profiled range."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.inputs.arrivals import read_arrivals
from placer.model.arrival import Arrival
from placer.model.fleet import NicKind
from placer.model.offered import OfferedWorkload
from placer.model.sla import Sla
from placer.studies.growth import Growth, arrivals_csv, grow
from profiles import TrafficProfile, Workload

TRAFFIC = TrafficProfile(1000, 1000, 600)
RANGE = {"flows": (1.0, 4000.0), "packet_size": (64.0, 1500.0), "mtbr": (0.0, 1100.0)}
TRACE = [
    Arrival("a", 0.0, Workload("NAT", TRAFFIC), Sla(max_drop=0.1)),
    Arrival("b", 5.0, Workload("ACL", TRAFFIC), Sla(min_kpps=100.0), departure=50.0),
    Arrival("c", 7.5, Workload("NIDS", TRAFFIC), Sla(max_drop=0.6)),
]


def drawn(growth: Growth, seed: int = 0) -> list[Arrival]:
    """The trace, grown."""
    return grow(TRACE, growth, RANGE, random.Random(seed))


@given(st.floats(0.5, 20), st.floats(0.5, 20), st.integers(0, 99))
def test_a_larger_growth_begins_with_the_smaller(small: float, large: float, seed: int) -> None:
    """The requested number of arrivals, in order of time, with unique ids; a smaller growth is part of a larger one."""
    small, large = sorted((small, large))
    few, many = drawn(Growth(arrivals=small), seed), drawn(Growth(arrivals=large), seed)
    assert len(few) == round(3 * small)
    assert len({one.id for one in many}) == len(many)
    assert [one.time for one in many] == sorted(one.time for one in many)
    for nf in ("NAT", "ACL", "NIDS"):
        assert sum(one.workload.nf == nf for one in few) <= sum(one.workload.nf == nf for one in many)


def test_slas_tighten_and_traffic_grows_within_the_profiled_range() -> None:
    """The drop is halved, ten times the flows end at the profiled maximum; kpps, match rate and stay do not change."""
    by_nf = {one.workload.nf: one for one in drawn(Growth(arrivals=9, sla=0.5, flows=10, packet_size=1.2))}
    assert by_nf["NAT"].sla == Sla(max_drop=0.05)
    assert by_nf["ACL"].sla == Sla(min_kpps=100.0)
    assert by_nf["ACL"].departure == 50.0
    assert by_nf["NIDS"].workload.traffic == TrafficProfile(4000, 1200, 600)


def test_an_allowed_drop_stays_below_1() -> None:
    """Twice an allowed drop of 60 % is not 120 %."""
    assert all((one.sla.max_drop or 0.0) < 1 for one in drawn(Growth(arrivals=9, sla=2)))


@pytest.mark.parametrize("growth", [Growth(), Growth(arrivals=3, sla=0.3, flows=1.7)])
def test_grown_arrivals_survive_a_csv_file(growth: Growth, tmp_path: Path) -> None:
    """Written and read again, a grown trace is the same to the last digit."""
    arrivals = drawn(growth)
    path = tmp_path / "grown.csv"
    path.write_text(arrivals_csv(arrivals), encoding="utf-8")
    assert read_arrivals(str(path), TRAFFIC, lambda workload: ()) == arrivals


def test_rates_and_promised_latencies_survive_a_csv_file(tmp_path: Path) -> None:
    """They grow with nothing; traces without them have no such columns."""
    promised = [OfferedWorkload("NAT", TRAFFIC, 400.0, latency) for latency in (90.0, float("inf"))]
    trace = [
        Arrival(str(n), float(n), one, Sla(min_kpps=400.0)) for n, one in enumerate([*promised, TRACE[0].workload])
    ]
    path = tmp_path / "grown.csv"
    path.write_text(arrivals_csv(grow(trace, Growth(), RANGE, random.Random(1))), encoding="utf-8")
    read = read_arrivals(str(path), TRAFFIC, lambda workload: [])
    assert {one.workload for one in read} <= {one.workload for one in trace}
    assert any(isinstance(one.workload, OfferedWorkload) for one in read)
    assert "rate_kpps" not in arrivals_csv(TRACE)


def test_what_already_runs_is_there_once() -> None:
    """Twice three arrivals: the one that runs stays on its NIC, and five are drawn and are to be placed."""
    trace = [TRACE[0], replace(TRACE[1], nic="x"), TRACE[2]]
    grown = grow(trace, Growth(arrivals=2.0, sla=0.5), RANGE, random.Random(0))
    assert len(grown) == len({one.id for one in grown}) == 6
    assert [one.id.split("~")[0] for one in grown if one.nic == "x"] == ["b"]
    assert [one.nic for one in grown].count(None) == 5
    assert [one.time for one in grown] == sorted(one.time for one in grown)
    assert [one.nic for one in grow(trace, Growth(arrivals=0.1), RANGE, random.Random(0))] == ["x"]
    kinds = [NicKind(0, "nic", 8, {"NAT": 1, "ACL": 1, "NIDS": 1})]
    assert read_arrivals(io.StringIO(arrivals_csv(grown)), TRAFFIC, lambda workload: (), kinds=kinds) == grown
