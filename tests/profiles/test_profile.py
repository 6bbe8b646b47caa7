"""The profile directory: what is read, what missing parts mean, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from profiles import COUNTERS, InputError, NfDescription
from profiles.profile import NfProfile, read_profile

MEMORY = ",".join(["flows", "packet_size", *COUNTERS, "throughput_kpps"])
ROW = "1000,1500,1,2,3,4,5,6,7,800"


def written(folder: Path, files: dict[str, str]) -> Path:
    """A profile directory with these files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_memory_files_alone_make_a_profile(tmp_path: Path) -> None:
    """Several memory files are read as one, a missing mtbr is none, and whose files they are nobody has to say."""
    folder = written(
        tmp_path, {"NF/memory.csv": f"{MEMORY}\n{ROW}\n", "NF/memory-more.csv": f"{MEMORY}\n{ROW}\n{ROW}\n"}
    )
    nf = read_profile(folder).nfs["NF"]
    assert len(nf.memory) == 3
    assert set(nf.memory["mtbr"]) == {0.0}
    assert nf.uses == ()
    assert nf.description is None


def test_any_other_table_is_of_an_accelerator(tmp_path: Path) -> None:
    """crypto.csv is measured beside the accelerator crypto; without a rate its competitor saturates."""
    crypto = "flows,packet_size,competitor_service_ms,throughput_kpps\n1000,1500,0.002,300\n"
    nf = read_profile(written(tmp_path, {"NF/memory.csv": f"{MEMORY}\n{ROW}\n", "NF/crypto.csv": crypto})).nfs["NF"]
    assert nf.uses == ("crypto",)
    assert np.isnan(nf.accelerators["crypto"]["competitor_kpps"]).all()


def test_the_default_traffic_is_the_most_frequent_where_nobody_declares_it(tmp_path: Path) -> None:
    """Of two rows at 1000 flows and one at 9, the former are the default."""
    text = f"{MEMORY}\n{ROW}\n{ROW}\n{ROW.replace('1000', '9', 1)}\n"
    assert read_profile(written(tmp_path, {"NF/memory.csv": text})).default_traffic().flows == 1000


def test_what_is_written_is_read_back_and_is_the_same_bytes(tmp_path: Path) -> None:
    """An NF with two accelerators keeps whose demand is whose; writing what was read changes no byte."""
    columns = ["flows", "packet_size", "mtbr", *COUNTERS, "throughput_kpps"]
    memory = pd.DataFrame([np.arange(1.0, 12.0)], columns=columns)
    pattern = memory.assign(aes_service_ms=0.1, lookup_service_ms=0.2, aes_kpps=np.nan, lookup_kpps=5.0)
    nf = NfProfile("NF", NfDescription(name="NF", cores=3, accelerators=("aes", "lookup")), memory, memory, {}, pattern)
    nf.write(tmp_path / "one" / "NF")
    header = (tmp_path / "one" / "NF" / "pattern.csv").read_text().splitlines()[0].split(",")
    assert {"competitor_service_ms", "competitor_kpps", "lookup_service_ms", "lookup_kpps"} <= set(header)
    again = read_profile(tmp_path / "one").nfs["NF"]
    assert (again.pattern[["aes_service_ms", "lookup_service_ms", "lookup_kpps"]].to_numpy() == [0.1, 0.2, 5.0]).all()
    again.write(tmp_path / "two" / "NF")
    for path in (tmp_path / "one" / "NF").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / "NF" / path.name).read_bytes()


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        (
            "NF/memory.csv",
            f"{MEMORY}\n{ROW.replace('800', 'nan')}\n",
            "NF/memory.csv:2: throughput_kpps: nan is not a finite",
        ),
        (
            "NF/memory.csv",
            f"{MEMORY}\n{ROW.replace('800', '-8')}\n",
            "NF/memory.csv:2: throughput_kpps: -8 is negative",
        ),
        (
            "NF/memory.csv",
            f"{MEMORY}\n{ROW.replace('800', '0')}\n",
            "NF/memory.csv:2: throughput_kpps: 0 is not a value",
        ),
        ("NF/memory.csv", f"{MEMORY}\n{ROW},9\n", "NF/memory.csv:2: has 11 values, the header 10"),
        ("NF/memory.csv", f"{MEMORY}\n1,fast{ROW[9:]}\n", "NF/memory.csv:2: packet_size: 'fast' is not a number"),
        ("NF/memory.csv", f"{MEMORY.replace('ipc,', '')}\n", "NF/memory.csv:1: ipc: column is missing"),
        ("NF/memory.csv", "", "NF/memory.csv: is empty"),
        ("NF/nf.json", '{"name": "NF", "cores": 0}', "NF/nf.json: cores: "),
        ("testbed.json", "{", "testbed.json: "),
    ],
)
def test_broken_files_are_refused_with_their_place(tmp_path: Path, name: str, text: str, fault: str) -> None:
    """Whatever file is broken, the fault names file, line and column."""
    files = {"NF/memory.csv": f"{MEMORY}\n{ROW}\n", name: text}
    with pytest.raises(InputError) as refused:
        read_profile(written(tmp_path, files))
    assert f"{tmp_path}/{fault}" in str(refused.value)


def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    """Not a number, negative and zero come together, with their lines also after a blank one."""
    rows = "\n".join([ROW.replace("800", "x"), "", ROW.replace("800", "-8"), ROW.replace("800", "0")])
    with pytest.raises(InputError) as refused:
        read_profile(written(tmp_path, {"NF/memory.csv": f"{MEMORY}\n{rows}\n"}))
    assert [fault.line for fault in refused.value.faults] == [2, 4, 5]


def test_notes_beside_the_numbers_do_no_harm(tmp_path: Path) -> None:
    """A column that nobody asked for may hold text."""
    text = f"{MEMORY},note\n{ROW},after lunch\n{ROW},\n"
    assert len(read_profile(written(tmp_path, {"NF/memory.csv": text})).nfs["NF"].memory) == 2


def test_measurements_of_an_accelerator_that_nobody_uses_are_refused(tmp_path: Path) -> None:
    """A table for an accelerator that nf.json does not name would be ignored silently."""
    crypto = "flows,packet_size,competitor_service_ms,throughput_kpps\n1000,1500,0.002,300\n"
    files = {"NF/memory.csv": f"{MEMORY}\n{ROW}\n", "NF/crypto.csv": crypto, "NF/nf.json": '{"name": "NF", "cores": 2}'}
    with pytest.raises(InputError, match="names no accelerator crypto"):
        read_profile(written(tmp_path, files))


def test_what_is_not_text_is_a_fault(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are refused, not a crash."""
    written(tmp_path, {"NF/solo.csv": ""})
    (tmp_path / "NF" / "memory.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read as CSV"):
        read_profile(tmp_path)


def test_a_folder_without_nfs_is_no_profile(tmp_path: Path) -> None:
    """Neither an empty folder nor a missing one is a profile."""
    with pytest.raises(InputError, match="holds no NF"):
        read_profile(tmp_path)
    with pytest.raises(InputError, match="is not a profile directory"):
        read_profile(tmp_path / "nowhere")
