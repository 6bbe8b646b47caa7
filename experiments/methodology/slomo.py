"""The baseline as the paper trains it: at default traffic, with as many runs as Tomur has (sections 7.1 and 7.3).

The SLOMO that `placer train` gives has to live on a profile made for Tomur, of which few runs are at default traffic.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.methodology.card import CARD, DEFAULT, measured_kpps, tomur, trained
from experiments.registry import Setting
from predictor import Models, Predictor, SlomoPredictor
from profiler.contention import measure_benches
from profiler.memory_contention import MemoryContention, measure_neighbours
from profiles import Workload
from profiles.profile import THROUGHPUT, NfProfile, Profile

RUNS = 400


def predictors(setting: Setting) -> dict[str, Predictor]:
    """The baseline and Tomur, each trained as the paper trains it."""
    return {"slomo": slomo(setting), "tomur": tomur(setting)}


_kept: dict[tuple[int, int], SlomoPredictor] = {}


def slomo(setting: Setting) -> SlomoPredictor:
    """SLOMO for every hosted NF; trained once, then kept."""
    key = setting.seed, setting.count(RUNS, least=60)
    if key not in _kept:
        setting.say("training SLOMO at default traffic on the simulated card")
        _kept[key] = _train(trained(setting), *key)
    return _kept[key]


def _train(models: Models, seed: int, count: int) -> SlomoPredictor:
    benches = measure_benches(CARD, seed, lambda runs: None)
    neighbours = measure_neighbours(CARD, seed, lambda runs: None)
    free = CARD.describe().nic.cores - max(models.cores(nf) for nf in models.nfs)
    beside = MemoryContention(benches.memory, free, np.random.default_rng(seed), neighbours).draw(count)
    told = pd.DataFrame([DEFAULT.as_dict() | one.counters.as_dict() for one in beside])
    measured = {}
    for nf in models.nfs:
        reached = measured_kpps([[Workload(nf, DEFAULT), *one.loads] for one in beside], seed)
        measured[nf] = NfProfile(nf, None, told.iloc[:0], told.assign(**{THROUGHPUT: reached}))
    profile = Profile(source=Path(), testbed=CARD.describe(), benches=pd.DataFrame(), nfs=measured)
    return SlomoPredictor.train(profile, models.models, seed=seed, warn=lambda message: None)
