"""The smallest allocation, and the greedy procedure beside it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor.chains import scaling
from predictor.chains.chain_fitting import fit_chain
from predictor.chains.chain_model import ChainModel
from predictor.chains.placed_chain import PlacedChain
from predictor.chains.profiled_nf import ProfiledNf
from predictor.chains.scaling import (
    Allocation,
    ScalingTarget,
    greedy_allocation,
    predict_allocations,
    smallest_allocation,
)

SHARES = np.round(np.linspace(0.1, 1.0, 10), 3)
AMOUNTS = {"nx": SHARES.tolist(), "sc": SHARES.tolist()}


def chain(nx: float = 100.0, sc: float = 50.0, *, cores: list[list[int]] | None = None) -> ChainModel:
    """Two NFs whose throughput is proportional to their CPU share."""
    profiles = {
        nf: ProfiledNf.fit(nf, ("cpu",), SHARES[:, None], most * SHARES, regressor="interpolation")
        for nf, most in (("nx", nx), ("sc", sc))
    }
    return fit_chain(profiles, PlacedChain.of(["nx", "sc"], cores=cores), cores_are_known=cores is not None)


def test_each_nf_takes_the_least_share_that_meets_the_target() -> None:
    """20 kpps are 0.2 of an NF that reaches 100, and 0.4 of one that reaches 50."""
    found = smallest_allocation(chain(), ScalingTarget(20, {}), AMOUNTS)
    assert found.allocation == {"nx": 0.2, "sc": 0.4} and found.tried == ()
    assert found.total == pytest.approx(0.6)


def test_a_target_that_nothing_meets_has_no_allocation() -> None:
    found = smallest_allocation(chain(), ScalingTarget(51, {}), AMOUNTS)
    assert found.allocation is None and found.total == float("inf")


def test_the_greedy_procedure_runs_the_chain_at_every_step() -> None:
    """Both begin at 0.1; sc is weaker and grows by itself until both are about equal."""
    found = greedy_allocation(chain(), ScalingTarget(20, {}), AMOUNTS)
    assert found.allocation == {"nx": 0.2, "sc": 0.4}
    assert [tuple(one.values()) for one in found.tried] == [(0.1, 0.1), (0.1, 0.2), (0.2, 0.3), (0.2, 0.4)]


def test_the_greedy_procedure_takes_measurements_where_there_are_any() -> None:
    """A chain that is half as fast as predicted takes twice as much."""
    model = chain()
    target = ScalingTarget(20, {})

    def run(allocation: Allocation) -> float:
        amounts = {nf: np.array([amount]) for nf, amount in allocation.items()}
        return float(predict_allocations(model, target, amounts).predicted[0]) / 2

    found = greedy_allocation(model, target, AMOUNTS, run)
    assert found.allocation == {"nx": 0.4, "sc": 0.8}


def test_the_greedy_procedure_ends_when_there_is_no_more() -> None:
    found = greedy_allocation(chain(), ScalingTarget(80, {}), AMOUNTS)
    assert found.allocation is None and found.tried[-1]["sc"] == 1.0


def test_on_one_core_the_best_division_is_found() -> None:
    """Costs add: no division of a smaller total meets the target, as trying all shows."""
    model, target = chain(cores=[[0, 1]]), ScalingTarget(15, {})
    found = smallest_allocation(model, target, AMOUNTS)
    assert found.allocation is not None
    assert found.total == pytest.approx(_least_total(model, target))


def _least_total(model: ChainModel, target: ScalingTarget) -> float:
    rows = np.array(list(product(SHARES, SHARES)))
    met = target.met(model, predict_allocations(model, target, {"nx": rows[:, 0], "sc": rows[:, 1]}))
    return float(rows[met].sum(axis=1).min()) if met.any() else float("inf")


@settings(max_examples=30)
@given(st.floats(20, 300), st.floats(20, 300), st.floats(1, 200), st.booleans(), st.booleans())
def test_no_smaller_total_meets_the_target(nx: float, sc: float, needed: float, shared: bool, safe: bool) -> None:
    """Over random NFs, apart and on one core, for the prediction and for the interval's worse end."""
    model, target = chain(nx, sc, cores=[[0, 1]] if shared else None), ScalingTarget(needed, {}, safe=safe)
    assert smallest_allocation(model, target, AMOUNTS).total == pytest.approx(_least_total(model, target))


def test_too_many_combinations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "MOST_COMBINATIONS", 99)
    with pytest.raises(ValueError, match="100 combinations of amounts are more than 99"):
        smallest_allocation(chain(cores=[[0, 1]]), ScalingTarget(20, {}), AMOUNTS)


def test_response_times_need_no_more_than_the_target() -> None:
    """5/cpu ms: at most 20 ms with 0.3."""
    profile = ProfiledNf.fit("nx", ("cpu",), SHARES[:, None], 5 / SHARES, regressor="interpolation")
    model = fit_chain({"nx": profile}, PlacedChain.of(["nx"]), higher_is_better=False)
    found = smallest_allocation(model, ScalingTarget(20, {}), {"nx": SHARES.tolist()})
    assert found.allocation == {"nx": 0.3}
