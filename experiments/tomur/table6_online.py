"""Table 6, decided online: what each rule wastes and breaks with the predictor and with an oracle that never errs."""

from __future__ import annotations

import atexit
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import is_worse
from experiments.registry import Result, Setting, experiment
from experiments.tomur import PAPER
from experiments.tomur.methodology.arrival_sequences import ARRIVALS, SEQUENCES, each_sequence, written
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
"""The curve over risks is drawn from every third sequence."""

PREDICTOR, NOISE_FREE = "tomur", "noise-free"
PUBLISHED = {"tomur": (0.5, 1.9)}

Key = tuple[str, str, float | None]
Told = dict[Key, list[tuple[float, float]]]
Oracles = dict[tuple[str, float | None], tuple[Oracle, ...]]


@experiment(
    PAPER, "table6-online", "Wastage and SLA violations of every online rule, beside the same with a noise-free oracle"
)
def run(setting: Setting) -> Result:
    """Random sequences of 500 arrivals of nine NFs at default traffic, each with an SLA of 5 to 20 % drop."""
    told: Told = defaultdict(list)
    sequences = setting.count(SEQUENCES)
    for placed in each_sequence(setting, _placed):
        for key, value in placed.items():
            told[key].append(value)
    table = pd.DataFrame([_row(key, np.array(values), told) for key, values in told.items()])
    return Result(
        table,
        ("the simulated BlueField-2: everything, predictors and judge.", "BlueField-2: nothing; none was at hand."),
        partial(_draw, table=table),
        (
            f"{sequences} sequences of {ARRIVALS}, one in {RISKS_EVERY} for the risks; wastage is against the optimum.",
            "above_noise_free is in points of wastage, against the same rule on the same sequences; a wastage below it "
            "is no virtue, it is SLAs broken.",
            "risk is the probability at which an instance may miss its SLA, as the predictor knows its own errors; "
            f"{DEFAULT_RISK} is the default, 0.5 the best guess.",
        ),
    )


@cache
def _opened() -> tuple[Catalogue, Oracles]:
    """Once in a process, until it ends: oracles remember their answers over all its sequences."""
    stack = ExitStack()
    atexit.register(stack.close)
    catalogue = open_catalogue(Cards(), stack, lambda message: None)
    return catalogue, _oracles(catalogue)


def _oracles(catalogue: Catalogue) -> Oracles:
    """By who answers and at which risk."""
    truth = catalogue.truth()
    assert truth is not None
    at_risk: Oracles = {
        (PREDICTOR, risk): replace(catalogue, risk=risk).oracles(PREDICTOR) for risk in (DEFAULT_RISK, *RISKS)
    }
    return {(NOISE_FREE, None): truth, **at_risk}


def _arrivals(catalogue: Catalogue, seed: int, count: int) -> list[Arrival]:
    with written(seed, count) as trace:
        return read_arrivals(trace, catalogue.default_traffic, catalogue.check)


def _placed(seed: int, count: int = ARRIVALS) -> dict[Key, tuple[float, float]]:
    """One sequence with every rule and oracle: what each wastes and breaks."""
    catalogue, oracles = _opened()
    arrivals, number = _arrivals(catalogue, seed, count), seed % SEQUENCES
    told = {}
    truth = oracles[next(iter(oracles))]
    optimum = optimal_plan([arrival.tenant for arrival in arrivals], catalogue.kinds, truth)
    for (name, risk), answering in oracles.items():
        for rule in RULES.values():
            if risk not in RISKS or (rule is LOOK_AHEAD and number % RISKS_EVERY == 0):
                judged = _judged(arrivals, catalogue, answering, rule, truth, len(optimum.nics))
                told[rule.name, name, risk] = judged
    return told


def _judged(
    arrivals: list[Arrival],
    catalogue: Catalogue,
    oracles: tuple[Oracle, ...],
    rule: Rule,
    truth: tuple[Oracle, ...],
    optimal: int,
) -> tuple[float, float]:
    plan = ContentionAware(catalogue, oracles=oracles, rule=rule).place(arrivals)
    judged = evaluate(plan, catalogue.kinds, truth)
    return 100.0 * (judged.nics / optimal - 1.0), judged.violations_pct or 0.0


def _row(key: Key, values: np.ndarray, told: Told) -> dict[str, object]:
    rule, name, risk = key
    same = next(values for (one, who, _), values in told.items() if (one, who) == (rule, NOISE_FREE))
    beside = np.array(same[::RISKS_EVERY] if risk in RISKS else same)
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
        "spread": float(values[:, 0].std(ddof=1)) if len(values) > 1 else np.nan,
        "above_noise_free": wastage - float(beside[:, 0].mean()),
        "sla_violations_pct": violations,
        "published_wastage_pct": theirs[0],
        "published_sla_violations_pct": theirs[1],
        "worse": ", ".join(name for name, ours, their in worse if is_worse(ours, their)),
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    """Wastage against violations: the curve over risks, and every rule beside it."""
    axes = figure.subplots()
    ahead = table[(table["rule"] == LOOK_AHEAD.name) & (table["oracle"] == PREDICTOR)].sort_values("sla_violations_pct")
    axes.plot(ahead["sla_violations_pct"], ahead["wastage_pct"], color="gray", linewidth=1, zorder=0)
    for rule, oracle, risk, *place in table[["rule", "oracle", "risk", "sla_violations_pct", "wastage_pct"]].to_numpy():
        axes.plot(*place, "o" if oracle == PREDICTOR else "s", color=f"C{list(RULES).index(rule)}")
        told = f"risk {risk}" if risk and rule == LOOK_AHEAD.name else f"{rule}, {oracle}"
        axes.annotate(told, (place[0], place[1]), textcoords="offset points", xytext=(4, 4), fontsize=7)
    axes.set_xlabel("instances below their SLA, %")
    axes.set_ylabel("NICs over the optimum, %")
