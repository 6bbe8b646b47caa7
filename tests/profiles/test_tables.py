"""Tables of a profile: rows are found again, replaced at their place, and refused where they are no measurements."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from profiles import ChainLoad, InputError, TrafficProfile, gpu_tables
from profiles.best_effort import BEST_EFFORT, best_effort_summary, read_best_effort
from profiles.chain_table import KEY_COLUMNS, key_of, read_chains, with_rows
from profiles.cycles import CyclesOfRules, MeasuredCycles, NfCycles, write_cycles
from profiles.latency_table import competitors_text, read_latencies
from profiles.profile import read_profile, write_json
from profiles.table import write_table
from tests.profiler.gpu.toy_gpu import toy_description
from tests.profiler.toy_server import server_description
from tests.profiler.toy_testbed import description

TRAFFIC = TrafficProfile(10, 64, 0)
HEADER = "order,cores,shares,flows,packet_size,mtbr,rate_kpps,repeat,throughput_kpps\n"


def row(names: str, kpps: float, repeat: int = 0) -> dict[str, object]:
    chain = ChainLoad.of(names.split(","), [[at] for at in range(names.count(",") + 1)], TRAFFIC)
    stages = {f"stage{at}_kpps": kpps for at in range(len(chain.stages))}
    return {**key_of(chain, repeat), "throughput_kpps": kpps, **stages}


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Shorter chains have empty columns for further stages; those that few testbeds measure are there if a run has
    them."""
    assert "latency_p95_us" not in with_rows(None, [row("c", 7.5)])
    table = with_rows(None, [row("a,b", 5.5), row("c", 7.5, repeat=1) | {"latency_p95_us": 3.0}])
    assert table.columns[-1] == "latency_p95_us" and "stage0_cpu_pct" not in table
    write_table(table, tmp_path / "chains.csv")
    read = read_chains(tmp_path / "chains.csv")
    assert list(read.columns) == list(table.columns)
    assert read[KEY_COLUMNS].to_dict("records") == table[KEY_COLUMNS].to_dict("records")
    assert read.stage1_kpps.isna().tolist() == [False, True]
    write_table(with_rows(read, []), tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "chains.csv").read_bytes()


def test_a_row_of_the_same_run_is_replaced_at_its_place() -> None:
    """Another repeat, order or traffic is another row; columns that users added stay."""
    first = with_rows(None, [row("a,b", 1), row("c", 2)]).assign(note="mine")
    merged = with_rows(first, [row("c", 4), row("a,b", 3), row("a,b", 5, repeat=1), row("b,a", 6)])
    assert merged.throughput_kpps.tolist() == [3, 4, 5, 6] and merged.columns[-1] == "note"


EFFORT_HEADER = "run,purpose,kind,name,settings,throughput_kpps,standard_error_pct,disturbed_pct\n"
ROWS = (
    "0,FlowStats,nf,FlowStats,flows=16,9000,2.5,80\n"
    "0,FlowStats,bench,mem-bench,wss_mb=1,100,7,80\n"
    "1,benches,bench,mem-bench,wss_mb=1,100,3,\n"
)


def test_a_profile_without_the_file_has_no_best_efforts(tmp_path: Path) -> None:
    """Its table is empty."""
    assert len(read_best_effort(tmp_path)) == 0


def test_the_largest_error_of_each_run_counts(tmp_path: Path) -> None:
    """7 % of the first and 3 % of the second have the median 5 %."""
    (tmp_path / BEST_EFFORT).write_text(EFFORT_HEADER + ROWS)
    assert best_effort_summary(read_best_effort(tmp_path), 10) == (
        "best-effort runs, disturbed by other work: 2 of 10; standard error 5.0 % in the median, 7.0 % at most "
        "(best-effort.csv)"
    )


def test_unknown_errors_are_not_counted(tmp_path: Path) -> None:
    """Where no error is known, that is said."""
    (tmp_path / BEST_EFFORT).write_text(EFFORT_HEADER + "0,x,nf,x,,9000,,\n")
    assert best_effort_summary(read_best_effort(tmp_path)) == (
        "best-effort runs, disturbed by other work: 1, with unknown errors (best-effort.csv)"
    )


ROW = "1000,64,2000,1000,30\n"
LATENCY_HEADER = "flows,packet_size,capacity_kpps,rate_kpps,p99_us\n"


def test_what_is_left_out_has_a_meaning(tmp_path: Path) -> None:
    """Without competitors the NF was alone, once, without matches; other latencies are not known."""
    (tmp_path / "latency.csv").write_text(LATENCY_HEADER + ROW)
    table, faults = read_latencies(tmp_path / "latency.csv")
    (row,) = table.to_dict("records")
    assert not faults and (row["competitors"], row["mtbr"], row["repeats"]) == ("", 0, 1)
    assert row["mean_us"] != row["mean_us"] and competitors_text(["NAT", "Dedup", "NAT"]) == "Dedup;NAT;NAT"


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


def _written(path: Path) -> Path:
    """A profile of one NF, as people write it."""
    (path / "hash").mkdir(parents=True, exist_ok=True)
    write_json(toy_description().model_dump(mode="json"), path / "testbed.json")
    for name, text in FILES.items():
        (path / "hash" / f"{name}.csv").write_text(text, encoding="utf-8")
    (path / "latency.csv").write_text(LATENCY, encoding="utf-8")
    return path


def test_a_profile_written_by_hand_is_read_and_what_it_leaves_out_has_a_meaning(tmp_path: Path) -> None:
    """No mtbr means no matches, no p99 that none was measured, no others_busy that sharers always run."""
    path = _written(tmp_path / "p")
    assert gpu_tables.is_gpu_profile(path)
    profile = gpu_tables.read_gpu_profile(path)
    nf = profile.nfs["hash"]
    assert nf.description.moves == "header"
    assert nf.batching.mtbr[0] == 0 and nf.transfer.p99_us.isna().all()
    assert gpu_tables.parse_busy(str(nf.sharing.others_busy[0]), 2) == (1.0, 1.0)
    assert profile.latency.latency_p99_us[0] == 700


def test_cells_are_read_as_they_are_written() -> None:
    assert gpu_tables.parse_minibatches(gpu_tables.minibatches_text([(0, 128), (3, 64)])) == ((0, 128), (3, 64))
    assert gpu_tables.parse_others(gpu_tables.others_text([("ACL", 256), ("NIDS", 128)])) == (
        ("ACL", 256),
        ("NIDS", 128),
    )
    assert gpu_tables.parse_busy("0.5;1", 2) == (0.5, 1.0)


@pytest.mark.parametrize("text", ["", "0", "0:0", "0:1;0:2", "a:1", "0:-1", "0:1.5"])
def test_other_minibatches_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        gpu_tables.parse_minibatches(text)


def _read_gpu(folder: Path) -> object:
    """A profile of a GPU in which one file is another one."""
    given = {path.relative_to(folder): path.read_text() for path in folder.rglob("*.csv")}
    _written(folder)
    for path, text in given.items():
        (folder / path).write_text(text)
    return gpu_tables.read_gpu_profile(folder)


def _read_chains(folder: Path) -> object:
    return read_chains(folder / "chains.csv")


NOT_ONCE = "does not have each stage once"


@pytest.mark.parametrize(
    ("read", "file", "text", "fault"),
    [
        *((_read_chains, "chains.csv", HEADER + row + "\n", f"2: {fault}") for row, fault in (
            ("a,[[0]],[1],10,64,0,0,0,0", "throughput_kpps: 0 is no measurement"),
            ("a,[[1]],[1],10,64,0,0,0,1", f"cores: '[[1]]' {NOT_ONCE}"),
            ("a,[0],[1],10,64,0,0,0,1", f"cores: '[0]' {NOT_ONCE}"),
            ("a,x,[1],10,64,0,0,0,1", f"cores: 'x' {NOT_ONCE}"),
            ("a:b,[[0]],[1],10,64,0,0,0,1", "order: 'b' is not of the form NAME=NUMBER"),
            ("a,[[0]],1,10,64,0,0,0,1", "shares: '1' is not a list of shares"),
            ("a,[[0]],[1],10,64,0,0,,1", "repeat: is empty"),
          )),
        (read_best_effort, BEST_EFFORT, EFFORT_HEADER + "0,x,nf,x,y,fast,,\n",
         "2: throughput_kpps: 'fast' is not a number"),
        # as part of the profile, which is refused whole
        *((read_profile, "nat/latency.csv", text, fault) for text, fault in (
            (LATENCY_HEADER + "1000,64,2000,2000,30\n", "2: rate_kpps: is not below capacity_kpps"),
            (LATENCY_HEADER + "1000,64,2000,0,30\n", "2: rate_kpps: 0 is no measurement"),
            (LATENCY_HEADER + "1000,64,2000,1000,x\n", "2: p99_us: 'x' is not a number"),
            ("mean_us," + LATENCY_HEADER + "40," + ROW, "2: mean_us: is above p99_us"),
            ("flows,packet_size,rate_kpps,p99_us\n", "1: capacity_kpps: column is missing"),
          )),
        *((_read_gpu, file, text, fault) for file, text, fault in (
            ("hash/kernel.csv", KERNEL.replace("64,30", "0,30"), "2: packets: 0 is no measurement"),
            ("hash/batching.csv", BATCHING.replace(",315", ",-1"), "2: mean_us: -1 is negative"),
            ("hash/prepost.csv", PREPOST.replace("batch", "size"), "1: batch: column is missing"),
            ("hash/sharing.csv", SHARING.replace("scan:128;", "scan;"), "2: others: 'scan' is not NAME:PACKETS"),
            ("latency.csv", LATENCY.replace("0:64", "x"), "2: minibatches: 'x' is not NAME:PACKETS"),
            ("latency.csv", LATENCY.replace("hash", "nat"), "2: nf: testbed.json describes no NF nat"),
          )),
        (_read_gpu, "nat/kernel.csv", KERNEL, ""),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_place(
    tmp_path: Path, read: Callable[[Path], object], file: str, text: str, fault: str
) -> None:
    """File, line and column; so is a folder of an NF that the testbed lacks."""
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    with pytest.raises(InputError) as refused:
        read(tmp_path)
    assert (f"{file}:{fault}" if fault else "testbed.json describes no NF nat") in str(refused.value)


def test_a_profile_of_a_nic_is_none_of_a_gpu(tmp_path: Path) -> None:
    assert not gpu_tables.is_gpu_profile(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        gpu_tables.read_gpu_profile(tmp_path)


NF = NfCycles(985.12345678, 980, 990, 12, TrafficProfile(1, 1500), 980, True, CyclesOfRules(200, 3.77, 0.4))


def written(path: Path, nfs: dict[str, NfCycles], **changes: object) -> dict[str, object]:
    described = server_description(**changes)
    write_cycles(MeasuredCycles(1700, 86.4, nfs), described, path, path)
    loaded: dict[str, object] = json.loads(path.read_text())
    return loaded


def test_the_file_has_what_a_rack_names(tmp_path: Path) -> None:
    """Per NF and device the cycles and whether it is replicable; the clock, and whether it is simulated."""
    file = written(tmp_path / "cycles.json", {"ACL": NF})
    assert {name: file[name] for name in ("testbed", "simulated", "clock_mhz", "source_cycles")} == {
        "testbed": "toy-server", "simulated": True, "clock_mhz": 1700, "source_cycles": 86.4
    }  # fmt: skip
    assert file["nfs"] == {
        "ACL": {
            "server": {
                "cycles": 985.123, "replicable": True, "rules": 200, "cycles_per_rule": 3.77, "rules_error_pct": 0.4,
                "cycles_low": 980, "cycles_high": 990, "repeats": 12,
                "traffic": {"flows": 1, "packet_size": 1500, "mtbr": 0}, "cycles_default_traffic": 980,
            }
        }
    }  # fmt: skip


def test_nfs_of_the_same_testbed_stay_and_others_go(tmp_path: Path) -> None:
    """A file that cannot be read is replaced."""
    path = tmp_path / "cycles.json"
    path.write_text("not JSON")
    written(path, {"ACL": NF})
    assert sorted(written(path, {"NAT": NF})["nfs"]) == ["ACL", "NAT"]  # type: ignore[call-overload]
    assert sorted(written(path, {"LB": NF}, name="other")["nfs"]) == ["LB"]  # type: ignore[call-overload]


def test_the_device_is_the_kind_of_the_nic(tmp_path: Path) -> None:
    """A server where the testbed does not describe it."""
    nic = {"model": "m", "cores": 4, "kind": "smartnic"}
    assert list(written(tmp_path / "a", {"ACL": NF}, nic=nic)["nfs"]["ACL"]) == ["smartnic"]  # type: ignore[index]
    write_cycles(MeasuredCycles(1, 1, {"ACL": NF}), description(), tmp_path / "b", tmp_path / "b")
    assert list(json.loads((tmp_path / "b").read_text())["nfs"]["ACL"]) == ["server"]
