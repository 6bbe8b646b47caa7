"""Chains on cores: what limits them, and how many cores reach a target."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from placer.report.rack.predicted_chain import describe
from predictor.chains import chain_fitting, scaling
from predictor.chains.chain_fitting import fit_chain
from predictor.chains.chain_model import ChainModel
from predictor.chains.placed_chain import CostsByCore, PlacedChain, SoftWeakestLink, StageEffect, weakest_link
from predictor.chains.profiled_nf import ProfiledNf
from predictor.chains.scaling import (
    Allocation,
    ScalingTarget,
    greedy_allocation,
    predict_allocations,
    smallest_allocation,
)


def test_by_default_each_stage_has_a_core_and_all_packets() -> None:
    chain = PlacedChain.of(["nx", "sc"])
    assert chain.cores == ((0,), (1,)) and chain.shares.tolist() == [1, 1]


def test_stages_see_what_those_before_them_pass_on() -> None:
    """0.7 of the packets pass the first, half of these the second; what the last drops concerns nobody."""
    effects = [StageEffect(0.7), StageEffect(0.5), StageEffect(0.1)]
    assert PlacedChain.of(["acl", "nat", "ids"], effects=effects).shares == pytest.approx([1, 0.7, 0.35])


def test_packet_sizes_change_from_stage_to_stage() -> None:
    """A tunnel adds 50 bytes, compression leaves 60 % of all of them."""
    effects = [StageEffect(bytes_added=50), StageEffect(bytes_factor=0.6), StageEffect()]
    chain = PlacedChain.of(["tunnel", "compress", "nat"], effects=effects)
    assert [stage.size(np.array([1000.0]))[0] for stage in chain.stages] == pytest.approx([1000, 1050, 630])


@pytest.mark.parametrize("cores", [[[0]], [[0, 1], [1]], [[0, 1, 2]], []])
def test_each_stage_is_on_one_core(cores: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="do not hold each of 2 stages once"):
        PlacedChain.of(["a", "b"], cores=cores)


def test_there_is_an_effect_for_each_stage() -> None:
    with pytest.raises(ValueError, match="1 effects are given for 2 NFs"):
        PlacedChain.of(["a", "b"], effects=[StageEffect()])


# How costs of stages compose.


ALL = np.ones(3)
COSTS = np.array([[1.0, 2.0, 4.0]])
NO_SOURCE = np.zeros(1)


def test_the_weakest_link_is_the_largest_cost() -> None:
    assert weakest_link(3).cost(COSTS, ALL, NO_SOURCE).tolist() == [4]


def test_on_one_core_costs_add_less_the_sources_own() -> None:
    """1/T = t0 + sum(1/T_i - t0), with t0 = 0.5: 0.5 + 0.5 + 1.5 + 3.5."""
    together = CostsByCore(((0, 1, 2),))
    assert together.cost(COSTS, ALL, np.array([0.5])).tolist() == [6.0]
    assert together.cost(COSTS, ALL, NO_SOURCE).tolist() == [7.0]
    assert CostsByCore(((0, 1, 2),), source_share=0.5).cost(COSTS, ALL, NO_SOURCE).tolist() == [6.0]


def test_across_cores_the_slowest_counts() -> None:
    """Receiving from a ring costs what receiving from the source does: 0.5 + 0.5 + 1.5, and 0.5 + 3.5."""
    assert CostsByCore(((0, 1), (2,))).cost(COSTS, ALL, np.array([0.5])).tolist() == [4.0]
    assert CostsByCore(((0,), (1, 2))).cost(COSTS, ALL, np.array([0.5])).tolist() == [5.5]


def test_later_stages_cost_the_share_that_reaches_them() -> None:
    """The first drops half of the packets: 4 becomes 2, on one core 0.5 + 0.5 + 0.75 + 1.75."""
    shares = np.array([1.0, 0.5, 0.5])
    assert weakest_link(3).cost(COSTS, shares, NO_SOURCE).tolist() == [2.0]
    assert CostsByCore(((0, 1, 2),)).cost(COSTS, shares, np.array([0.5])).tolist() == [3.5]


def test_names_follow_the_cores() -> None:
    names = [CostsByCore(cores).name for cores in (((0,), (1,)), ((0, 1),), ((0, 1), (2,)))]
    assert names == ["weakest-link", "costs-add", "costs-by-core"]
    assert "50 %" in str(CostsByCore(((0, 1),), 0.5)) and "power 3" in str(SoftWeakestLink(3))


positive = arrays(np.float64, (4, 3), elements=st.floats(0.01, 100))


@given(positive)
def test_a_soft_weakest_link_is_between_the_sum_and_the_weakest_link(costs: np.ndarray) -> None:
    source = np.zeros(4)
    largest, total = weakest_link(3).cost(costs, ALL, source), CostsByCore(((0, 1, 2),)).cost(costs, ALL, source)
    soft = SoftWeakestLink(3).cost(costs, ALL, source)
    assert (soft >= largest * (1 - 1e-12)).all() and (soft <= total * (1 + 1e-12)).all()
    assert SoftWeakestLink(1).cost(costs, ALL, source) == pytest.approx(total)


@given(positive, st.floats(0, 1))
def test_fewer_cores_cost_no_less(costs: np.ndarray, share: float) -> None:
    """Whatever the source takes, up to the cheapest stage."""
    source = share * costs.min(axis=1)
    cores = [((0,), (1,), (2,)), ((0, 1), (2,)), ((0, 1, 2),)]
    apart, some, together = (CostsByCore(one).cost(costs, ALL, source) for one in cores)
    assert (apart <= some * (1 + 1e-9)).all() and (some <= together * (1 + 1e-9)).all()


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

    assert greedy_allocation(model, target, AMOUNTS, run).allocation == {"nx": 0.4, "sc": 0.8}


def test_the_greedy_procedure_ends_when_there_is_no_more() -> None:
    found = greedy_allocation(chain(), ScalingTarget(80, {}), AMOUNTS)
    assert found.allocation is None and found.tried[-1]["sc"] == 1.0


def test_on_one_core_the_best_division_is_found() -> None:
    """Costs add: no division of a smaller total meets the target, as trying all shows."""
    model, target = chain(cores=[[0, 1]]), ScalingTarget(15, {})
    found = smallest_allocation(model, target, AMOUNTS)
    assert found.allocation is not None and found.total == pytest.approx(_least_total(model, target))


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


@pytest.mark.long
def test_a_chain_that_was_run_probably_meets_its_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten runs with 20 % noise of a chain in which sc is slower, two draws that promise too much, and five targets: the
    least allocations whose predictions meet these miss eight of ten."""
    met = dict.fromkeys((0.0, scaling.LIKELY_SHARE), 0)
    amounts = {nf: np.arange(0.1, 1.01, 0.05).tolist() for nf in AMOUNTS}
    for seed in (4, 6):
        draw = np.random.default_rng(seed)
        nx, sc = draw.choice(SHARES, (2, 10))
        runs = np.minimum(100 * nx, 40 * sc) * np.exp(0.2 * draw.normal(size=10))
        at, placed = {"nx.cpu": nx, "sc.cpu": sc}, PlacedChain.of(["nx", "sc"])
        model = fit_chain(chain().profiles, placed, measured_at=at, measured=runs)
        for share, target in product(met, (8, 12, 16, 20, 24)):
            monkeypatch.setattr(scaling, "LIKELY_SHARE", share)
            found = smallest_allocation(model, ScalingTarget(target, {}), amounts).allocation
            met[share] += found is not None and min(100 * found["nx"], 40 * found["sc"]) >= target - 1e-9
    assert list(met.values()) == [2, 10]


def test_response_times_need_no_more_than_the_target() -> None:
    """5/cpu ms: at most 20 ms with 0.3."""
    profile = ProfiledNf.fit("nx", ("cpu",), SHARES[:, None], 5 / SHARES, regressor="interpolation")
    model = fit_chain({"nx": profile}, PlacedChain.of(["nx"]), higher_is_better=False)
    assert smallest_allocation(model, ScalingTarget(20, {}), {"nx": SHARES.tolist()}).allocation == {"nx": 0.3}


@pytest.mark.long
def test_a_correction_that_noisy_runs_do_not_support_is_followed_half_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten runs with 20 % noise of a chain that is its weakest link, twelve draws: the mean error falls by a third."""
    errors = dict.fromkeys((0.0, chain_fitting.DOUBT), 0.0)
    asked = np.array(list(product(SHARES, SHARES))).T
    at = {"nx.cpu": asked[0], "sc.cpu": asked[1]}
    for seed, doubt in product(range(12), errors):
        monkeypatch.setattr(chain_fitting, "DOUBT", doubt)
        draw = np.random.default_rng(seed)
        nx, sc = draw.choice(SHARES, (2, 10))
        runs = np.minimum(100 * nx, 50 * sc) * np.exp(0.2 * draw.normal(size=10))
        placed = PlacedChain.of(["nx", "sc"])
        model = fit_chain(chain().profiles, placed, measured_at={"nx.cpu": nx, "sc.cpu": sc}, measured=runs)
        wrong = model.predict(at).predicted / np.minimum(100 * asked[0], 50 * asked[1]) - 1
        errors[doubt] += float(np.abs(wrong).mean()) / 12
        assert ("half way" in [*describe(model)][-1]) == (model.doubt > 0)
    assert errors[chain_fitting.DOUBT] < errors[0.0] * 2 / 3
