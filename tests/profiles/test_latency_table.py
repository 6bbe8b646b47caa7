"""`latency.csv`, as users may write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles import InputError
from profiles.latency_table import competitors_text, read_latencies
from profiles.profile import read_profile

ROW = "1000,64,2000,1000,30\n"
HEADER = "flows,packet_size,capacity_kpps,rate_kpps,p99_us\n"


def test_what_is_left_out_has_a_meaning(tmp_path: Path) -> None:
    """Without competitors the NF was alone, once, without matches; other latencies are not known."""
    (tmp_path / "latency.csv").write_text(HEADER + ROW)
    table, faults = read_latencies(tmp_path / "latency.csv")
    (row,) = table.to_dict("records")
    assert not faults and (row["competitors"], row["mtbr"], row["repeats"]) == ("", 0, 1)
    assert row["mean_us"] != row["mean_us"]
    assert competitors_text(["NAT", "Dedup", "NAT"]) == "Dedup;NAT;NAT"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (HEADER + "1000,64,2000,2000,30\n", "latency.csv:2: rate_kpps: is not below capacity_kpps"),
        (HEADER + "1000,64,2000,0,30\n", "latency.csv:2: rate_kpps: 0 is no measurement"),
        (HEADER + "1000,64,2000,1000,x\n", "latency.csv:2: p99_us: 'x' is not a number"),
        ("mean_us," + HEADER + "40," + ROW, "latency.csv:2: mean_us: is above p99_us"),
        ("flows,packet_size,rate_kpps,p99_us\n", "latency.csv:1: capacity_kpps: column is missing"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str, fault: str) -> None:
    """As part of the profile, which is refused whole."""
    (tmp_path / "nat").mkdir()
    (tmp_path / "nat" / "latency.csv").write_text(text)
    with pytest.raises(InputError) as refused:
        read_profile(tmp_path)
    assert fault in str(refused.value)
