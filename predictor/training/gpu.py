"""Training of the latency models of a GPU server."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from predictor.gpu.batching import BatchingModel, mean_wait_us
from predictor.gpu.co_location import demands, overload
from predictor.gpu.models import WAIT_STAGES, GpuModels
from predictor.gpu.nf_model import GpuNfModel, WorkerModel
from predictor.gpu.prediction import LatencyErrors, Overload
from predictor.gpu.sharing import Sharer, SharingModel
from predictor.gpu.stage_time import Law, StageTime
from predictor.gpu.tandem import sample
from profiles import GpuSettings, GpuWorkload, InputError, Minibatch, TrafficProfile, Workload
from profiles.arrays import Floats
from profiles.gpu_tables import (
    BATCH_COLUMN,
    BUSY_COLUMN,
    LATENCY_MEAN,
    LATENCY_P99,
    MEAN_COLUMN,
    MINIBATCHES_COLUMN,
    NF_COLUMN,
    ORDER_COLUMN,
    OTHERS_COLUMN,
    P99_COLUMN,
    PACKETS_COLUMN,
    RATE_COLUMN,
    RETURN_MEAN,
    RETURN_P99,
    RUN_COLUMN,
    STAGE_NAMES,
    TRAFFIC_COLUMNS,
    GpuNfProfile,
    GpuProfile,
    parse_busy,
    parse_minibatches,
    parse_others,
)

Progress = Callable[[str, int, int], None]

FEWEST_MEASUREMENTS = 4  # measurements of a stage without which it cannot be fitted
LATEST_RUNS, FEW_BATCHES = 24, 300
"""Runs of NFs alone that waited most, from which workers are learnt, and the batches that are drawn for each."""
WAIT_COLUMNS = ["batching_us", "kernel_wait_us"]
ENOUGH_CO_LOCATIONS = 90  # Co-locations of which errors are estimated
ONE_CLASS = 0.01  # NFs of one class whose transfers differ from the class by less (natural log) are fitted together


def train_gpu(profile: GpuProfile, *, seed: int = 0, progress: Progress = lambda name, done, steps: None) -> GpuModels:
    """Latency models of every NF of a profile, with the errors of its co-locations. Raises `InputError` when an NF was
    measured too little."""
    from threadpoolctl import threadpool_limits

    _refuse_too_little(profile)
    with threadpool_limits(1):
        steps = len(profile.nfs) + 3
        progress("transfers", 0, steps)
        transfers, returns = _by_class(profile, MEAN_COLUMN, P99_COLUMN), _by_class(profile, RETURN_MEAN, RETURN_P99)
        models = {}
        for done, (name, nf) in enumerate(profile.nfs.items(), start=1):
            progress(name, done, steps)
            models[name] = _nf_model(profile, nf, transfers[name], returns[name])
        progress("workers", steps - 2, steps)
        worker = _worker(profile, models)
        trained = GpuModels(profile.testbed, models, worker, seed=seed)
        progress("co-locations", steps - 1, steps)
        return trained.with_errors(latency_errors(trained, co_locations(profile.latency)))


def co_locations(latency: pd.DataFrame) -> list[tuple[list[GpuWorkload], Floats]]:
    """The runs of several NFs: the loads, and their measured mean and p99, shape (loads, 2)."""
    found = []
    for _, rows in latency.groupby(RUN_COLUMN, sort=False) if len(latency) else ():
        if len(rows) > 1:
            loads = [_load(row) for row in _records(rows)]
            found.append((loads, rows[[LATENCY_MEAN, LATENCY_P99]].to_numpy(dtype=np.float64)))
    return found


def _worker(profile: GpuProfile, models: Mapping[str, GpuNfModel]) -> WorkerModel:
    """The worker that explains best how long NFs alone waited for it, where they waited most."""
    per_executor = profile.testbed.nic.packets_per_executor
    assert per_executor
    if not len(profile.latency):
        return WorkerModel()
    alone = profile.latency[profile.latency.groupby(RUN_COLUMN)[RUN_COLUMN].transform("size") == 1]
    alone = alone[alone[NF_COLUMN].isin(list(models))]
    if not len(alone) or alone[WAIT_COLUMNS].isna().any(axis=None):
        return WorkerModel()
    late = alone[WAIT_COLUMNS].sum(axis=1) - mean_wait_us(_column(alone, BATCH_COLUMN), _column(alone, RATE_COLUMN))
    share = late / alone[LATENCY_MEAN]
    # workers are late with small batches of bursts, and at the highest rates
    fast = alone[RATE_COLUMN] > alone[RATE_COLUMN].median()
    order = share.sort_values(ascending=False, kind="stable").index
    # in a line of its own, as mypy checks it once for each overload of `loc` otherwise, for seconds
    rows: list[int] = [*order[fast[order]][: LATEST_RUNS // 2], *order[~fast[order]][: LATEST_RUNS // 2]]
    latest = alone.loc[rows]
    loads, measured = [_load(row) for row in _records(latest)], _numbers(latest, [*WAIT_COLUMNS, LATENCY_MEAN])
    at = [STAGE_NAMES.index(name.removesuffix("_us")) for name in WAIT_COLUMNS]

    def error(worker: WorkerModel) -> float:
        found = []
        for load, times in zip(loads, measured, strict=True):
            taken = demands(models, per_executor, [load], worker.receive_us)
            full = bool(overload([load], taken))
            one = sample(taken, window=worker.window, batches=FEW_BATCHES)[0]
            predicted = np.array([*(one.stages[stage] for stage in at), one.mean])
            found.append(1.0 if full else min(float(np.abs(times - predicted).max() / times[-1]), 1.0))
        return float(np.mean(found))

    return WorkerModel.fit(error)


def latency_errors(models: GpuModels, measured: Sequence[tuple[list[GpuWorkload], Floats]]) -> LatencyErrors:
    """How far the measured latencies are from their predictions; what cannot be predicted is left out."""
    shares, tails, errors = [], [], []
    for loads, latencies in measured[:: -(-len(measured) // ENOUGH_CO_LOCATIONS) or 1]:
        try:
            predicted = models.predict(loads)
        except (InputError, Overload):
            continue
        shares += [sum(nf.stages_us[name] for name in WAIT_STAGES) / nf.mean_us for nf in predicted]
        tails += [prediction.p99_us / prediction.mean_us for prediction in predicted]
        errors += [np.log(found / [one.mean_us, one.p99_us]) for found, one in zip(latencies, predicted, strict=True)]
    if not errors:
        return LatencyErrors.none()
    mean, p99 = np.array(errors).T
    return LatencyErrors(np.array(shares), mean, p99, np.array(tails))


def _nf_model(profile: GpuProfile, nf: GpuNfProfile, transfer: StageTime, returned: StageTime) -> GpuNfModel:
    per_executor = profile.testbed.nic.packets_per_executor
    assert per_executor
    kernel = _stage(Law.KERNEL, per_executor, nf.kernel, PACKETS_COLUMN)
    return GpuNfModel(
        name=nf.name,
        moves=nf.description.moves or "both",
        batching=BatchingModel.fit(
            _numbers(nf.batching, [BATCH_COLUMN, RATE_COLUMN, *TRAFFIC_COLUMNS]),
            _column(nf.batching, MEAN_COLUMN),
            _column(nf.batching, P99_COLUMN),
        ),
        pre_post=_stage(Law.TRANSFER, per_executor, nf.prepost, BATCH_COLUMN),
        transfer=transfer,
        returned=returned,
        kernel=kernel,
        sharing=_sharing(nf.sharing, kernel, per_executor),
    )


def _by_class(profile: GpuProfile, mean: str, p99: str) -> dict[str, StageTime]:
    """Transfers of each NF: those of its class together, as in Grus, unless the NF differs from the others."""
    per_executor = profile.testbed.nic.packets_per_executor
    assert per_executor
    classes: dict[str, list[GpuNfProfile]] = {}
    for nf in profile.nfs.values():
        classes.setdefault(nf.description.moves or nf.name, []).append(nf)
    found = {}
    for members in classes.values():
        together = pd.concat([nf.transfer for nf in members], ignore_index=True)
        of_class = _stage(Law.TRANSFER, per_executor, together, BATCH_COLUMN, mean, p99)
        for nf in members:
            own = _numbers(nf.transfer, [BATCH_COLUMN, *TRAFFIC_COLUMNS])
            off = np.median(np.log(np.maximum(_column(nf.transfer, mean), 1e-9) / of_class.mean(own)))
            alone = len(members) > 1 and abs(off) > ONE_CLASS
            found[nf.name] = (
                _stage(Law.TRANSFER, per_executor, nf.transfer, BATCH_COLUMN, mean, p99) if alone else of_class
            )
    return found


def _stage(
    law: Law, per_executor: int, table: pd.DataFrame, count: str, mean: str = MEAN_COLUMN, p99: str = P99_COLUMN
) -> StageTime:
    return StageTime.fit(
        law, per_executor, _numbers(table, [count, *TRAFFIC_COLUMNS]), _column(table, mean), _column(table, p99)
    )


def _sharing(table: pd.DataFrame, kernel: StageTime, per_executor: int) -> SharingModel | None:
    if not len(table):
        return None
    groups = []
    for row in _records(table):
        others = parse_others(str(row[OTHERS_COLUMN]))
        busy = parse_busy(str(row[BUSY_COLUMN]), len(others))
        groups.append(
            [Sharer(nf, -(-packets // per_executor), one) for (nf, packets), one in zip(others, busy, strict=True)]
        )
    inputs = _numbers(table, [PACKETS_COLUMN, *TRAFFIC_COLUMNS])
    ratio = _column(table, MEAN_COLUMN) / kernel.mean(inputs)
    return SharingModel.fit(np.ceil(inputs[:, 0] / per_executor), groups, ratio)


def _load(row: Mapping[str, object]) -> GpuWorkload:
    flows, size, mtbr, rate = (float(str(row[name])) for name in (*TRAFFIC_COLUMNS, RATE_COLUMN))
    parts = tuple(Minibatch(sm, packets) for sm, packets in parse_minibatches(str(row[MINIBATCHES_COLUMN])))
    batch, order = (int(float(str(row[name]))) for name in (BATCH_COLUMN, ORDER_COLUMN))
    traffic = TrafficProfile(flows, size, mtbr)
    return GpuWorkload(Workload(str(row[NF_COLUMN]), traffic, rate), GpuSettings(batch, order, parts))


def _records(table: pd.DataFrame) -> list[dict[str, object]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _numbers(table: pd.DataFrame, columns: list[str]) -> Floats:
    return table[columns].to_numpy(dtype=np.float64)


def _column(table: pd.DataFrame, name: str) -> Floats:
    return table[name].to_numpy(dtype=np.float64)


def _refuse_too_little(profile: GpuProfile) -> None:
    for name, nf in profile.nfs.items():
        for file in ("batching", "transfer", "kernel", "prepost"):
            if len(table := getattr(nf, file)) < FEWEST_MEASUREMENTS:
                raise InputError.of(
                    str(profile.source / name / f"{file}.csv"),
                    f"has {len(table)} measurements, at least {FEWEST_MEASUREMENTS} are needed",
                    hint="`placer profile` measures more",
                )
