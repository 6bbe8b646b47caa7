"""A formula of throughput alone in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placer.explain.solo_formula import SoloFormula, Turn
from placer.report.text.solo_formula import formula_json, formula_sentences, turn_sentence
from predictor.fitting.fitted_model import CurveBreak
from tests.predictor.fitting.made_up_models import made_up

MODEL = made_up(
    (1.0, 9800.0, 500000.0), ("constant", (1000.0,)), ("inverse", (400.0, 5.88e6)),
    x="flows", y="throughput_kpps", breaks=[CurveBreak(9800, 9300, 10400, 0.0)], points=40, errors=(0.2, None, 0.2),
)  # fmt: skip
TURN = Turn(9800, 9300, 10400, 0.0, -2.0, 0.0, None)
FORMULA = SoloFormula(MODEL, {"packet_size": 1500, "mtbr": 600}, True, (TURN,), 6.291456)


@pytest.mark.parametrize(
    ("turn", "sentence"),
    [
        (TURN, "falls from 9,800 flows on (9,300 to 10,400)"),
        (replace(TURN, cause="cache"), "falls once 9,800 flows (9,300 to 10,400) no longer fit the cache of 6.3 MB"),
        (
            replace(TURN, cause="regex"),
            "falls from 9,800 flows on (9,300 to 10,400): from there, regex is the bottleneck",
        ),
        (replace(TURN, before=-1.0), "falls faster from 9,800 flows on (9,300 to 10,400)"),
        (replace(TURN, before=-4.0), "falls more slowly from 9,800 flows on (9,300 to 10,400)"),
        (replace(TURN, after=0.0, cause="cache"), "is steady from 9,800 flows on (9,300 to 10,400)"),
        (replace(TURN, after=2.0), "rises from 9,800 flows on (9,300 to 10,400)"),
        (replace(TURN, jump=-222.0), "falls by 222 kpps at 9,800 flows (9,300 to 10,400), and falls from there on"),
        (replace(TURN, low=None, high=None), "falls from about 9,800 flows on"),
    ],
)
def test_a_sentence_per_breakpoint(turn: Turn, sentence: str) -> None:
    """What throughput does from there on; the cause only where it is known, the interval only of measurements."""
    assert turn_sentence(FORMULA, turn) == sentence


def test_the_formula_by_segment() -> None:
    """With its source and error, then the breakpoint."""
    assert formula_sentences(FORMULA) == [
        "Throughput alone (kpps) over flows, at packet_size 1500, mtbr 600; fitted to 40 runs, error 0.20 %:",
        "  from 1 to 9,800: 1000;",
        "  from 9,800 to 500,000: 400 + 5.88e+06/flows.",
        "  It falls from 9,800 flows on (9,300 to 10,400).",
    ]


def test_json_has_the_model_its_source_and_the_sentences() -> None:
    """Keys of a fitted model without its time."""
    document = formula_json(replace(FORMULA, measured=False))
    assert (document["source"], document["x"], document["traffic"]["mtbr"]) == ("predicted", "flows", 600)
    assert document["breakpoints"][0]["text"] == "falls from 9,800 flows on (9,300 to 10,400)"
    assert "seconds" not in document
