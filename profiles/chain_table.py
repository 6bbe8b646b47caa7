"""`chains.csv` of a profile directory (docs/formats/profile.md): what was measured of chains of NFs."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from profiles.chain import ChainLoad, parse_chain, stages_text
from profiles.faults import Fault, InputError
from profiles.table import SIGNIFICANT_DIGITS, read_table
from profiles.traffic import ATTRIBUTES

CHAINS_FILE = "chains.csv"
ORDER_COLUMN, CORES_COLUMN, SHARES_COLUMN, RATE_COLUMN, REPEAT_COLUMN, CHAIN_KPPS = (
    "order", "cores", "shares", "rate_kpps", "repeat", "throughput_kpps",
)  # fmt: skip
KEY_COLUMNS = [ORDER_COLUMN, CORES_COLUMN, SHARES_COLUMN, *ATTRIBUTES, RATE_COLUMN, REPEAT_COLUMN]
"""The columns that identify a row: what ran, and which of its repeats."""
LATENCY_COLUMNS = [f"latency_{name}_us" for name in ("mean", "p50", "p99", "max", "p95")]


def leaving_column(stage: int) -> str:
    """The packets that leave a stage, kpps."""
    return f"stage{stage}_kpps"


def drop_column_of(stage: int) -> str:
    """What a stage drops of the packets that enter it, %."""
    return f"stage{stage}_dropped_pct"


def cpu_column_of(stage: int) -> str:
    """What the stages of a stage's core use of a whole core, %."""
    return f"stage{stage}_cpu_pct"


def key_of(load: ChainLoad, repeat: int) -> dict[str, object]:
    """The columns of `KEY_COLUMNS` for one run of a chain."""
    return {
        ORDER_COLUMN: stages_text(load.stages),
        CORES_COLUMN: json.dumps(load.cores),
        SHARES_COLUMN: json.dumps(
            [float(SIGNIFICANT_DIGITS % share) for share in load.shares or (1.0,) * len(load.cores)]
        ),
        **load.traffic.as_dict(),
        RATE_COLUMN: load.rate_kpps,
        REPEAT_COLUMN: repeat,
    }


def read_chains(path: Path) -> pd.DataFrame:
    """The table of chains in `path`, a row per run. Raises `InputError` with every fault."""
    text = [ORDER_COLUMN, CORES_COLUMN, SHARES_COLUMN]
    table, faults = read_table(
        path, [*KEY_COLUMNS, CHAIN_KPPS], text=text, positive=["flows", "packet_size", CHAIN_KPPS]
    )
    for line, row in zip(table.attrs.get("lines", ()), _rows(table), strict=False):
        faults += [Fault(str(path), line, column, message) for column, message in _wrong(row)]
    if faults:
        raise InputError(faults)
    return table.astype({REPEAT_COLUMN: int})


def with_rows(known: pd.DataFrame | None, rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """The table with these rows; a row of a run that is already there replaces it, at its place."""
    merged = {} if known is None else {_key(row): row for row in _rows(known)}
    merged |= {_key(row): row for row in rows}
    stages = max((len(_indices(row)) for row in merged.values()), default=0)
    of_stage = (leaving_column, drop_column_of, cpu_column_of)
    columns = [*KEY_COLUMNS, CHAIN_KPPS, *(name(stage) for stage in range(stages) for name in of_stage)]
    columns += LATENCY_COLUMNS
    further = [] if known is None else [str(name) for name in known.columns if name not in columns]
    table = pd.DataFrame(list(merged.values()), columns=[*columns, *further])
    optional = [*map(cpu_column_of, range(stages)), LATENCY_COLUMNS[-1]]  # left out where no run has them
    return table.drop(columns=[name for name in optional if table[name].isna().all()])


def _rows(table: pd.DataFrame) -> list[Mapping[str, object]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _key(row: Mapping[str, object]) -> tuple[str, ...]:
    numbers = (SIGNIFICANT_DIGITS % row[name] for name in KEY_COLUMNS[3:])
    return (*(str(row[name]) for name in KEY_COLUMNS[:3]), *numbers)


def _indices(row: Mapping[str, object]) -> list[int]:
    return [stage for core in json.loads(str(row[CORES_COLUMN])) for stage in core]


def _wrong(row: Mapping[str, object]) -> list[tuple[str, str]]:
    """Columns of a row that do not describe a chain, with what is wrong."""
    wrong = []
    try:
        stages, _ = parse_chain(str(row[ORDER_COLUMN]))
    except ValueError as error:
        return [(ORDER_COLUMN, str(error))]
    try:
        indices = sorted(_indices(row))
    except (TypeError, ValueError):
        indices = []
    if indices != list(range(len(stages))):
        wrong.append((CORES_COLUMN, f"'{row[CORES_COLUMN]}' does not have each stage once: as in [[0], [1]]"))
    try:
        shares = json.loads(str(row[SHARES_COLUMN]))
    except ValueError:
        shares = None
    if not isinstance(shares, list) or any(not isinstance(share, int | float) for share in shares):
        wrong.append((SHARES_COLUMN, f"'{row[SHARES_COLUMN]}' is not a list of shares"))
    return wrong
