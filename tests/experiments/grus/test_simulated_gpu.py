"""The experiments on the simulated GPU: each reports completely, and says that it is simulated."""

from collections import Counter
from random import Random
from typing import Any

import pandas as pd
import pytest

from experiments import Result
from experiments.grus import NOT_PRINTED, PAPER, figure1, figure8, figure9, figure10a, figure10b, figure10c, rivals
from experiments.grus.methodology import judging, simulated_server, slo_sets
from experiments.grus.methodology.simulated_server import train_models
from placer.gpu.plan import LatencySlo
from predictor.gpu.prediction import Overload
from tests.experiments.complete import Results, refuse_incomplete, run_with_few

NAMES = [
    "grus-figure1",
    "grus-figure8",
    "grus-figure9",
    "grus-figure10a",
    "grus-figure10b",
    "grus-figure10c",
    "grus-rivals",
]


@pytest.fixture(scope="module")
def results() -> Results:
    """Every experiment with its result, on few runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure1, "OTHER_FIREWALLS", (0, 1, 2))
        patch.setattr(figure8, "executors_of", lambda models: 6)
        patch.setattr(figure9, "OTHER_FIREWALLS", (0, 3))
        patch.setattr(figure10a, "RATES_GBPS", (2.0,))
        patch.setattr(figure10a, "BATCH_SIZES", (64, 256))
        patch.setattr(figure10b, "BATCH_SIZES", (64, 256, 512))
        patch.setattr(figure10c, "SLO_SETS", 1)
        patch.setattr(rivals, "SET_SIZES", (2, 3))
        patch.setattr(rivals, "BATCHES_TRIED", (256,))
        patch.setattr(judging, "TIME_LIMIT_S", 0.02)
        return run_with_few(NAMES)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_complete(name: str, results: Results) -> None:
    """And says what is simulated."""
    _, result = results[name]
    assert any("simulated server" in text and "nothing is run on a GPU" in text for text in result.testbeds)
    refuse_incomplete(*results[name], PAPER)


def _column(result: Result, keys: list[str], column: str) -> dict[object, Any]:
    """The values of a column by those of others."""
    return dict(zip(zip(*(result.table[key] for key in keys), strict=True), result.table[column], strict=True))


@pytest.mark.long
def test_firewalls_in_turns_wait_and_side_by_side_do_not(results: Results) -> None:
    """Only in turns is the published increase met beside two others; beside one, none is printed."""
    result, keys = results["grus-figure1"][1], ["sharing", "others"]
    increase, verdict = _column(result, keys, "increase_pct"), _column(result, keys, "verdict")
    assert increase["temporal", 2] > increase["temporal", 1] > 10 and increase["spatial", 2] < 1
    assert verdict["temporal", 2] == "" and verdict["spatial", 2] == "differs"
    assert _column(result, keys, "published_increase_pct")["temporal", 1] == NOT_PRINTED


@pytest.mark.long
def test_kernels_are_linear_alone_and_longer_beside_others(results: Results) -> None:
    """Predictions of groups are closer than the paper's law; `linear` is published for times alone only."""
    table = results["grus-figure8"][1].table
    alone, beside = (
        table[of] for of in (table["sharing"] == figure8.ALONE_GROUP, table["sharing"] != figure8.ALONE_GROUP)
    )
    assert len(alone) == len(simulated_server.SERVER_NFS) and set(alone["published"]) == {"linear"}
    assert not alone["longer_pct"].any() and not alone["verdict"].any()
    assert (beside["longer_pct"] > 0).all() and set(beside["published"]) == {NOT_PRINTED}
    assert beside["error_pct"].mean() < beside["printed_law_error_pct"].mean()


@pytest.mark.parametrize(("printed_law_error", "verdict"), [(4.9, ""), (5.1, "differs")])
def test_kernels_that_no_line_follows_differ(printed_law_error: float, verdict: str) -> None:
    """Alone, a line that misses by more than 5 % on average is not what is published."""
    run = {"measured_us": 10.0, "alone_us": 10.0, "predicted_error_pct": 0.0, "printed_error_pct": printed_law_error}
    assert figure8.row("NIDS", figure8.ALONE_GROUP, pd.DataFrame([run]))["verdict"] == verdict


def test_groups_of_kernels_fill_an_sm() -> None:
    """Each has at least one executor, and none is left."""
    drawn = [figure8.random_shares(Random(seed), 4, 15) for seed in range(100)]
    assert all(min(shares) >= 1 and sum(shares) == 15 and len(shares) == 4 for shares in drawn)


@pytest.mark.long
def test_kernels_are_less_busy_where_the_server_cannot_carry_them() -> None:
    """Four IPSec at 60 % of the time each overload an SM; the group that is drawn does not."""
    models = train_models(lambda message: None)
    nfs, executors = ["IPSec"] * 4, [4, 4, 4, 3]
    busiest = [figure8.busy_load(models, "IPSec", used, order=order) for order, used in enumerate(executors)]
    with pytest.raises(Overload):
        models.predict(busiest)
    group = figure8.busy_group(models, nfs, executors)
    assert group and all(one.rate_kpps < most.rate_kpps for one, most in zip(group, busiest, strict=True))


@pytest.mark.long
def test_the_first_order_waits_only_for_transfers_under_way(results: Results) -> None:
    """It waits longer beside larger transfers, and each increase is below that without guarantees."""
    result, keys = results["grus-figure9"][1], ["beside", "others"]
    wait = _column(result, keys, "transfer_wait_us")
    assert wait[figure9.IPSEC_FLOW, 3] > wait[figure9.OWN_SMS, 3] > 0
    crowded = result.table[result.table["others"] > 0]
    assert (crowded["increase_pct"] < crowded["without_guarantee_pct"]).all()


def test_firewalls_beside_the_first_fit_on_its_sm() -> None:
    """Two executors each: six others on SM 0, which has 15."""
    sms = [one.gpu.minibatches[0].sm for one in figure9.loads(figure9.SHARED_SM, 9) if one.gpu]
    assert sms == [0] * 7 + [7, 8, 9]


@pytest.mark.long
def test_the_wait_for_a_batch_is_predicted_closer_than_chance(results: Results) -> None:
    """Errors against long runs are below those against short ones, and a row per traffic says what is published."""
    table = results["grus-figure10a"][1].table
    assert list(table["published_error_pct"]) == [1.2, 1.6, 1.3]
    assert (table["error_pct"] < table["short_run_error_pct"]).all() and (table["runs"] == 8).all()


@pytest.mark.long
def test_transfers_are_predicted_for_every_traffic(results: Results) -> None:
    """Closer than published on Traffic-A, and closer than its line on others, where payloads are smaller."""
    table = results["grus-figure10b"][1].table
    assert list(table["published_error_pct"][:3]) == [2.2, 3.5, 4.1] and not table["verdict"].any()
    smaller = table[(table["traffic"] != "Traffic-A") & (table["moves"] != "header")]
    assert (smaller["error_pct"] < smaller["line_of_a_error_pct"]).all()


@pytest.mark.long
def test_latencies_of_co_locations_are_predicted(results: Results) -> None:
    """Within 3 % of the mean and 8 % of the p99, also of NFs that share SMs; what is admitted is not late."""
    table = results["grus-figure10c"][1].table
    assert (table["error_pct"] < 3).all() and (table["p99_error_pct"] < 8).all()
    assert list(table["late_pct"]) == [0.0, 0.0, "no SLO"]
    assert list(table["published_within_10_pct"]) == [80.0, NOT_PRINTED, NOT_PRINTED]


@pytest.mark.long
def test_co_locations_on_few_sms_share_them() -> None:
    """Ten NFs on four SMs, none of which has more executors than there are."""
    models = train_models(lambda message: None)
    loads = slo_sets.pack_nfs(models, Random(0)).loads
    parts = [one for load in loads if load.gpu for one in load.gpu.minibatches]
    used: Counter[int] = Counter()
    for one in parts:
        used[one.sm] += -(-one.packets // models.per_executor)
    assert len(loads) == 10 and set(used) == set(range(slo_sets.PACKED_SMS))
    assert max(used.values()) <= 15 and sorted(load.gpu.order or 0 for load in loads if load.gpu) == list(range(10))


@pytest.mark.long
def test_rivals_are_compared_at_equal_violations(results: Results) -> None:
    """In one table, nobody violates an SLO; goodput is that of what is kept, and published ratios are beside ours."""
    table = results["grus-rivals"][1].table
    for name in rivals.TOLERANCE_RANGES:
        assert not table[f"violations_pct_at_{name}"].any() and (table[f"kept_at_{name}"] <= table["slos"]).all()
        assert ((table[f"goodput_mpps_at_{name}"] > 0) == (table[f"kept_at_{name}"] > 0)).all()
        assert (table[table["method"] == "grus"][f"grus_times_at_{name}"] == 1).all()
    published = table.groupby("method")["published_times_at_30"].unique()
    assert list(published["g-net"]) == ["over 2"] and list(published["baymax"]) == ["4.5"]
    assert set(table[table["judge"] == rivals.SERVER_JUDGE]["method"]) == {"grus", "g-net", "baymax"}


@pytest.mark.long
def test_kernels_in_turns_keep_fewer_slos_than_kernels_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five SLOs of IPSec, whose kernels in turns take too long; what is left is kept when it runs again."""
    baseline = slo_sets.baselines_us()["IPSec"]
    slos = [LatencySlo(str(place), "IPSec", 277.0, 1.1 * baseline) for place in range(5)]
    monkeypatch.setattr(rivals, "BATCHES_TRIED", (192,))
    in_turns, side_by_side = (rivals.most_kept(slos, scheduler) for scheduler in ("temporal", "spatial"))
    assert 0 < in_turns.kept < side_by_side.kept and in_turns.goodput_kpps == pytest.approx(277.0 * in_turns.kept)
    assert rivals.most_kept(slos[: in_turns.kept], "temporal").kept == in_turns.kept


@pytest.mark.parametrize(
    ("times", "method", "published", "verdict"),
    [
        (4.5, "baymax", 4.5, ""),
        (4.0, "baymax", 4.5, "differs"),
        (8.0, "baymax", 4.5, "differs"),
        (8.0, "g-net", 2.0, ""),  # the paper says more than twice
        (1.0, "g-net", 2.0, "differs"),
    ],
)
def test_ratios_that_miss_the_published_ones_differ(times: float, method: str, published: float, verdict: str) -> None:
    """By more than a tenth; what is published as a lower bound is missed only from below."""
    assert rivals.verdict_of(times, method, published) == verdict
