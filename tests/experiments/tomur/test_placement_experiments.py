"""Tables 6 and the budget's curve: rows by hand, and a short sequence on both cards."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from experiments.tomur import budget, table6_online, table6_optimal
from experiments.tomur.methodology.simulated_card import TESTBEDS
from placer.policy.rules import RULES_BY_NAME

FIRST = TESTBEDS[0]


@pytest.fixture(scope="module")
def at_budgets() -> dict[budget.Key, budget.Score]:
    """A sequence of 12 arrivals at every budget."""
    return budget._scores(0, count=12)


@pytest.mark.long
def test_a_sequence_is_placed_at_every_budget_on_both_cards(at_budgets: dict[budget.Key, budget.Score]) -> None:
    """Also with exact throughputs, which violate no SLA and expect none."""
    assert set(at_budgets) == {(testbed, at) for testbed in TESTBEDS for at in (None, *budget.BUDGETS_PCT)}
    for testbed in TESTBEDS:
        assert at_budgets[testbed, None].violations_pct == 0
        assert np.isnan(at_budgets[testbed, None].expected_pct)


@pytest.mark.long
def test_a_much_larger_budget_chooses_a_larger_risk(at_budgets: dict[budget.Key, budget.Score]) -> None:
    """The budget determines the risk; budgets near one another may find either's, since plans of 12 NFs leap."""
    for testbed in TESTBEDS:
        risks = [at_budgets[testbed, at].risk for at in budget.BUDGETS_PCT]
        assert max(risks[:2]) <= min(risks[3:])


def test_a_row_of_the_budget_has_means_and_the_share_of_sequences_that_kept_it() -> None:
    """Violations of 1 and 3 % at a budget of 2 %: a mean of 2 %, kept by half, worse than the published 1.9 %."""
    values = np.array([[4.0, 1.0, 1.5, 0.1], [6.0, 3.0, 1.7, 0.1]])
    row = budget._row(FIRST, 2.0, values, np.array([[3.0, 0.0, np.nan, np.nan]]))
    assert row["sla_violations_pct"] == pytest.approx(2.0)
    assert row["std_error"] == pytest.approx(1.0)
    assert row["expected_violations_pct"] == pytest.approx(1.6)
    assert (row["noise_free_wastage_pct"], row["kept_pct"]) == (3.0, 50.0)
    assert row["verdict"] == "worse: wastage, violations"


def test_budgets_without_a_published_number_have_no_verdict() -> None:
    """The paper has one point."""
    assert budget._row(FIRST, 5.0, np.full((2, 4), 9.0), np.zeros((2, 4)))["verdict"] == ""


@pytest.mark.parametrize("draw", [budget._draw, table6_online._draw, table6_optimal._draw])
def test_the_plot_shows_both_cards(draw: object) -> None:
    """A curve, a panel or bars of each."""
    exact = np.array([[3.0, 0.0, np.nan, np.nan]])
    two = np.array([[4.0, 1.0, 1.5, 0.1], [6.0, 3.0, 1.7, 0.1]])
    rows: dict[object, list[dict[str, object]]] = {
        budget._draw: [budget._row(card, at, two, exact) for card in TESTBEDS for at in budget.BUDGETS_PCT],
        table6_online._draw: [
            table6_online._row(table6_online.Key(card, "look-ahead", oracle), two[:, :2], _exact(card))
            for card in TESTBEDS
            for oracle in ("noise-free", "tomur")
        ],
        table6_optimal._draw: [table6_optimal._row((card, "greedy", "-"), two[:, :3]) for card in TESTBEDS],
    }
    figure = Figure()
    draw(figure, table=pd.DataFrame(rows[draw]))  # type: ignore[operator]
    texts = [axes.get_title() for axes in figure.axes]
    legends = [legend for axes in figure.axes if (legend := axes.get_legend())]
    texts += [text.get_text() for legend in legends for text in legend.get_texts()]
    assert all(any(card in text for text in texts) for card in TESTBEDS)


@pytest.mark.long
def test_a_sequence_is_placed_by_every_rule_on_both_cards() -> None:
    """With exact throughputs no SLA is violated; the first sequence is also placed at every risk."""
    scores = table6_online._scores(0, count=8)
    asked = {(key.testbed, key.rule, key.oracle) for key in scores if key.risk is None}
    oracles = (table6_online.NOISE_FREE, table6_online.PREDICTOR)
    assert asked == {(card, rule, oracle) for card in TESTBEDS for rule in RULES_BY_NAME for oracle in oracles}
    assert {key.risk for key in scores if key.risk is not None} == set(table6_online.RISKS)
    assert all(violated == 0 for key, (_, violated) in scores.items() if key.oracle == table6_online.NOISE_FREE)


def _exact(card: str) -> table6_online.Scores:
    return {table6_online.Key(card, "look-ahead", "noise-free"): [(3.0, 0.0)]}


def test_only_look_ahead_at_the_default_budget_stands_beside_the_published_number() -> None:
    """Other rules and given risks have none."""
    two = np.array([[4.0, 1.0], [6.0, 3.0]])
    key = table6_online.Key(FIRST, "look-ahead", "tomur")
    scores = _exact(FIRST)
    assert table6_online._row(key, two, scores)["published_wastage_pct"] == 0.5
    assert np.isnan(table6_online._row(key._replace(risk=0.1), two, scores)["published_wastage_pct"])  # type: ignore[arg-type]


def test_nfs_per_nic_are_arrivals_over_the_mean_number_of_nics() -> None:
    """500 arrivals on 125 NICs are 4 per NIC; the published optimum has 2.96."""
    row = table6_optimal._row((FIRST, "optimal", "-"), np.array([[125.0, 0.0, 0.0]]))
    assert (row["nfs_per_nic"], row["published_nfs_per_nic"]) == ("4.00", "2.96")
