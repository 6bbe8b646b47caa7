"""The baseline SLOMO as the paper trains it: at default traffic, with as many runs as Tomur (sections 7.1 and 7.3). The
SLOMO of `placer train` is trained on a profile made for Tomur, in which few runs are at default traffic."""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.registry import Setting
from experiments.tomur.methodology.simulated_card import CARD_SPEC, DEFAULT_TRAFFIC, card_of, measure_kpps, tomur, train
from predictor import Models, Predictor, SlomoPredictor
from profiler.contention import MemoryContention, measure_benches, measure_neighbours
from profiles import Workload
from profiles.profile import KPPS_COLUMN, NfProfile, Profile

RUNS_PER_NF = 400


def predictors(setting: Setting, testbed: str = CARD_SPEC) -> dict[str, Predictor]:
    """The baseline and Tomur, both trained as in the paper."""
    return {"slomo": slomo(setting, testbed), "tomur": tomur(setting, testbed)}


_cached: dict[tuple[str, int, int], SlomoPredictor] = {}


def slomo(setting: Setting, testbed: str = CARD_SPEC) -> SlomoPredictor:
    """SLOMO for every NF of the card; cached."""
    key = testbed, setting.seed, setting.count(RUNS_PER_NF, least=60)
    if key not in _cached:
        setting.say(f"training SLOMO at default traffic on the card `{testbed}`")
        _cached[key] = train_slomo(train(setting, testbed), *key)
    return _cached[key]


def train_slomo(models: Models, testbed: str, seed: int, count: int) -> SlomoPredictor:
    """SLOMO for the NFs of these models, from `count` runs of each on the card of this SPEC."""
    card = card_of(testbed)
    benches = measure_benches(card, seed, lambda runs: None)
    neighbours = measure_neighbours(card, seed, lambda runs: None)
    free = card.describe().nic.cores - max(models.cores(nf) for nf in models.nfs)
    contentions = MemoryContention(benches.memory, free, np.random.default_rng(seed), neighbours).draw(count)
    inputs = pd.DataFrame([DEFAULT_TRAFFIC.as_dict() | contention.counters.as_dict() for contention in contentions])
    measured = {}
    for nf in models.nfs:
        throughput = measure_kpps(
            [[Workload(nf, DEFAULT_TRAFFIC), *contention.loads] for contention in contentions], seed, card
        )
        measured[nf] = NfProfile(nf, None, inputs.iloc[:0], inputs.assign(**{KPPS_COLUMN: throughput}))
    profile = Profile(source=Path(), testbed=card.describe(), benches=pd.DataFrame(), nfs=measured)
    return SlomoPredictor.train(profile, models.models, seed=seed, warn=lambda message: None)
