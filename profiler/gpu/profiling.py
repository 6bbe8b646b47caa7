"""Profiling of a GPU server: each NF alone, then sharers of an SM, then co-locations (Grus, sections V-A and VII-B)."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.random import Generator

from profiler.export import refuse_taken
from profiler.gpu.measuring import GpuCoLocation, GpuRuns, MeasuredGpuRun, StageEstimate
from profiler.gpu.together import first_runs, pairs, random_co_locations, several_sharers, slower, spread_runs
from profiler.journal.journal import Journal, JournaledTestbed
from profiler.journal.records import SHARING_PART, TOGETHER_PART
from profiler.profiling import journal_of
from profiler.quota import refuse_large
from profiler.steps import Done, Notify, Steps
from profiler.testbed import Testbed, TestbedError
from profiles import GpuWorkload, InputError, NfDescription, TestbedDescription, gpu_tables
from profiles.aside import files_aside
from profiles.faults import suggestion
from profiles.gpu_tables import GpuNfProfile, minibatches_text, others_text
from profiles.profile import write_json
from profiles.table import write_table

DEFAULT_QUOTA = 160  # runs per NF
LEAST_QUOTA = 60
FIRST_SETTINGS, FEWEST_FIRST_SETTINGS = 14, 8  # settings of the first runs, each run twice; fewer with a small quota
FIRST_SHARE = 0.25  # of the quota, at most for these runs
RUNS_OF_A_POINT = 2
SHARER_QUOTA, CO_LOCATION_QUOTA = 0.2, 0.25  # shares of the quota for sharers of an SM and for co-locations
ENOUGH_RUNS = 6  # runs of an NF without which no others can be chosen


@dataclass(frozen=True)
class GpuQuota:
    """Runs of each part: of one NF alone, of sharers and of co-locations over all NFs."""

    alone: int
    shared: int
    co_located: int

    @classmethod
    def of(cls, runs: int, nfs: int) -> "GpuQuota":
        """Of that many runs per NF."""
        shared, co_located = round(SHARER_QUOTA * runs) * nfs, round(CO_LOCATION_QUOTA * runs) * nfs
        return cls(runs - (shared + co_located) // nfs, shared, co_located)


def profile_gpu(
    testbed: Testbed,
    out: Path,
    *,
    nfs: Sequence[str] | None = None,
    quota: int | None = None,
    seed: int = 0,
    progress: Done | None = None,
    notify: Notify = lambda message: None,
) -> Path:
    """Profile NFs of a GPU server into the profile directory `out`.

    Every run is kept in the journal of `out` before the next begins, so the same call resumes what was interrupted.
    Other files in `out` stay. `testbed`: where NFs run; its `nic.kind` is `gpu`. `out`: the profile directory. `nfs`:
    their names; all when None. `quota`: runs per NF, everything counted; `DEFAULT_QUOTA` when None. Further runs decide
    repeats that disagree. `seed`: of every choice, and of the noise of a simulated testbed. `progress`: called after
    every batch of runs. `notify`: called with messages: what is left out, nothing left to do. Returns `out`. Raises
    `InputError` when an NF is not known, the quota too small, the seed negative, or `out` holds something else. Raises
    `TestbedError` when the testbed fails or measures no latency; what it measured before is in the journal. Raises
    `OSError` when the journal or the directory cannot be written; what was measured before stays."""
    refuse_large(quota)
    if quota is not None and quota < LEAST_QUOTA:
        raise InputError.of("--quota", f"{quota} is too small: a GPU server needs {LEAST_QUOTA} runs per NF")
    if seed < 0:
        raise InputError.of("--seed", f"{seed} is negative")
    description = testbed.describe()
    refuse_taken(out, journal_of(out))
    targets = _targets(description, nfs)
    shares = GpuQuota.of(quota or DEFAULT_QUOTA, len(targets))
    with Journal(journal_of(out)) as journal:
        journal.claim(testbed, seed)
        known = len(journal)
        journal.plan([(nf.name, "", shares.alone) for nf in targets])
        journal.plan([(SHARING_PART, "", shares.shared), (TOGETHER_PART, "", shares.co_located)])
        steps = Steps(progress, len(targets) * shares.alone + shares.shared + shares.co_located)
        alone: dict[str, list[MeasuredGpuRun]] = {}
        for nf in targets:
            runs = GpuRuns(JournaledTestbed(testbed, journal, nf.name), seed, steps.done)
            alone[nf.name] = measure_alone(runs, description, nf.name, shares.alone, seed)
            journal.finished(nf.name)
        times = {nf: StageEstimate.of(measured) for nf, measured in alone.items()}
        runs = GpuRuns(JournaledTestbed(testbed, journal, SHARING_PART), seed, steps.done)
        drawn = pairs(description, times)[: shares.shared]
        rng = np.random.default_rng([seed, 1])
        drawn += several_sharers(description, times, shares.shared - len(drawn), rng)
        # kernels are at their slowest beside sharers that are overloaded
        shared = runs.measure(drawn, 1)
        journal.finished(SHARING_PART)
        runs = GpuRuns(JournaledTestbed(testbed, journal, TOGETHER_PART), seed, steps.done)
        drawn = random_co_locations(description, times, shares.co_located, np.random.default_rng([seed, 2]))
        co_located = _measure_carried(runs, drawn, notify)
        journal.finished(TOGETHER_PART)
        if len(journal) == known:
            notify(f"nothing to measure: {known:,} runs are recorded")
    _write(out, description, targets, alone, shared, co_located)
    return out


def measure_alone(
    runs: GpuRuns, description: TestbedDescription, nf: str, quota: int, seed: int
) -> list[MeasuredGpuRun]:
    """The runs of one NF alone that the server carried, in the order in which they were chosen."""
    rng = np.random.default_rng([seed, zlib.crc32(nf.encode())])
    settings = min(FIRST_SETTINGS, max(FEWEST_FIRST_SETTINGS, int(FIRST_SHARE * quota / RUNS_OF_A_POINT)))
    first = _first(runs, description, nf, settings)
    count = max(quota - runs.made, 0)
    # a first half over what the first runs lead to expect, the rest over what is known then
    measured = first
    for part in (count // 2, count - count // 2):
        measured = measured + _spread(runs, description, nf, measured, part, rng)
    return measured


def _first(runs: GpuRuns, description: TestbedDescription, nf: str, settings: int) -> list[MeasuredGpuRun]:
    chosen = runs.measure([(load,) for load in first_runs(description, nf, settings)], RUNS_OF_A_POINT)
    carried = [run for run in chosen if not run.overloaded]
    again = [(slower(load),) for (load,) in [*(run.loads for run in chosen if run.overloaded), *runs.left_out]]
    carried += [run for run in runs.measure(again, RUNS_OF_A_POINT) if not run.overloaded]
    if len(carried) < ENOUGH_RUNS:
        raise TestbedError(f"testbed {description.name} carries {nf} at {len(carried)} of {len(chosen)} settings only")
    return carried


def _spread(
    runs: GpuRuns, description: TestbedDescription, nf: str, known: Sequence[MeasuredGpuRun], count: int, rng: Generator
) -> list[MeasuredGpuRun]:
    loads = spread_runs(description, nf, StageEstimate.of(known), count, rng)
    return [run for run in runs.measure([(load,) for load in loads], 1) if not run.overloaded]


def _measure_carried(runs: GpuRuns, co_locations: Sequence[GpuCoLocation], notify: Notify) -> list[MeasuredGpuRun]:
    carried = [run for run in runs.measure(co_locations, 1) if not run.overloaded]
    if left_out := len(co_locations) - len(carried):
        notify(f"{left_out} of {len(co_locations)} co-locations are refused or overload the server; left out")
    return carried


def _write(
    out: Path,
    description: TestbedDescription,
    nfs: Sequence[NfDescription],
    alone: dict[str, list[MeasuredGpuRun]],
    shared: Sequence[MeasuredGpuRun],
    co_located: Sequence[MeasuredGpuRun],
) -> None:
    with files_aside(out) as aside:
        write_json(description.model_dump(mode="json"), aside / "testbed.json")
        for nf in nfs:
            nf_tables(nf, alone[nf.name], shared).write_files(aside / nf.name)
        runs = [run for found in alone.values() for run in found]
        write_table(latency_table([*runs, *co_located]), aside / gpu_tables.LATENCY_FILE)


def _targets(description: TestbedDescription, names: Sequence[str] | None) -> list[NfDescription]:
    if description.nic.kind != gpu_tables.GPU_KIND:
        raise InputError.of("--testbed", f"{description.name} is no GPU server: its nic.kind is {description.nic.kind}")
    known = {nf.name: nf for nf in description.fitting_nfs}
    if unknown := [name for name in names or () if name not in known]:
        hint = suggestion(unknown[0], known) if known else None
        raise InputError.of("--nf", f"the testbed has no {', '.join(unknown)}", hint=hint)
    wanted = [nf for name, nf in known.items() if not names or name in names]
    if not wanted:
        raise InputError.of("--testbed", f"{description.name} has no NFs, so there is nothing to profile")
    return wanted


# From runs on a GPU server to the tables of its profile (docs/formats/profile.md).


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
    return pd.DataFrame(rows, columns=gpu_tables.LATENCY_COLUMNS)


def _counts(name: str, run: MeasuredGpuRun) -> bool:
    """Whether a run is a measurement of a table: kernels of one SM only, and batching only where there is any."""
    gpu = run.loads[0].gpu
    assert gpu is not None
    return (name != "kernel" or len(gpu.minibatches) == 1) and (name != "batching" or gpu.batch > 1)


def _row(name: str, run: MeasuredGpuRun) -> Row:
    load, stage = run.loads[0], STAGE_OF[name]
    values = {
        gpu_tables.RATE_COLUMN: load.rate_kpps,
        gpu_tables.BATCH_COLUMN: load.gpu.batch,
        gpu_tables.PACKETS_COLUMN: load.gpu.batch,
    }
    row: Row = {**load.traffic.as_dict(), **{key: values[key] for key in gpu_tables.KEYS_OF_FILE[name]}}
    row |= {gpu_tables.MEAN_COLUMN: run.stage_us(0, stage), gpu_tables.P99_COLUMN: _p99(run, 0, stage)}
    if name == "transfer":
        row |= {gpu_tables.RETURN_MEAN: run.stage_us(0, "return"), gpu_tables.RETURN_P99: _p99(run, 0, "return")}
    return row | _quality(run, 0, stage)


def _sharing_row(run: MeasuredGpuRun, at: int) -> Row:
    others = [(one, load) for one, load in enumerate(run.loads) if one != at]
    return {
        **run.loads[at].traffic.as_dict(),
        gpu_tables.PACKETS_COLUMN: _packets(run.loads[at]),
        gpu_tables.OTHERS_COLUMN: others_text([(load.nf, _packets(load)) for _, load in others]),
        gpu_tables.MEAN_COLUMN: run.stage_us(at, "kernel"),
        gpu_tables.P99_COLUMN: _p99(run, at, "kernel"),
        gpu_tables.BUSY_COLUMN: ";".join(f"{_busy(run, one):.4g}" for one, _ in others),
        **_quality(run, at, "kernel"),
    }


def _latency_row(run: MeasuredGpuRun, at: int, number: int) -> Row:
    load = run.loads[at]
    of_run: Mapping[str, object] = {
        gpu_tables.RUN_COLUMN: number,
        gpu_tables.NF_COLUMN: load.nf,
        **load.traffic.as_dict(),
        gpu_tables.RATE_COLUMN: load.rate_kpps,
        gpu_tables.BATCH_COLUMN: load.gpu.batch,
        gpu_tables.ORDER_COLUMN: load.gpu.order,
        gpu_tables.MINIBATCHES_COLUMN: minibatches_text((part.sm, part.packets) for part in load.gpu.minibatches),
        gpu_tables.KPPS_COLUMN: run.kpps(at),
    }
    latencies = {gpu_tables.LATENCY_MEAN: "mean", gpu_tables.LATENCY_P50: "p50", gpu_tables.LATENCY_P99: "p99"}
    return {
        **of_run,
        **{column: run.latency_us(at, name) for column, name in latencies.items()},
        **{f"{stage}_us": run.stage_us(at, stage) for stage in gpu_tables.STAGE_NAMES},
        gpu_tables.REPEATS_COLUMN: len(run.repeats[at]),
    }


def _quality(run: MeasuredGpuRun, at: int, stage: str) -> Row:
    repeats = len(run.repeats[at])
    return {
        gpu_tables.REPEATS_COLUMN: repeats,
        gpu_tables.SPREAD_COLUMN: run.spread_us(at, stage) if repeats > 1 else nan,
    }


def _busy(run: MeasuredGpuRun, at: int) -> float:
    """The share of the time during which the kernel of one NF ran."""
    gpu = run.loads[at].gpu
    assert gpu is not None
    return min(run.stage_us(at, "kernel") * run.kpps(at) / (1000.0 * gpu.batch), 1.0)


def _packets(load: GpuWorkload) -> int:
    return load.gpu.minibatches[0].packets


def _p99(run: MeasuredGpuRun, at: int, stage: str) -> float:
    p99 = run.stage_p99_us(at, stage)
    return nan if p99 is None else p99


def _frame(name: str, rows: Sequence[Row]) -> pd.DataFrame:
    busy = [gpu_tables.BUSY_COLUMN] if name == "sharing" else []
    return pd.DataFrame(
        rows,
        columns=[
            *gpu_tables.TRAFFIC_COLUMNS, *gpu_tables.KEYS_OF_FILE[name], *gpu_tables.TIMES_OF_FILE[name], *busy,
            gpu_tables.REPEATS_COLUMN, gpu_tables.SPREAD_COLUMN,
        ],
    )  # fmt: skip
