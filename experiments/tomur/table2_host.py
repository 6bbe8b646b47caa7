"""Table 2 on the machine at hand: profiled, trained, and predictions checked against fresh measurements."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import platformdirs

from experiments.methodology.accuracy import Array, draw_scores, errors_pct, score_table
from experiments.methodology.host_testbed import open_host_testbed
from experiments.registry import CannotRun, Result, Setting, experiment
from experiments.tomur import PAPER
from experiments.tomur.methodology.co_locations import random_traffics
from predictor import Models, train
from predictor.training.disagreement import disagreement
from profiler.profiling import profile
from profiler.testbed import Measurement, Testbed, TestbedError
from profiler.testbeds.host import find_program
from profiles import BenchLoad, Load, TestbedDescription, Workload
from profiles.profile import FIRST_SERVICE, read_profile

NFS = ("FlowClassifier", "FlowStats", "NAT")
"""Those with the largest tables: the others hardly feel a neighbour on a cache of many MB."""
QUOTA = 80
"""Runs per NF."""
FRESH = 12
"""Fresh co-runs per NF and kind of neighbour."""
STANDARD_ERROR_PCT = 1
"""Of each measurement: models learn from single ones."""
BESIDE_BENCH, BESIDE_NF = "beside mem-bench", "beside an NF"
ALONE, SOLO = "measured alone", "predicted alone"


@experiment(PAPER, "table2-host", "Accuracy on the machine at hand, of models trained on it")
def run(setting: Setting) -> Result:
    """NFs with tables beside mem-bench and beside each other, at random traffic."""
    with open_host_testbed(setting, f"--standard-error {STANDARD_ERROR_PCT}") as testbed:
        machine = testbed.describe()
        nfs = [nf for nf in NFS if any(one.name == nf for one in machine.nfs)]
        if len(nfs) < 2:
            raise CannotRun(f"{machine.name} hosts fewer than two of {', '.join(NFS)}")
        try:
            models = _models(testbed, nfs, setting)
            fresh = pd.concat([_fresh(testbed, nf, nfs, setting, models) for nf in nfs], ignore_index=True)
        except TestbedError as error:
            raise CannotRun(f"this machine cannot measure it: {error}") from error
    table = score_table(_errors(fresh, machine.name), {})
    return Result(
        table,
        (f"{machine.name}: everything, measured; {setting.count(QUOTA)} runs per NF taught the models.",),
        partial(draw_scores, table=table),
        (
            "no published numbers: table 2 is of a BlueField-2, whose cache of 6 MB and cores are others.",
            f"`{ALONE}` takes what the NF did alone, measured in the same minute, for its throughput in company: who "
            f"predicts no better has nothing to tell of this machine. `{SOLO}` is the model's own word for it.",
            f"drops in the fresh co-runs: {fresh['drop_pct'].mean():.1f} % in the mean, "
            f"{fresh['drop_pct'].max():.1f} % at most.",
        ),
        {"corun": fresh},
    )


def _models(testbed: Testbed, nfs: Sequence[str], setting: Setting) -> Models:
    """Of a profile that is kept in the user's cache, so that an interrupted one goes on."""
    quota = setting.count(QUOTA, least=40)
    of = f"{hashlib.sha256(find_program().read_bytes()).hexdigest()[:12]}-{quota}-{setting.seed}"
    out = platformdirs.user_cache_path("nf-placer") / f"profile-host-{of}"
    done = profile(
        testbed, out, nfs=nfs, quota=quota, seed=setting.seed, say=setting.say, suggest=disagreement(setting.seed)
    )
    return train(read_profile(done))


def _fresh(testbed: Testbed, nf: str, nfs: Sequence[str], setting: Setting, models: Models) -> pd.DataFrame:
    """Co-runs of one NF that no model has seen: what was measured, and what was predicted."""
    rng = setting.rng(f"table2-host {nf}")
    count = setting.count(FRESH, least=2)
    traffics = random_traffics(2 * count, rng, vary=("flows", "packet_size"))
    others = random_traffics(count, rng, vary=("flows", "packet_size"))
    strangers = rng.choice([name for name in nfs if name != nf], count).tolist()
    benches: list[Load] = [_bench(testbed.describe(), rng) for _ in range(count)]
    neighbours: list[Load] = [Workload(name, traffic) for name, traffic in zip(strangers, others, strict=True)]
    setting.say(f"{nf}: {2 * count} fresh co-runs")
    return pd.DataFrame(
        [
            _co_run(testbed, Workload(nf, traffic), neighbour, models)
            for traffic, neighbour in zip(traffics, [*benches, *neighbours], strict=True)
        ]
    )


def _bench(machine: TestbedDescription, rng: np.random.Generator) -> BenchLoad:
    """Working sets evenly by their logarithm, rates evenly, over what the machine offers."""
    bench = machine.bench("mem-bench")
    assert bench is not None  # profiling has used it
    offered = bench.parameters
    wss, rate = np.exp(rng.uniform(*np.log(offered["wss_mb"]))), rng.uniform(*offered["access_mops"])
    return BenchLoad.of("mem-bench", {"wss_mb": round(float(wss), 2), "access_mops": round(float(rate))})


def _co_run(testbed: Testbed, own: Workload, neighbour: Load, models: Models) -> dict[str, object]:
    alone, other = (testbed.run([load]).measurements[0] for load in (own, neighbour))
    beside = testbed.run([own, neighbour]).measurements[0].throughput_kpps
    told: dict[str, object] = {
        "nf": own.nf,
        "neighbour": neighbour.name if isinstance(neighbour, BenchLoad) else neighbour.nf,
        **own.traffic.as_dict(),
        "alone_kpps": alone.throughput_kpps,
        "throughput_kpps": beside,
        "drop_pct": 100 * (1 - beside / alone.throughput_kpps),
    }
    for name, predictor in models.predictors.items():
        if isinstance(neighbour, BenchLoad):
            told[name] = float(predictor.predict_contention(own.nf, _contention(own, other))[0])
        else:
            told[name] = float(predictor.throughput([[own, neighbour]])[0][0])
    told[SOLO] = float(models.predictors["tomur"].solo([own])[0])
    told[ALONE] = alone.throughput_kpps
    return told


def _contention(own: Workload, bench: Measurement) -> pd.DataFrame:
    """Beside one bench, known by its counters."""
    return pd.DataFrame([{**own.traffic.as_dict(), **bench.counters.as_dict(), FIRST_SERVICE: 0.0}])


def _errors(fresh: pd.DataFrame, testbed: str) -> dict[tuple[str, str, str], Array]:
    kinds = np.where(fresh["neighbour"] == "mem-bench", BESIDE_BENCH, BESIDE_NF)
    columns = list(fresh.columns)
    predictors = columns[columns.index("drop_pct") + 1 :]
    return {
        (f"{nf}, {kind}", name, testbed): errors_pct(rows[name].to_numpy(), rows["throughput_kpps"].to_numpy())
        for (nf, kind), rows in fresh.groupby(["nf", kinds])
        for name in predictors
    }
