"""The profile directory: reading, the meaning of missing parts, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from profiles import COUNTERS, InputError, NfDescription
from profiles.profile import NfProfile, read_profile

MEMORY = ",".join(["flows", "packet_size", *COUNTERS, "throughput_kpps"])
ROW = "1000,1500,1,2,3,4,5,6,7,800"
CRYPTO = "flows,packet_size,competitor_service_ms,throughput_kpps\n1000,1500,0.002,300\n"


def written(folder: Path, files: dict[str, str]) -> Path:
    """A profile directory with these files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_memory_files_alone_make_a_profile(tmp_path: Path) -> None:
    """Several memory files are read as one, a missing mtbr means no matches, and no nf.json is needed."""
    folder = written(
        tmp_path, {"NF/memory.csv": f"{MEMORY}\n{ROW}\n", "NF/memory-more.csv": f"{MEMORY}\n{ROW}\n{ROW}\n"}
    )
    nf = read_profile(folder).nfs["NF"]
    assert len(nf.memory) == 3 and set(nf.memory["mtbr"]) == {0.0} and nf.uses == ()
    assert nf.description is None


def test_a_table_of_another_name_is_of_the_accelerator_of_that_name(tmp_path: Path) -> None:
    """crypto.csv holds runs under contention for the accelerator crypto; without a rate it is saturated."""
    nf = read_profile(written(tmp_path, {"NF/memory.csv": f"{MEMORY}\n{ROW}\n", "NF/crypto.csv": CRYPTO})).nfs["NF"]
    assert nf.uses == ("crypto",) and np.isnan(nf.accelerators["crypto"]["competitor_kpps"]).all()


def test_the_default_traffic_is_the_most_frequent_where_none_is_declared(tmp_path: Path) -> None:
    """Of two rows at 1000 flows and one at 9, the former are the default."""
    text = f"{MEMORY}\n{ROW}\n{ROW}\n{ROW.replace('1000', '9', 1)}\n"
    assert read_profile(written(tmp_path, {"NF/memory.csv": text})).default_traffic().flows == 1000


def test_a_profile_that_is_read_and_written_has_the_same_bytes(tmp_path: Path) -> None:
    """An NF with two accelerators keeps the demand on each."""
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
        ("NF/memory.csv", f"{MEMORY}\n{ROW.replace('800', 'nan')}\n",
            "NF/memory.csv:2: throughput_kpps: 'nan' is not a finite"),
        ("NF/memory.csv", f"{MEMORY}\n{ROW.replace('800', '-8')}\n",
            "NF/memory.csv:2: throughput_kpps: -8 is negative"),
        ("NF/memory.csv", f"{MEMORY}\n{ROW.replace('800', '0')}\n",
            "NF/memory.csv:2: throughput_kpps: 0 is no measurement"),
        ("NF/memory.csv", f"{MEMORY}\n{ROW},9\n", "NF/memory.csv:2: has 11 values, the header has 10"),
        ("NF/memory.csv", f"{MEMORY}\n1,fast{ROW[9:]}\n", "NF/memory.csv:2: packet_size: 'fast' is not a number"),
        ("NF/memory.csv", f"{MEMORY.replace('ipc,', '')}\n", "NF/memory.csv:1: ipc: column is missing"),
        ("NF/memory.csv", f"{MEMORY}\n1_0{ROW[4:]}\n", "NF/memory.csv:2: flows: '1_0' is not a number"),
        ("NF/memory.csv", f"{MEMORY}\n١٢{ROW[4:]}\n", "NF/memory.csv:2: flows: '١٢' is not a number"),
        ("NF/memory.csv", MEMORY.replace(",", ";") + "\n", "NF/memory.csv:1: values are separated by ';'"),
        ("NF/memory.csv", "", "NF/memory.csv: is empty"),
        # a number of cores is whole, and known to be another one than the default
        ("NF/memory.csv", f"{MEMORY},cores\n{ROW},1.5\n", "NF/memory.csv:2: cores: 1.5 is no number of cores"),
        ("NF/memory.csv", f"{MEMORY},cores\n{ROW},4\n", "NF/memory.csv:2: cores: 4: there is no nf.json"),
        ("NF/memory.csv", f"{MEMORY},cores\n{ROW},x\n", "NF/memory.csv:2: cores: 'x' is not a"),
        ("NF/nf.json", '{"name": "NF", "cores": 0}', "NF/nf.json: cores: "),
        ("testbed.json", "{", "testbed.json: "),
    ],
)  # fmt: skip
def test_an_invalid_file_is_refused_with_line_and_column(tmp_path: Path, name: str, text: str, fault: str) -> None:
    """Whichever file it is."""
    files = {"NF/memory.csv": f"{MEMORY}\n{ROW}\n", name: text}
    with pytest.raises(InputError) as refused:
        read_profile(written(tmp_path, files))
    assert f"{tmp_path}/{fault}" in str(refused.value)


def test_all_faults_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    """Text, a negative number and zero, with the right lines also after a blank one."""
    rows = "\n".join([ROW.replace("800", "x"), "", ROW.replace("800", "-8"), ROW.replace("800", "0")])
    with pytest.raises(InputError) as refused:
        read_profile(written(tmp_path, {"NF/memory.csv": f"{MEMORY}\n{rows}\n"}))
    assert [fault.line for fault in refused.value.faults] == [2, 4, 5]


def test_a_further_column_may_hold_text(tmp_path: Path) -> None:
    """Users keep notes in their tables."""
    text = f"{MEMORY},note\n{ROW},after lunch\n{ROW},\n"
    assert len(read_profile(written(tmp_path, {"NF/memory.csv": text})).nfs["NF"].memory) == 2


def test_a_table_of_an_accelerator_that_the_nf_does_not_use_is_refused(tmp_path: Path) -> None:
    """It would be ignored silently."""
    files = {"NF/memory.csv": f"{MEMORY}\n{ROW}\n", "NF/crypto.csv": CRYPTO, "NF/nf.json": '{"name": "NF", "cores": 2}'}
    with pytest.raises(InputError, match="names no accelerator crypto"):
        read_profile(written(tmp_path, files))


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    """It is an input error."""
    written(tmp_path, {"NF/solo.csv": ""})
    (tmp_path / "NF" / "memory.csv").write_bytes(b"flows\xff")
    with pytest.raises(InputError, match=r"memory\.csv:1: is not UTF-8 text"):
        read_profile(tmp_path)


def test_a_folder_without_nfs_is_no_profile(tmp_path: Path) -> None:
    """Neither an empty folder nor a missing one is a profile."""
    with pytest.raises(InputError, match="contains no NF"):
        read_profile(tmp_path)
    with pytest.raises(InputError, match="is not a profile directory"):
        read_profile(tmp_path / "nowhere")


SEVERAL_CORES = {
    "NF/nf.json": '{"name": "NF", "cores": 2, "core_counts": [1, 2, 4]}',
    "NF/memory.csv": f"{MEMORY},cores\n{ROW},\n{ROW},2\n{ROW},4\n",
    "NF/solo.csv": f"{MEMORY},cores\n{ROW},2\n{ROW},1\n",
    "NF/co-locations.csv": "run,nf,flows,packet_size,mtbr,throughput_kpps,rate_kpps,cores\n"
    + "0,NF,1000,1500,0,800,,\n0,NF,1000,1500,0,700,,2\n1,NF,1000,1500,0,800,,\n1,NF,1000,1500,0,400,,1\n"
    + "2,NF,1000,1500,0,300,300,\n",
}


def test_the_tables_of_an_nf_are_of_its_default_number_of_cores(tmp_path: Path) -> None:
    """Rows of other numbers are read apart, and so are all rows of a run in which an NF has a rate or such a number."""
    nf = read_profile(written(tmp_path, SEVERAL_CORES)).nfs["NF"]
    assert (len(nf.memory), len(nf.solo), len(nf.on_cores(4).memory), len(nf.on_cores(4).solo)) == (2, 1, 1, 0)
    assert nf.on_cores(1).description == NfDescription(name="NF", cores=1, core_counts=(1, 2, 4))
    assert nf.on_cores(2) is nf and not len(nf.on_cores(8).memory)
    assert not {"cores", "rate_kpps"} & {*nf.memory, *nf.on_cores(4).memory, *nf.co_locations}
    assert list(nf.co_locations["run"]) == ["0", "0"]
    assert nf.loads[["run", "rate_kpps", "cores"]].values.tolist() == [
        ["1", np.inf, 0],
        ["1", np.inf, 1],
        ["2", 300, 0],
    ]


def test_tables_of_several_numbers_of_cores_are_read_as_they_are_written(tmp_path: Path) -> None:
    first, second = (tmp_path / name / "NF" for name in ("first", "second"))
    nf = read_profile(written(tmp_path / "given", SEVERAL_CORES)).nfs["NF"]
    nf.write(first)
    again = read_profile(first.parent).nfs["NF"]
    again.write(second)
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()
    pd.testing.assert_frame_equal(again.loads, nf.loads, check_dtype=False)
    assert (first / "co-locations.csv").read_text().splitlines()[1] == "0,NF,1000,1500,0,800,,"
    assert (first / "memory.csv").read_text().splitlines()[-1].endswith("800,0,4")


@pytest.mark.parametrize("names", [["co-locations.csv"], ["companies.csv"], ["co-locations.csv", "companies.csv"]])
def test_co_locations_are_read_under_their_present_and_their_former_name(tmp_path: Path, names: list[str]) -> None:
    """Where both exist, the present name counts."""
    header, row = "run,nf,flows,packet_size,mtbr,throughput_kpps", "NF,1000,1500,0,800"
    runs = {"co-locations.csv": "new", "companies.csv": "old"}
    files = {f"NF/{name}": f"{header}\n{runs[name]},{row}\n" for name in names}
    nf = read_profile(written(tmp_path, {"NF/memory.csv": f"{MEMORY}\n{ROW}\n", **files})).nfs["NF"]
    assert list(nf.co_locations["run"]) == [runs[names[0]]] and nf.uses == ()
