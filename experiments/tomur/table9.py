"""Table 9: accuracy on a card of another maker, with memory contention alone and changing traffic."""

import tempfile
from functools import partial
from pathlib import Path

from experiments.methodology.accuracy import METRICS_NOTE, draw_scores, errors_pct, score_table
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.benches import random_mem_bench, run_with_benches
from experiments.tomur.methodology.co_locations import random_traffics
from experiments.tomur.methodology.simulated_card import drop_corrections
from experiments.tomur.methodology.slomo import RUNS_PER_NF, train_slomo
from predictor import TomurPredictor, train
from profiler.profiling import profile
from profiler.simulated import PENSANDO, PENSANDO_NFS, SimulatedTestbed
from profiles.profile import read_profile

PENSANDO_SPEC = "simulated:pensando"
FIREWALL_NF = "Firewall"
COMPARED_RUNS = 200
PUBLISHED_ACCURACY = {(FIREWALL_NF, "slomo"): (18.4, 58.7, 64.7), (FIREWALL_NF, "tomur"): (0.9, 100.0, 100.0)}


@experiment(PAPER, "table9", "Prediction accuracy on a card of another maker, with memory contention alone")
def run(setting: Setting) -> Result:
    """A firewall that walks a table of flows, at random traffic beside mem-bench at random levels."""
    card = SimulatedTestbed(card=PENSANDO, nfs=PENSANDO_NFS)
    setting.say(f"profiling and training {FIREWALL_NF} on {PENSANDO_SPEC}")
    with tempfile.TemporaryDirectory() as folder:
        out = profile(card, Path(folder) / "profile", nfs=[FIREWALL_NF], quota=RUNS_PER_NF, seed=setting.seed)
        models = train(read_profile(out))
    compared = {
        "slomo": train_slomo(models, PENSANDO_SPEC, setting.seed, setting.count(RUNS_PER_NF, least=60)),
        "tomur": TomurPredictor(drop_corrections(models)),
    }
    rng = setting.rng("table9")
    traffics = random_traffics(setting.count(COMPARED_RUNS), rng)
    measured = run_with_benches(
        FIREWALL_NF, [(traffic, (random_mem_bench(rng),)) for traffic in traffics], setting, card
    )
    errors = {
        (FIREWALL_NF, name, PENSANDO_SPEC): errors_pct(measured.predicted(predictor), measured.truth)
        for name, predictor in compared.items()
    }
    table = score_table(errors, PUBLISHED_ACCURACY)
    return Result(
        table,
        (
            f"{SIMULATED_CARD}: no runs; training and ground truth are on {PENSANDO_SPEC}, another simulated card.",
            f"{HARDWARE_CARD}: no runs.",
        ),
        partial(draw_scores, table=table),
        (
            METRICS_NOTE,
            "The paper prints nothing of its card but that the NF needs memory and the accelerator for regular "
            "expressions; all figures of ours are assumed. SLOMO is trained at default traffic.",
        ),
    )
