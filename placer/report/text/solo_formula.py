"""The formula of an NF's throughput alone in words, and as JSON (docs/formats/diagnoses.md)."""

from itertools import pairwise
from typing import Any

from placer.explain.solo_formula import SoloFormula, Turn
from predictor.fitting.model_file import model_document

CACHE_CAUSE = "cache"
STEEPER_FACTOR = 1.25  # factor between two slopes from which one is called steeper
ATTRIBUTE_WORDS = {"flows": "flows", "packet_size": "bytes", "mtbr": "matches per MB"}


def formula_sentences(formula: SoloFormula) -> list[str]:
    """What was fitted, the formula by segment, and a sentence per breakpoint."""
    model = formula.model
    held = ", ".join(f"{name} {value:g}" for name, value in formula.traffic.items())
    source = f"fitted to {model.points} runs" if formula.measured else "fitted to what its solo model predicts"
    edges = [model.start, *(curve_break.at for curve_break in model.breakpoints), model.end]
    lines = [f"Throughput alone (kpps) over {model.x}, at {held}; {source}, error {model.smape_pct:.2f} %:"]
    for segment, (start, end) in zip(model.segments, pairwise(edges), strict=True):
        lines.append(f"  from {start:,.0f} to {end:,.0f}: {segment.formula(model.x)};")
    lines[-1] = f"{lines[-1][:-1]}."
    return lines + [f"  It {turn_sentence(formula, turn)}." for turn in formula.turns]


def turn_sentence(formula: SoloFormula, turn: Turn) -> str:
    """What throughput does at a breakpoint, and why where that is known."""
    at = f"{turn.at:,.0f} {ATTRIBUTE_WORDS.get(formula.model.x, formula.model.x)}"
    interval = f" ({turn.low:,.0f} to {turn.high:,.0f})" if turn.low is not None and turn.high is not None else ""
    if interval == "":
        at = f"about {at}"
    verb = _slope(turn)
    falls = turn.jump < 0 or verb.startswith("falls")
    because = ""
    if turn.cause == CACHE_CAUSE and falls:
        because = f", once the working set no longer fits the cache of {formula.cache_mb:.1f} MB"
        if not turn.jump and formula.model.x == "flows":
            return f"{verb} once {at}{interval} no longer fit the cache of {formula.cache_mb:.1f} MB"
    elif turn.cause and turn.cause != CACHE_CAUSE:
        because = f": from there, {turn.cause} is the bottleneck"
    if turn.jump:
        size = f"{'falls' if turn.jump < 0 else 'rises'} by {abs(turn.jump):,.0f} kpps"
        return f"{size} at {at}{interval}, and {verb} from there on{because}"
    return f"{verb} from {at} on{interval}{because}"


def _slope(turn: Turn) -> str:
    if turn.after == 0:
        return "is steady"
    word = "falls" if turn.after < 0 else "rises"
    if turn.before * turn.after <= 0:
        return word
    share = turn.after / turn.before
    return f"{word} faster" if share > STEEPER_FACTOR else f"{word} more slowly" if share < 1 / STEEPER_FACTOR else word


def formula_json(formula: SoloFormula) -> dict[str, Any]:
    """The fitted model without its time, and what else a `SoloFormula` says."""
    document = model_document(formula.model)
    del document["seconds"]
    turns = [
        {**point, "low": turn.low, "high": turn.high, "cause": turn.cause, "text": turn_sentence(formula, turn)}
        for point, turn in zip(document["breakpoints"], formula.turns, strict=True)
    ]
    source = "measured" if formula.measured else "predicted"
    return {**document, "breakpoints": turns, "source": source, "traffic": dict(formula.traffic)}
