"""The baseline SLOMO as the paper trains it: at default traffic, with as many runs as Tomur (sections 7.1 and 7.3).

The SLOMO of `placer train` is trained on a profile made for Tomur, in which few runs are at default traffic.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.registry import Setting
from experiments.tomur.methodology.simulated_card import CARD, DEFAULT, measured_kpps, tomur, trained
from predictor import Models, Predictor, SlomoPredictor
from profiler.contention import measure_benches
from profiler.memory_contention import MemoryContention, measure_neighbours
from profiles import Workload
from profiles.profile import THROUGHPUT, NfProfile, Profile

RUNS = 400


def predictors(setting: Setting) -> dict[str, Predictor]:
    """The baseline and Tomur, both trained as in the paper."""
    return {"slomo": slomo(setting), "tomur": tomur(setting)}


_cached: dict[tuple[int, int], SlomoPredictor] = {}


def slomo(setting: Setting) -> SlomoPredictor:
    """SLOMO for every NF of the card; cached."""
    key = setting.seed, setting.count(RUNS, least=60)
    if key not in _cached:
        setting.say("training SLOMO at default traffic on the simulated BlueField-2")
        _cached[key] = _train(trained(setting), *key)
    return _cached[key]


def _train(models: Models, seed: int, count: int) -> SlomoPredictor:
    benches = measure_benches(CARD, seed, lambda runs: None)
    neighbours = measure_neighbours(CARD, seed, lambda runs: None)
    free = CARD.describe().nic.cores - max(models.cores(nf) for nf in models.nfs)
    contentions = MemoryContention(benches.memory, free, np.random.default_rng(seed), neighbours).draw(count)
    inputs = pd.DataFrame([DEFAULT.as_dict() | one.counters.as_dict() for one in contentions])
    measured = {}
    for nf in models.nfs:
        throughput = measured_kpps([[Workload(nf, DEFAULT), *one.loads] for one in contentions], seed)
        measured[nf] = NfProfile(nf, None, inputs.iloc[:0], inputs.assign(**{THROUGHPUT: throughput}))
    profile = Profile(source=Path(), testbed=CARD.describe(), benches=pd.DataFrame(), nfs=measured)
    return SlomoPredictor.train(profile, models.models, seed=seed, warn=lambda message: None)
