"""The tables of a GPU server's profile: what they mean, and how faults are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles import InputError
from profiles.gpu_tables import (
    is_gpu_profile,
    minibatches_text,
    others_text,
    parse_busy,
    parse_minibatches,
    parse_others,
    read_gpu_profile,
)
from profiles.profile import write_json
from tests.profiler.gpu.toy_gpu import toy_description

BATCHING = "flows,packet_size,rate_kpps,batch,mean_us,p99_us\n1000,512,100,64,315,630\n"
TRANSFER = "flows,packet_size,batch,mean_us,p99_us,return_mean_us,return_p99_us\n1000,512,64,6,,4,\n"
KERNEL = "flows,packet_size,packets,mean_us,p99_us\n1000,512,64,30,31\n"
PREPOST = "flows,packet_size,batch,mean_us,p99_us\n1000,512,64,3,3\n"
SHARING = "flows,packet_size,packets,others,mean_us,p99_us\n1000,512,64,scan:128;hash:32,40,44\n"
LATENCY = (
    "run,nf,flows,packet_size,rate_kpps,batch,order,minibatches,throughput_kpps,latency_mean_us,latency_p99_us\n"
    "0,hash,1000,512,100,64,0,0:64,100,360,700\n"
)
FILES = {"batching": BATCHING, "transfer": TRANSFER, "kernel": KERNEL, "prepost": PREPOST, "sharing": SHARING}


def _written(path: Path, **changes: str) -> Path:
    """A profile of one NF, as people write it."""
    (path / "hash").mkdir(parents=True)
    write_json(toy_description().model_dump(mode="json"), path / "testbed.json")
    for name, text in (FILES | changes).items():
        (path / "hash" / f"{name}.csv").write_text(text, encoding="utf-8")
    (path / "latency.csv").write_text(changes.get("latency", LATENCY), encoding="utf-8")
    return path


def test_a_profile_written_by_hand_is_read_and_what_it_leaves_out_has_a_meaning(tmp_path: Path) -> None:
    """No mtbr means no matches, no p99 that none was measured, no others_busy that sharers always run."""
    path = _written(tmp_path / "p")
    assert is_gpu_profile(path)
    profile = read_gpu_profile(path)
    nf = profile.nfs["hash"]
    assert nf.description.moves == "header"
    assert nf.batching.mtbr[0] == 0 and nf.transfer.p99_us.isna().all()
    assert parse_busy(str(nf.sharing.others_busy[0]), 2) == (1.0, 1.0)
    assert profile.latency.latency_p99_us[0] == 700


def test_cells_are_read_as_they_are_written() -> None:
    assert parse_minibatches(minibatches_text([(0, 128), (3, 64)])) == ((0, 128), (3, 64))
    assert parse_others(others_text([("ACL", 256), ("NIDS", 128)])) == (("ACL", 256), ("NIDS", 128))
    assert parse_busy("0.5;1", 2) == (0.5, 1.0)


@pytest.mark.parametrize("text", ["", "0", "0:0", "0:1;0:2", "a:1", "0:-1", "0:1.5"])
def test_other_minibatches_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_minibatches(text)


@pytest.mark.parametrize(
    ("file", "text", "fault"),
    [
        ("kernel", KERNEL.replace("64,30", "0,30"), "kernel.csv:2: packets: 0 is no measurement"),
        ("batching", BATCHING.replace(",315", ",-1"), "batching.csv:2: mean_us: -1 is negative"),
        ("prepost", PREPOST.replace("batch", "size"), "prepost.csv:1: batch: column is missing"),
        ("sharing", SHARING.replace("scan:128;", "scan;"), "sharing.csv:2: others: 'scan' is not NAME:PACKETS"),
        ("latency", LATENCY.replace("0:64", "x"), "latency.csv:2: minibatches: 'x' is not NAME:PACKETS"),
        ("latency", LATENCY.replace("hash", "nat"), "latency.csv:2: nf: testbed.json describes no NF nat"),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path: Path, file: str, text: str, fault: str) -> None:
    with pytest.raises(InputError) as refused:
        read_gpu_profile(_written(tmp_path / "p", **{file: text}))
    assert fault in str(refused.value)


def test_a_folder_of_an_nf_that_the_testbed_lacks_is_refused(tmp_path: Path) -> None:
    path = _written(tmp_path / "p")
    (path / "hash").rename(path / "nat")
    with pytest.raises(InputError, match=r"testbed\.json describes no NF nat"):
        read_gpu_profile(path)


def test_a_profile_of_a_nic_is_none_of_a_gpu(tmp_path: Path) -> None:
    assert not is_gpu_profile(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_gpu_profile(tmp_path)
