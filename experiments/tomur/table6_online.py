"""Table 6 with online rules: wastage and SLA violations with Tomur's predictions and with exact throughputs."""

from __future__ import annotations

import atexit
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import is_worse, verdict_on
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE, PAPER, SIMULATED
from experiments.tomur.methodology.arrival_sequences import ARRIVALS, SEQUENCES, each_sequence, sequence
from placer.evaluate.evaluation import evaluate
from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.oracle import DEFAULT_RISK, Oracle
from placer.optimal import optimal_plan
from placer.policy.rules import LOOK_AHEAD, RULES, Rule
from placer.strategies.contention_aware import ContentionAware

RISKS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
RISKS_EVERY = 3
"""The curve over risks uses one in three sequences."""

PREDICTOR, NOISE_FREE = "tomur", "noise-free"
"""Oracles: predicted throughputs, and the true ones of the simulated card."""
PUBLISHED = {"tomur": (0.5, 1.9)}

Key = tuple[str, str, float | None]
"""Rule, oracle and risk."""
Scores = dict[Key, list[tuple[float, float]]]
"""Wastage and SLA violations (%) of every sequence."""
Oracles = dict[tuple[str, float | None], tuple[Oracle, ...]]


@experiment(PAPER, "table6-online", "Wastage and SLA violations of online rules, with predicted and exact throughput")
def run(setting: Setting) -> Result:
    """Random sequences of 500 arrivals of nine NFs at default traffic, each with an SLA of 5 to 20 % drop."""
    scores: Scores = defaultdict(list)
    sequences = setting.count(SEQUENCES)
    for of_sequence in each_sequence(setting, _scores):
        for key, score in of_sequence.items():
            scores[key].append(score)
    table = pd.DataFrame([_row(key, np.array(values), scores) for key, values in scores.items()])
    return Result(
        table,
        (f"{SIMULATED}: all runs, training and ground truth.", f"{HARDWARE}: no runs; no card was available."),
        partial(_draw, table=table),
        (
            f"{sequences} sequences of {ARRIVALS} arrivals; one in {RISKS_EVERY} for risks other than the default. "
            "Wastage is relative to the proven optimum.",
            "Column above_noise_free: the additional wastage, in percentage points, compared with the same rule and "
            "exact throughputs on the same sequences. A negative value comes with SLA violations.",
            "Column risk: the accepted probability that an NF instance violates its SLA, estimated from the "
            f"predictor's own errors. {DEFAULT_RISK} is the default; 0.5 uses the median prediction.",
            "Column std_dev: standard deviation of the wastage over the sequences.",
        ),
    )


@cache
def _opened() -> tuple[Catalogue, Oracles]:
    """The catalogue and the oracles, opened once in a process: oracles cache throughputs over all its sequences."""
    stack = ExitStack()
    atexit.register(stack.close)
    catalogue = open_catalogue(Cards(), stack, lambda message: None)
    return catalogue, _oracles(catalogue)


def _oracles(catalogue: Catalogue) -> Oracles:
    """Every oracle, by name and risk."""
    truth = catalogue.truth()
    assert truth is not None
    at_risk: Oracles = {
        (PREDICTOR, risk): replace(catalogue, risk=risk).oracles(PREDICTOR) for risk in (DEFAULT_RISK, *RISKS)
    }
    return {(NOISE_FREE, None): truth, **at_risk}


def _arrivals(catalogue: Catalogue, seed: int, count: int) -> list[Arrival]:
    return read_arrivals(sequence(seed, count), catalogue.default_traffic, catalogue.check)


def _scores(seed: int, count: int = ARRIVALS) -> dict[Key, tuple[float, float]]:
    """Wastage and SLA violations (%) of every rule with every oracle on one sequence."""
    catalogue, oracles = _opened()
    arrivals, number = _arrivals(catalogue, seed, count), seed % SEQUENCES
    scores = {}
    truth = oracles[NOISE_FREE, None]
    optimum = optimal_plan([arrival.tenant for arrival in arrivals], catalogue.kinds, truth)
    for (name, risk), predicted in oracles.items():
        for rule in RULES.values():
            if risk not in RISKS or (rule is LOOK_AHEAD and number % RISKS_EVERY == 0):
                score = _score(arrivals, catalogue, predicted, rule, truth, len(optimum.nics))
                scores[rule.name, name, risk] = score
    return scores


def _score(
    arrivals: list[Arrival],
    catalogue: Catalogue,
    oracles: tuple[Oracle, ...],
    rule: Rule,
    truth: tuple[Oracle, ...],
    optimal: int,
) -> tuple[float, float]:
    plan = ContentionAware(catalogue, oracles=oracles, rule=rule).place(arrivals)
    evaluation = evaluate(plan, catalogue.kinds, truth)
    return 100.0 * (evaluation.nics / optimal - 1.0), evaluation.violations_pct or 0.0


def _row(key: Key, values: np.ndarray, scores: Scores) -> dict[str, object]:
    rule, name, risk = key
    exact = scores[rule, NOISE_FREE, None]
    noise_free = np.array(exact[::RISKS_EVERY] if risk in RISKS else exact)
    wastage, violations = values.mean(axis=0).tolist()
    theirs = (
        PUBLISHED.get(name, (np.nan, np.nan)) if rule == LOOK_AHEAD.name and risk == DEFAULT_RISK else (np.nan, np.nan)
    )
    worse = [("wastage", wastage, theirs[0]), ("violations", violations, theirs[1])]
    return {
        "rule": rule,
        "oracle": name,
        "risk": "" if risk is None else f"{risk:g}",
        "wastage_pct": wastage,
        "std_dev": float(values[:, 0].std(ddof=1)) if len(values) > 1 else np.nan,
        "above_noise_free": wastage - float(noise_free[:, 0].mean()),
        "sla_violations_pct": violations,
        "published_wastage_pct": theirs[0],
        "published_sla_violations_pct": theirs[1],
        "verdict": verdict_on(name for name, ours, their in worse if is_worse(ours, their)),
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    """Wastage over SLA violations: a curve over risks, and a point per rule and oracle."""
    axes = figure.subplots()
    ahead = table[(table["rule"] == LOOK_AHEAD.name) & (table["oracle"] == PREDICTOR)].sort_values("sla_violations_pct")
    axes.plot(ahead["sla_violations_pct"], ahead["wastage_pct"], color="gray", linewidth=1, zorder=0)
    for rule, oracle, risk, *place in table[["rule", "oracle", "risk", "sla_violations_pct", "wastage_pct"]].to_numpy():
        axes.plot(*place, "o" if oracle == PREDICTOR else "s", color=f"C{list(RULES).index(rule)}")
        label = f"risk {risk}" if risk and rule == LOOK_AHEAD.name else f"{rule}, {oracle}"
        axes.annotate(label, (place[0], place[1]), textcoords="offset points", xytext=(4, 4), fontsize=7)
    axes.set_xlabel("SLA violations, % of NF instances")
    axes.set_ylabel("wastage, %")
