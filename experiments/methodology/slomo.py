"""The baseline as the paper trains it: at default traffic, with as many runs as Tomur has (sections 7.1 and 7.3).

The SLOMO that `placer train` gives has to live on a profile made for Tomur, of which few runs are at default traffic.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.methodology.card import CARD, DEFAULT, measured_kpps, trained
from experiments.registry import Say, Setting
from predictor import Predictor, SlomoPredictor
from profiler.contention import MemoryContention, measure_benches, measure_neighbours
from profiles import Workload
from profiles.profile import THROUGHPUT, NfProfile, Profile

RUNS = 400


def predictors(setting: Setting) -> dict[str, Predictor]:
    """The baseline and Tomur, each trained as the paper trains it."""
    return {"slomo": slomo(setting), "tomur": trained(setting).predictors["tomur"]}


def slomo(setting: Setting) -> SlomoPredictor:
    """SLOMO for every hosted NF."""
    return _slomo(setting.seed, setting.count(RUNS, least=60), setting.say)


@cache
def _slomo(seed: int, count: int, say: Say) -> SlomoPredictor:
    models = trained(Setting(say=say))
    say("training SLOMO at default traffic on the simulated card")
    benches = measure_benches(CARD, seed, lambda runs: None)
    neighbours = measure_neighbours(CARD, seed, lambda runs: None)
    measured = {}
    for number, nf in enumerate(models.nfs):
        free = CARD.describe().nic.cores - models.cores(nf)
        contention = MemoryContention(benches.memory, free, np.random.default_rng([seed, number]), neighbours)
        beside = contention.draw(count)
        memory = pd.DataFrame([DEFAULT.as_dict() | one.counters.as_dict() for one in beside])
        memory[THROUGHPUT] = measured_kpps([[Workload(nf, DEFAULT), *one.loads] for one in beside], seed)
        measured[nf] = NfProfile(nf, None, memory.iloc[:0], memory)
    profile = Profile(source=Path(), testbed=CARD.describe(), benches=pd.DataFrame(), nfs=measured)
    return SlomoPredictor.train(profile, models.models, seed=seed, warn=say)
