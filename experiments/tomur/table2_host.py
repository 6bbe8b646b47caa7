"""Table 2 on this machine: NFs are profiled, models trained, and predictions compared with new measurements."""

import hashlib
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import platformdirs

from experiments.methodology.accuracy import METRICS_NOTE, draw_scores, errors_pct, score_table
from experiments.methodology.host_testbed import open_host_testbed
from experiments.registry import CannotRun, Result, Setting, experiment
from experiments.tomur import PAPER
from experiments.tomur.methodology.co_locations import random_traffics
from predictor import Models, train
from predictor.training.disagreement import disagreement
from profiler.profiling import profile
from profiler.testbed import Measurement, Testbed, TestbedError
from profiler.testbeds.host import find_program
from profiles import BenchLoad, TestbedDescription, Workload
from profiles.arrays import Floats
from profiles.profile import FIRST_SERVICE, read_profile

HOST_NFS = ("FlowClassifier", "FlowStats", "NAT")
"""The NFs with the largest tables; co-location hardly slows the others on a cache of many MB."""
RUNS_PER_NF = 80
TEST_RUNS = 12  # test runs per NF and kind of competitor
STANDARD_ERROR_PCT = 1  # largest standard error of a measurement: models are trained on single measurements
WITH_BENCH, WITH_NF = "with mem-bench", "with an NF"
MEASURED_ALONE, PREDICTED_ALONE = "measured alone", "predicted alone"


@experiment(PAPER, "table2-host", "Prediction accuracy on this machine, with models trained on it")
def run(setting: Setting) -> Result:
    """NFs with large tables, co-located with mem-bench and with each other, at random traffic."""
    with open_host_testbed(setting, f"--standard-error {STANDARD_ERROR_PCT}") as testbed:
        machine = testbed.describe()
        nfs = [nf for nf in HOST_NFS if any(known.name == nf for known in machine.nfs)]
        if len(nfs) < 2:
            raise CannotRun(f"{machine.name} hosts fewer than two of {', '.join(HOST_NFS)}")
        try:
            models = _models(testbed, nfs, setting)
            tests = pd.concat([_test_runs(testbed, nf, nfs, setting, models) for nf in nfs], ignore_index=True)
        except TestbedError as error:
            raise CannotRun(f"this machine cannot measure it: {error}") from error
    table = score_table(_errors(tests, machine.name), {})
    return Result(
        table,
        (f"{machine.name}: all runs, measured; the models are trained on {setting.count(RUNS_PER_NF)} runs per NF.",),
        partial(draw_scores, table=table),
        (
            METRICS_NOTE,
            "There are no published numbers: table 2 is of a BlueField-2, with other cores and a cache of 6 MB.",
            f"'{MEASURED_ALONE}' predicts no drop: it takes the throughput of the NF alone, measured right before. A "
            f"predictor must have a lower error to be useful on this machine. '{PREDICTED_ALONE}' takes the model's "
            "throughput alone.",
            f"Drops in the test runs: mean {tests['drop_pct'].mean():.1f} %, largest {tests['drop_pct'].max():.1f} %.",
        ),
        {"corun": tests},
    )


def _models(testbed: Testbed, nfs: Sequence[str], setting: Setting) -> Models:
    """Models of a profile in the user's cache folder; an interrupted profile is continued there."""
    quota = setting.count(RUNS_PER_NF, least=40)
    key = f"{hashlib.sha256(find_program().read_bytes()).hexdigest()[:12]}-{quota}-{setting.seed}"
    out = platformdirs.user_cache_path("nf-placer") / f"profile-host-{key}"
    done = profile(
        testbed, out, nfs=nfs, quota=quota, seed=setting.seed, notify=setting.say, suggest=disagreement(setting.seed)
    )
    return train(read_profile(done))


def _test_runs(testbed: Testbed, nf: str, nfs: Sequence[str], setting: Setting, models: Models) -> pd.DataFrame:
    """Co-locations of one NF that no model was trained on: measured and predicted throughput (kpps)."""
    rng = setting.rng(f"table2-host {nf}")
    count = setting.count(TEST_RUNS, least=2)
    traffics = random_traffics(2 * count, rng, vary=("flows", "packet_size"))
    others = random_traffics(count, rng, vary=("flows", "packet_size"))
    competitors = rng.choice([name for name in nfs if name != nf], count).tolist()
    benches: list[Workload | BenchLoad] = [_bench(testbed.describe(), rng) for _ in range(count)]
    neighbours: list[Workload | BenchLoad] = [
        Workload(name, traffic) for name, traffic in zip(competitors, others, strict=True)
    ]
    setting.say(f"{nf}: {2 * count} test runs")
    return pd.DataFrame(
        [
            _co_run(testbed, Workload(nf, traffic), neighbour, models)
            for traffic, neighbour in zip(traffics, [*benches, *neighbours], strict=True)
        ]
    )


def _bench(machine: TestbedDescription, rng: np.random.Generator) -> BenchLoad:
    """mem-bench with random parameters over the machine's ranges: log-uniform working set, uniform access rate."""
    bench = machine.bench("mem-bench")
    assert bench is not None  # profiling has used it
    ranges = bench.parameters
    wss, rate = np.exp(rng.uniform(*np.log(ranges["wss_mb"]))), rng.uniform(*ranges["access_mops"])
    return BenchLoad.of("mem-bench", {"wss_mb": round(float(wss), 2), "access_mops": round(float(rate))})


def _co_run(testbed: Testbed, own: Workload, neighbour: Workload | BenchLoad, models: Models) -> dict[str, object]:
    alone, other = (testbed.run([load]).measurements[0] for load in (own, neighbour))
    co_located = testbed.run([own, neighbour]).measurements[0].throughput_kpps
    row: dict[str, object] = {
        "nf": own.nf,
        "neighbour": neighbour.label,
        **own.traffic.as_dict(),
        "alone_kpps": alone.throughput_kpps,
        "throughput_kpps": co_located,
        "drop_pct": 100 * (1 - co_located / alone.throughput_kpps),
    }
    for name, predictor in models.predictors.items():
        if isinstance(neighbour, BenchLoad):
            row[name] = float(predictor.predict_contention(own.nf, _contention(own, other))[0])
        else:
            row[name] = float(predictor.throughput([[own, neighbour]])[0][0])
    row[PREDICTED_ALONE] = float(models.predictors["tomur"].solo([own])[0])
    row[MEASURED_ALONE] = alone.throughput_kpps
    return row


def _contention(own: Workload, bench: Measurement) -> pd.DataFrame:
    """The input of a predictor for the NF with one bench, which is described by its counters."""
    return pd.DataFrame([{**own.traffic.as_dict(), **bench.counters.as_dict(), FIRST_SERVICE: 0.0}])


def _errors(tests: pd.DataFrame, testbed: str) -> dict[tuple[str, str, str], Floats]:
    kinds = np.where(tests["neighbour"] == "mem-bench", WITH_BENCH, WITH_NF)
    columns = list(tests.columns)
    predictors = columns[columns.index("drop_pct") + 1 :]
    return {
        (f"{nf}, {kind}", name, testbed): errors_pct(rows[name].to_numpy(), rows["throughput_kpps"].to_numpy())
        for (nf, kind), rows in tests.groupby(["nf", kinds])
        for name in predictors
    }
