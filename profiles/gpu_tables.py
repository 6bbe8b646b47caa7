"""The files of a GPU server's profile (docs/formats/profile.md): the time of each stage of an NF, and co-locations.
Users may write them from their own measurements. A p99 that was not measured is empty."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from profiles.description import NfDescription, TestbedDescription
from profiles.faults import Fault, InputError
from profiles.files.json import read_model
from profiles.table import read_table, write_table
from profiles.traffic import ATTRIBUTES

GPU_KIND = "gpu"  # the `nic.kind` of a GPU server
MEAN_COLUMN, P99_COLUMN = "mean_us", "p99_us"
RETURN_MEAN, RETURN_P99 = "return_mean_us", "return_p99_us"
RATE_COLUMN, BATCH_COLUMN, PACKETS_COLUMN, OTHERS_COLUMN, BUSY_COLUMN = (
    "rate_kpps",
    "batch",
    "packets",
    "others",
    "others_busy",
)
REPEATS_COLUMN, SPREAD_COLUMN = "repeats", "spread_us"
"""How often a row was measured, and by how much the means differ (largest less smallest)."""
TRAFFIC_COLUMNS = list(ATTRIBUTES)
LATENCY_FILE = "latency.csv"
RUN_COLUMN, NF_COLUMN, ORDER_COLUMN, MINIBATCHES_COLUMN, KPPS_COLUMN = (
    "run",
    "nf",
    "order",
    "minibatches",
    "throughput_kpps",
)
LATENCY_MEAN, LATENCY_P50, LATENCY_P99 = "latency_mean_us", "latency_p50_us", "latency_p99_us"
STAGE_NAMES = ("batching", "pre_post", "transfer_wait", "transfer", "kernel_wait", "kernel", "return")
STAGE_COLUMNS = [f"{stage}_us" for stage in STAGE_NAMES]
WORKLOAD_COLUMNS = [NF_COLUMN, *TRAFFIC_COLUMNS, RATE_COLUMN, BATCH_COLUMN, ORDER_COLUMN, MINIBATCHES_COLUMN]
LATENCY_COLUMNS = [
    RUN_COLUMN, *WORKLOAD_COLUMNS, KPPS_COLUMN, LATENCY_MEAN, LATENCY_P50, LATENCY_P99, *STAGE_COLUMNS, REPEATS_COLUMN,
]  # fmt: skip
KEYS_OF_FILE = {
    "batching": [RATE_COLUMN, BATCH_COLUMN],
    "transfer": [BATCH_COLUMN],
    "kernel": [PACKETS_COLUMN],
    "sharing": [PACKETS_COLUMN, OTHERS_COLUMN],
    "prepost": [BATCH_COLUMN],
}
"""The columns of each file of an NF that say what was measured, after those of traffic."""
TIMES_OF_FILE = {name: [MEAN_COLUMN, P99_COLUMN] for name in KEYS_OF_FILE} | {
    "transfer": [MEAN_COLUMN, P99_COLUMN, RETURN_MEAN, RETURN_P99]
}
_POSITIVE_COLUMNS = ["flows", "packet_size", RATE_COLUMN, BATCH_COLUMN, PACKETS_COLUMN]

Minibatches = tuple[tuple[int, int], ...]  # SM and packets of each


@dataclass(frozen=True)
class GpuNfProfile:
    """The tables of one NF, each with the traffic columns, its `KEYS_OF_FILE` and `TIMES_OF_FILE`, `repeats` " "and
    `spread_us`. `sharing` also has `others_busy`: per sharer, the share of the time during which its kernel ran; empty
    cells mean always. A table that was not measured is empty."""

    name: str
    description: NfDescription
    batching: pd.DataFrame
    transfer: pd.DataFrame
    kernel: pd.DataFrame
    sharing: pd.DataFrame
    prepost: pd.DataFrame

    def write_files(self, folder: Path) -> None:
        """Write each table into `folder`, which is made where it does not exist."""
        for name in KEYS_OF_FILE:
            write_table(getattr(self, name), folder / f"{name}.csv")


@dataclass(frozen=True)
class GpuProfile:
    """A profile directory of a GPU server, read whole."""

    source: Path  # where it was read from
    testbed: TestbedDescription  # the `describe` answer
    nfs: dict[str, GpuNfProfile]  # by name, sorted
    latency: pd.DataFrame
    """Runs with the latency of every NF from end to end, alone and in co-locations: `LATENCY_COLUMNS`."""


def is_gpu_profile(directory: Path) -> bool:
    """Whether the profile in `directory` is one of a GPU server."""
    try:
        testbed = TestbedDescription.model_validate_json((directory / "testbed.json").read_bytes())
    except (OSError, ValueError):
        return False
    return testbed.nic.kind == GPU_KIND


def read_gpu_profile(directory: Path) -> GpuProfile:
    """The profile of a GPU server in `directory`. Raises `InputError` with every fault of every file."""
    path = directory / "testbed.json"
    faults: list[Fault] = []
    testbed = read_model(path, TestbedDescription, faults)
    if testbed is None:
        raise InputError(faults)
    if testbed.nic.kind != GPU_KIND:
        raise InputError.of(str(path), f"kind {testbed.nic.kind} is not {GPU_KIND}", column="nic.kind")
    folders = sorted(path for path in directory.glob("[!.]*") if path.is_dir() and (path / "kernel.csv").exists())
    known = {nf.name: nf for nf in testbed.nfs}
    faults += [
        Fault(str(folder), None, None, f"testbed.json describes no NF {folder.name}")
        for folder in folders
        if folder.name not in known
    ]
    nfs = {folder.name: _read_nf(folder, known[folder.name], faults) for folder in folders if folder.name in known}
    latency = _read_latency(directory / LATENCY_FILE, known, faults)
    if not nfs and not faults:
        faults.append(Fault(str(directory), None, None, "contains no NF: no folder with kernel.csv in it"))
    if faults:
        raise InputError(faults)
    return GpuProfile(directory, testbed, nfs, latency)


def minibatches_text(minibatches: Iterable[tuple[int, int]]) -> str:
    """Minibatches as a cell has them: `0:128;1:64` are 128 packets on SM 0 and 64 on SM 1."""
    return ";".join(f"{sm}:{packets}" for sm, packets in minibatches)


def parse_minibatches(text: str) -> Minibatches:
    """The minibatches that `minibatches_text` wrote; ValueError for any other text."""
    pairs = tuple(_pair(part) for part in text.split(";"))
    found = tuple((_whole(sm, 0), packets) for sm, packets in pairs)
    if len({sm for sm, _ in found}) < len(found):
        raise ValueError(f"'{text}' names an SM twice")
    return found


def others_text(others: Iterable[tuple[str, int]]) -> str:
    """Sharers as a cell has them: `ACL:256;NIDS:128`, packets of each one's minibatch."""
    return ";".join(f"{nf}:{packets}" for nf, packets in others)


def parse_others(text: str) -> tuple[tuple[str, int], ...]:
    """The sharers that `others_text` wrote; ValueError for any other text."""
    return tuple(_pair(part) for part in text.split(";"))


def parse_busy(text: str, sharers: int) -> tuple[float, ...]:
    """The share of the time during which each sharer's kernel ran, 1 where the cell is empty; ValueError if wrong."""
    if not text:
        return (1.0,) * sharers
    found = tuple(float(part) for part in text.split(";"))
    if len(found) != sharers or not all(0 < share <= 1 for share in found):
        raise ValueError(f"'{text}' does not have {sharers} shares above 0 and at most 1")
    return found


def _pair(part: str) -> tuple[str, int]:
    name, _, packets = part.strip().rpartition(":")
    if not name:
        raise ValueError(f"'{part}' is not NAME:PACKETS")
    return name, _whole(packets, 1)


def _whole(text: str, least: int) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) >= least):
        raise ValueError(f"'{text}' is not a whole number of at least {least}")
    return int(text)


def _read_nf(folder: Path, description: NfDescription, faults: list[Fault]) -> GpuNfProfile:
    tables = {name: _table(folder / f"{name}.csv", name, faults) for name in KEYS_OF_FILE}
    return GpuNfProfile(name=folder.name, description=description, **tables)


def _table(path: Path, name: str, faults: list[Fault]) -> pd.DataFrame:
    p99s = {column: np.nan for column in TIMES_OF_FILE[name] if "p99" in column}
    required = [
        "flows",
        "packet_size",
        *KEYS_OF_FILE[name],
        *(column for column in TIMES_OF_FILE[name] if column not in p99s),
    ]
    if name == "sharing" and not path.exists():
        return pd.DataFrame(
            {
                column: pd.Series(dtype=np.float64)
                for column in [*TRAFFIC_COLUMNS, *required[2:], P99_COLUMN, BUSY_COLUMN]
            }
        )
    text = [OTHERS_COLUMN, BUSY_COLUMN] if name == "sharing" else []
    positive = [column for column in _POSITIVE_COLUMNS if column in required]
    defaults = {"mtbr": 0.0, REPEATS_COLUMN: 1.0, SPREAD_COLUMN: np.nan, **p99s}
    table, wrong = read_table(path, required, defaults, text=text, positive=positive)
    faults += wrong
    if name == "sharing" and not wrong:
        if BUSY_COLUMN not in table:
            table[BUSY_COLUMN] = ""
        faults += _wrong_cells(table, path, OTHERS_COLUMN, lambda row: parse_others(str(row[OTHERS_COLUMN])))
        faults += _wrong_cells(
            table,
            path,
            BUSY_COLUMN,
            lambda row: parse_busy(str(row[BUSY_COLUMN]), str(row[OTHERS_COLUMN]).count(";") + 1),
        )
    return table


def _read_latency(path: Path, known: Mapping[str, NfDescription], faults: list[Fault]) -> pd.DataFrame:
    if not path.exists():
        return pd.DataFrame({column: pd.Series(dtype=np.float64) for column in LATENCY_COLUMNS})
    required = [
        RUN_COLUMN, NF_COLUMN, "flows", "packet_size", RATE_COLUMN, BATCH_COLUMN, ORDER_COLUMN, MINIBATCHES_COLUMN,
        KPPS_COLUMN, LATENCY_MEAN, LATENCY_P99,
    ]  # fmt: skip
    defaults = {"mtbr": 0.0, LATENCY_P50: np.nan, REPEATS_COLUMN: 1.0, **dict.fromkeys(STAGE_COLUMNS, np.nan)}
    table, wrong = read_table(
        path,
        required,
        defaults,
        text=[RUN_COLUMN, NF_COLUMN, MINIBATCHES_COLUMN],
        positive=["flows", "packet_size", RATE_COLUMN, BATCH_COLUMN, KPPS_COLUMN],
    )
    faults += wrong
    if not wrong:
        faults += _wrong_cells(
            table, path, MINIBATCHES_COLUMN, lambda row: parse_minibatches(str(row[MINIBATCHES_COLUMN]))
        )
        faults += _wrong_cells(table, path, NF_COLUMN, lambda row: _check_known(str(row[NF_COLUMN]), known))
    return table


def _check_known(name: str, known: Mapping[str, NfDescription]) -> None:
    if name not in known:
        raise ValueError(f"testbed.json describes no NF {name}")


def _wrong_cells(
    table: pd.DataFrame, path: Path, column: str, parse: Callable[[Mapping[Hashable, object]], object]
) -> list[Fault]:
    """A fault for each row that `parse` refuses."""
    faults, lines = [], table.attrs.get("lines", range(2, len(table) + 2))
    for line, row in zip(lines, table.to_dict("records"), strict=True):
        try:
            parse(row)
        except ValueError as error:
            faults.append(Fault(str(path), line, column, str(error)))
    return faults
