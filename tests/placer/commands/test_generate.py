"""`placer generate`: exit status, stdout and stderr."""

import csv
import io
import json
from pathlib import Path

import pytest

from placer.inputs.models import open_models
from profiles import ATTRIBUTES, TrafficProfile, Workload
from tests.placer.commands.conftest import Placer


@pytest.mark.long
def test_generate_writes_what_run_reads(placer: Placer, tmp_path: Path) -> None:
    """A generated trace is the same on stdout and in a file, and is read without a fault."""
    out = tmp_path / "t.csv"
    options = [
        "generate", "--count", 12, "--traffic", "mixed", "--departures", 40, "--sla", "0.1-0.2", "--nfs", "NAT,ACL",
    ]  # fmt: skip
    assert placer(*options, "--out", out).status == 0
    assert placer(*options).stdout == out.read_text(encoding="utf-8")
    assert json.loads(placer("run", out, "--format", "json").stdout)["arrivals"] == 12


def test_loads_are_shares_of_what_an_nf_carries_alone(placer: Placer, tmp_path: Path) -> None:
    """Of the same arrivals as without; they need no SLA, and share their logarithms evenly."""
    options = ["generate", "--count", 60, "--nfs", "NAT,ACL", "--traffic", "mixed", "--seed", 3]
    plain = list(csv.DictReader(io.StringIO(placer(*options).stdout)))
    loaded = list(csv.DictReader(io.StringIO(placer(*options, "--loads", "0.1:0.9").stdout)))
    with_sla = list(csv.DictReader(io.StringIO(placer(*options, "--loads", "0.1:0.9", "--sla", "0.05-0.20").stdout)))
    assert [{**row, "rate_kpps": loaded[n]["rate_kpps"]} for n, row in enumerate(plain)] == with_sla
    assert "sla_drop" not in loaded[0]
    workloads = [Workload(row["nf"], TrafficProfile(*(float(row[name]) for name in ATTRIBUTES))) for row in loaded]
    alone = open_models(None, print).predictors["tomur"].solo(workloads).tolist()
    shares = [float(row["rate_kpps"]) / kpps for row, kpps in zip(loaded, alone, strict=True)]
    assert 0.1 <= min(shares) < 0.15 and 0.7 < max(shares) <= 0.9
    assert 0.2 < sorted(shares)[30] < 0.45  # the middle of the logarithms is 0.3
