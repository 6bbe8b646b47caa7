"""Table 2: accuracy of SLOMO and Tomur with contention for several resources and changing traffic."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from experiments.methodology.accuracy import METRICS_NOTE, draw_scores, errors_pct, score_table, with_means
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.co_locations import NINE_TRAFFICS, co_locations_of
from experiments.tomur.methodology.simulated_card import CARD_SPECS, card_of, train, truth
from experiments.tomur.methodology.slomo import predictors
from profiles.arrays import Floats
from traces.arrivals import TABLE_2_NFS

CO_LOCATIONS = 270
CALIBRATED_TOMUR = "tomur, calibrated"

PUBLISHED_ACCURACY = {
    "ACL": {"slomo": (1.3, 100.0, 100.0), "tomur": (1.2, 100.0, 100.0)},
    "NIDS": {"slomo": (16.2, 24.3, 74.3), "tomur": (1.5, 95.9, 100.0)},
    "IPTunnel": {"slomo": (62.9, 70.5, 73.1), "tomur": (3.8, 75.6, 92.3)},
    "IPRouter": {"slomo": (4.2, 68.4, 98.2), "tomur": (3.8, 66.7, 100.0)},
    "FlowClassifier": {"slomo": (7.5, 28.1, 73.7), "tomur": (3.8, 63.2, 100.0)},
    "FlowTracker": {"slomo": (4.9, 56.1, 86.0), "tomur": (3.9, 61.4, 100.0)},
    "FlowStats": {"slomo": (11.7, 33.3, 57.9), "tomur": (4.3, 70.2, 96.5)},
    "FlowMonitor": {"slomo": (40.9, 31.1, 41.9), "tomur": (4.5, 62.2, 93.2)},
    "NAT": {"slomo": (8.2, 38.6, 49.1), "tomur": (6.4, 42.1, 80.7)},
}
PUBLISHED_MEANS = {"slomo": (17.5, 50.0, 72.7), "tomur": (3.7, 70.8, 95.9), CALIBRATED_TOMUR: (np.nan,) * 3}


@experiment(PAPER, "table2", "Prediction accuracy with several contended resources and nine traffic profiles")
def run(setting: Setting) -> Result:
    """Each of nine NFs co-located with one to three random others, every NF with one of nine traffic profiles."""
    errors = {key: values for testbed in CARD_SPECS for key, values in _errors(testbed, setting)}
    published = {(nf, name): scores for nf, of in PUBLISHED_ACCURACY.items() for name, scores in of.items()}
    table = with_means(score_table(errors, published), PUBLISHED_MEANS)
    return Result(
        table,
        (
            f"{SIMULATED_CARD}: all runs, training and ground truth, on both simulated cards.",
            f"{HARDWARE_CARD}: no runs; the measurements contain no co-located NFs.",
        ),
        partial(draw_scores, table=table),
        (
            METRICS_NOTE,
            "The co-locations are a random sample; the paper runs all of them. It does not publish its nine traffic "
            "profiles.",
            f"'{CALIBRATED_TOMUR}' is the predictor of `placer train`. Its profile also contains co-located NFs, in "
            "one in three of its runs.",
        ),
    )


def _errors(testbed: str, setting: Setting) -> Iterator[tuple[tuple[str, str, str], Floats]]:
    """The errors (%) of every predictor for every NF on one card, by NF, predictor and card."""
    setting.say(f"table2: nine NFs on the card `{testbed}`")
    by_name = {**predictors(setting, testbed), CALIBRATED_TOMUR: train(setting, testbed).predictors["tomur"]}
    for nf in PUBLISHED_ACCURACY:
        co_locations = co_locations_of(
            nf,
            setting.count(CO_LOCATIONS, least=len(NINE_TRAFFICS)),
            setting.rng(f"table2 {nf}"),
            others=TABLE_2_NFS,
            traffics=NINE_TRAFFICS,
        )
        measured = truth(co_locations, card_of(testbed))
        for name, predictor in by_name.items():
            predicted = np.array([rates[0] for rates in predictor.throughput(co_locations)])
            yield (nf, name, testbed), errors_pct(predicted, measured)
