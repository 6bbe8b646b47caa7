"""Table 6 with online rules: wastage and SLA violations with Tomur's predictions and with exact throughputs."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.methodology.accuracy import is_worse, verdict_on
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.arrival_sequences import (
    ARRIVAL_COUNT,
    LENGTH_NOTE,
    SEQUENCE_COUNT,
    each_sequence,
    fleet_of,
)
from experiments.tomur.methodology.simulated_card import CARD_SPECS
from placer.model.catalogue import DEFAULT_BUDGET_PCT
from placer.model.oracle import Oracle
from placer.policy.rules import LOOK_AHEAD, RULES_BY_NAME
from placer.strategies.contention_aware import ContentionAware

RISKS_TRIED = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
RISKS_EVERY = 3  # the curve over risks uses one in three sequences

JUDGED_PREDICTOR, NOISE_FREE = "tomur", "noise-free"
"""Oracles: predicted throughputs, and the true ones of the simulated card."""
PUBLISHED_RESULT = (0.5, 1.9)  # wastage and SLA violations (%) with Tomur


class Key(NamedTuple):
    """A row of the table; with Tomur's predictions, the risk was given, or is chosen for the default budget (None)."""

    testbed: str
    rule: str
    oracle: str
    risk: float | None = None


Scores = dict[Key, list[tuple[float, float]]]  # wastage and SLA violations (%) of every sequence


@experiment(PAPER, "table6-online", "Wastage and SLA violations of online rules, with predicted and exact throughput")
def run(setting: Setting) -> Result:
    """Random sequences of 500 arrivals of nine NFs at default traffic, each with an SLA of 5 to 20 % drop."""
    scores: Scores = defaultdict(list)
    sequences = setting.count(SEQUENCE_COUNT)
    for of_sequence in each_sequence(setting, _scores):
        for key, score in of_sequence.items():
            scores[key].append(score)
    ordered = sorted(scores, key=lambda key: CARD_SPECS.index(key.testbed))
    table = pd.DataFrame([_row(key, np.array(scores[key]), scores) for key in ordered])
    return Result(
        table,
        (
            f"{SIMULATED_CARD}: all runs, training and ground truth, on both simulated cards.",
            f"{HARDWARE_CARD}: no runs; no card was available.",
        ),
        partial(_draw, table=table),
        (
            f"{sequences} sequences of {ARRIVAL_COUNT} arrivals on each card; one in {RISKS_EVERY} for rows with a "
            "risk. Wastage is relative to the proven optimum.",
            f"Rows of {JUDGED_PREDICTOR} without a risk are placed for the default budget of {DEFAULT_BUDGET_PCT:g} % "
            "SLA violations.",
            LENGTH_NOTE,
            "Column above_noise_free: the additional wastage, in percentage points, compared with the same rule and "
            "exact throughputs on the same sequences. A negative value comes with SLA violations.",
            "Column risk: the accepted probability that an NF instance violates its SLA, estimated from the "
            "predictor's own errors. 0.5 uses the median prediction.",
            "Column std_dev: standard deviation of the wastage over the sequences.",
        ),
    )


@cache
def _oracles(testbed: str, risk: float) -> tuple[Oracle, ...]:
    """Predicted throughputs at that risk; one per process, since it caches them over all sequences."""
    return replace(fleet_of(testbed).catalogue, risk=risk).oracles(JUDGED_PREDICTOR)


def _scores(seed: int, count: int = ARRIVAL_COUNT) -> dict[Key, tuple[float, float]]:
    """Wastage and SLA violations (%) of every rule with every oracle on one sequence, on both cards."""
    scores = {}
    for testbed in CARD_SPECS:
        fleet = fleet_of(testbed)
        arrivals = fleet.arrivals(seed, count)
        fewest = fleet.fewest_nics(arrivals)
        for key, strategy in _strategies(testbed, with_risks=seed % SEQUENCE_COUNT % RISKS_EVERY == 0):
            scores[key] = fleet.score(strategy.place(arrivals), fewest)
    return scores


def _strategies(testbed: str, *, with_risks: bool) -> Iterator[tuple[Key, ContentionAware]]:
    """Every rule with every oracle; `with_risks`, also look-ahead at every risk."""
    fleet = fleet_of(testbed)
    for rule in RULES_BY_NAME.values():
        yield Key(testbed, rule.name, NOISE_FREE), ContentionAware(fleet.catalogue, oracles=fleet.truth, rule=rule)
    for rule in RULES_BY_NAME.values():
        yield Key(testbed, rule.name, JUDGED_PREDICTOR), ContentionAware(fleet.catalogue, JUDGED_PREDICTOR, rule=rule)
    for risk in RISKS_TRIED if with_risks else ():
        oracles = _oracles(testbed, risk)
        yield Key(testbed, LOOK_AHEAD.name, JUDGED_PREDICTOR, risk), ContentionAware(fleet.catalogue, oracles=oracles)


def _row(key: Key, values: np.ndarray, scores: Scores) -> dict[str, object]:
    exact = scores[Key(key.testbed, key.rule, NOISE_FREE)]
    noise_free = np.array(exact if key.risk is None else exact[::RISKS_EVERY])
    wastage, violations = values.mean(axis=0).tolist()
    published = key[1:] == (LOOK_AHEAD.name, JUDGED_PREDICTOR, None)
    theirs = PUBLISHED_RESULT if published else (np.nan, np.nan)
    worse = [("wastage", wastage, theirs[0]), ("violations", violations, theirs[1])]
    return {
        "testbed": key.testbed,
        "rule": key.rule,
        "oracle": key.oracle,
        "risk": "" if key.risk is None else f"{key.risk:g}",
        "wastage_pct": wastage,
        "std_dev": float(values[:, 0].std(ddof=1)) if len(values) > 1 else np.nan,
        "above_noise_free": wastage - noise_free.mean(axis=0).tolist()[0],
        "sla_violations_pct": violations,
        "published_wastage_pct": theirs[0],
        "published_sla_violations_pct": theirs[1],
        "verdict": verdict_on(name for name, ours, their in worse if is_worse(ours, their)),
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    """Per card, wastage over SLA violations: a curve over risks, and a point per rule and oracle."""
    for axes, testbed in zip(figure.subplots(1, len(CARD_SPECS)), CARD_SPECS, strict=True):
        _draw_card(axes, table[table["testbed"] == testbed])
        axes.set_title(testbed)


def _draw_card(axes: Axes, table: pd.DataFrame) -> None:
    curve = table[table["risk"] != ""].sort_values("sla_violations_pct")
    axes.plot(curve["sla_violations_pct"], curve["wastage_pct"], color="gray", linewidth=1, zorder=0)
    for rule, oracle, risk, *place in table[["rule", "oracle", "risk", "sla_violations_pct", "wastage_pct"]].to_numpy():
        axes.plot(*place, "o" if oracle == JUDGED_PREDICTOR else "s", color=f"C{list(RULES_BY_NAME).index(rule)}")
        label = f"risk {risk}" if risk else f"{rule}, {oracle}"
        axes.annotate(label, (place[0], place[1]), textcoords="offset points", xytext=(4, 4), fontsize=7)
    axes.set(xlabel="SLA violations, % of NF instances", ylabel="wastage, %")
