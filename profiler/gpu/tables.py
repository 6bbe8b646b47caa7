"""From runs on a GPU server to the tables of its profile (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

import pandas as pd

from profiler.gpu.measuring import MeasuredGpuRun
from profiles import NfDescription, PacedWorkload
from profiles.gpu_tables import (
    BATCH,
    BUSY,
    KEYS,
    KPPS,
    LATENCY_COLUMNS,
    LATENCY_MEAN,
    LATENCY_P50,
    LATENCY_P99,
    MEAN,
    MINIBATCHES,
    NF,
    ORDER,
    OTHERS,
    P99,
    PACKETS,
    RATE,
    REPEATS,
    RETURN_MEAN,
    RETURN_P99,
    RUN,
    SPREAD,
    STAGES,
    TIMES,
    TRAFFIC,
    GpuNfProfile,
    minibatches_text,
    others_text,
)

STAGE_OF = {"batching": "batching", "transfer": "transfer", "kernel": "kernel", "prepost": "pre_post"}
"""The stage of the protocol in each file."""

Row = dict[str, object]


def nf_tables(
    description: NfDescription, alone: Sequence[MeasuredGpuRun], shared: Sequence[MeasuredGpuRun]
) -> GpuNfProfile:
    """The tables of one NF, from its runs alone and those in which NFs share one SM."""
    tables = {name: _frame(name, [_row(name, run) for run in alone if _counts(name, run)]) for name in STAGE_OF}
    rows = [_sharing_row(run, at) for run in shared for at, load in enumerate(run.loads) if load.nf == description.name]
    return GpuNfProfile(description.name, description, sharing=_frame("sharing", rows), **tables)


def latency_table(runs: Sequence[MeasuredGpuRun]) -> pd.DataFrame:
    """`latency.csv`: a row per NF of each run."""
    rows = [_latency_row(run, at, number) for number, run in enumerate(runs) for at in range(len(run.loads))]
    return pd.DataFrame(rows, columns=LATENCY_COLUMNS)


def _counts(name: str, run: MeasuredGpuRun) -> bool:
    """Whether a run is a measurement of a table: kernels of one SM only, and batching only where there is any."""
    gpu = run.loads[0].gpu
    assert gpu is not None
    return (name != "kernel" or len(gpu.minibatches) == 1) and (name != "batching" or gpu.batch > 1)


def _row(name: str, run: MeasuredGpuRun) -> Row:
    load, stage = run.loads[0], STAGE_OF[name]
    assert load.gpu is not None
    values = {RATE: load.rate_kpps, BATCH: load.gpu.batch, PACKETS: load.gpu.batch}
    row: Row = {**load.traffic.as_dict(), **{key: values[key] for key in KEYS[name]}}
    row |= {MEAN: run.stage_us(0, stage), P99: _p99(run, 0, stage)}
    if name == "transfer":
        row |= {RETURN_MEAN: run.stage_us(0, "return"), RETURN_P99: _p99(run, 0, "return")}
    return row | _quality(run, 0, stage)


def _sharing_row(run: MeasuredGpuRun, at: int) -> Row:
    others = [(one, load) for one, load in enumerate(run.loads) if one != at]
    return {
        **run.loads[at].traffic.as_dict(),
        PACKETS: _packets(run.loads[at]),
        OTHERS: others_text([(load.nf, _packets(load)) for _, load in others]),
        MEAN: run.stage_us(at, "kernel"),
        P99: _p99(run, at, "kernel"),
        BUSY: ";".join(f"{_busy(run, one):.4g}" for one, _ in others),
        **_quality(run, at, "kernel"),
    }


def _latency_row(run: MeasuredGpuRun, at: int, number: int) -> Row:
    load = run.loads[at]
    assert load.gpu is not None
    of_run: Mapping[str, object] = {
        RUN: number,
        NF: load.nf,
        **load.traffic.as_dict(),
        RATE: load.rate_kpps,
        BATCH: load.gpu.batch,
        ORDER: load.gpu.order,
        MINIBATCHES: minibatches_text((one.sm, one.packets) for one in load.gpu.minibatches),
        KPPS: run.kpps(at),
    }
    latencies = {LATENCY_MEAN: "mean", LATENCY_P50: "p50", LATENCY_P99: "p99"}
    return {
        **of_run,
        **{column: run.latency_us(at, name) for column, name in latencies.items()},
        **{f"{stage}_us": run.stage_us(at, stage) for stage in STAGES},
        REPEATS: len(run.repeats[at]),
    }


def _quality(run: MeasuredGpuRun, at: int, stage: str) -> Row:
    repeats = len(run.repeats[at])
    return {REPEATS: repeats, SPREAD: run.spread_us(at, stage) if repeats > 1 else nan}


def _busy(run: MeasuredGpuRun, at: int) -> float:
    """The share of the time during which the kernel of one NF ran."""
    gpu = run.loads[at].gpu
    assert gpu is not None
    return min(run.stage_us(at, "kernel") * run.kpps(at) / (1000.0 * gpu.batch), 1.0)


def _packets(load: PacedWorkload) -> int:
    assert load.gpu is not None
    return load.gpu.minibatches[0].packets


def _p99(run: MeasuredGpuRun, at: int, stage: str) -> float:
    p99 = run.stage_p99_us(at, stage)
    return nan if p99 is None else p99


def _frame(name: str, rows: Sequence[Row]) -> pd.DataFrame:
    busy = [BUSY] if name == "sharing" else []
    return pd.DataFrame(rows, columns=[*TRAFFIC, *KEYS[name], *TIMES[name], *busy, REPEATS, SPREAD])
