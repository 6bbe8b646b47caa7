"""Contention in the loop, with predictors whose answers can be worked out by hand.

CycleGrowth of cycles by models: what a core exerts, what its NFs meet, and what models cannot answer.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from placer.rack.chain import Chain
from placer.rack.contention.co_location import CycleGrowth, Member, co_locations
from placer.rack.contention.loop import MOST_ROUNDS, ContendedPlan, plan_under_contention
from placer.rack.contention.modelled_growth import ModelledGrowth, refuse_unknown
from placer.rack.files.chains_file import ChainsText, chains_of_text
from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.plan import Status, answer
from placer.rack.rack import Device, Rack
from placer.rack.strategies.optimal import best_plan
from profiles import InputError
from tests.effort import examples
from tests.placer.rack import instances, small
from tests.placer.rack.contention.fake_models import SIX, FakePredictor, beside_another, by_kind, fake_models, nil
from tests.placer.rack.exhaustive import faults

NFS = {"A": small.ON_SERVER, "B": {"server": {"cycles": 1700}}}
TWO: dict[str, Any] = {"t_min_mbps": 10_000, "t_max_mbps": 12_000}


def contended(growth: CycleGrowth, *, rack: Rack | None = None, least: float = 10_000, **changes: Any) -> ContendedPlan:
    """Two chains of one NF each, with rates from 10,000 to 12,000 Mbps, which is what a core carries."""
    slo = TWO | {"t_min_mbps": least} | changes
    chains = chains_of({"chains": [small.chain("c0", "A", **slo), small.chain("c1", "B", **slo)]}, "chains")
    return plan_under_contention(chains, rack or one_server(), growth, best_plan)


def one_server(cores: int = 4, servers: int = 1) -> Rack:
    return rack_of(small.rack(NFS, *(small.server(f"s{at}", cores=cores) for at in range(servers))), "rack")


def rates(found: ContendedPlan) -> list[float]:
    return [one.rate_mbps for one in found.plan.chains]


def test_without_contention_the_plan_is_the_plain_one() -> None:
    """A predictor that says that nothing grows changes nothing."""
    found = contended(nil)
    assert found.rounds == 1 and found.agreed
    assert found.plan.chains == found.by_cycles.chains
    assert found.plan.bound_mbps == found.by_cycles.bound_mbps
    assert found.plan.status is Status.OPTIMAL


def test_cycles_that_double_take_a_second_core() -> None:
    """By cycles alone a core carries 12,000 Mbps; beside each other 6,000, so that each chain needs two."""
    found = contended(beside_another(2.0))
    assert [one.cores for one in found.by_cycles.chains] == [(1,), (1,)]
    assert [one.cores for one in found.plan.chains] == [(2,), (2,)]
    assert rates(found) == pytest.approx([12_000, 12_000])
    assert found.factors == ((2.0,), (2.0,))
    assert found.rounds == 2 and found.agreed


def test_rates_are_lowered_to_what_is_predicted() -> None:
    """With one core each and 1.2 times the cycles, 10,000 of 12,000 Mbps are left."""
    found = contended(beside_another(1.2), rack=one_server(cores=2))
    assert rates(found) == pytest.approx([10_000, 10_000])
    assert found.plan.bound_mbps == pytest.approx(4000)
    assert found.plan.gap == pytest.approx(1.0)
    assert found.plan.status is Status.FEASIBLE


def test_chains_that_need_it_are_set_apart() -> None:
    """On two servers of three cores, cycles that grow threefold leave each chain a server of its own."""
    found = contended(beside_another(3.0), rack=one_server(cores=3, servers=2))
    assert len({one.layout.sites for one in found.plan.chains}) == 2
    assert rates(found) == pytest.approx([12_000, 12_000])


def test_says_that_no_plan_was_found() -> None:
    """With four times the cycles, two cores carry 6,000 of 10,000 Mbps; the note names chain and rate."""
    found = contended(beside_another(4.0))
    assert found.plan.status is Status.UNKNOWN and not found.plan.chains
    assert found.plan.bound_mbps == pytest.approx(4000)
    assert "c0 reaches 6,000.0 Mbps of its t_min, 10,000.0 Mbps" in found.plan.notes[0]


def test_an_infeasible_instance_stays_infeasible() -> None:
    """What cannot be placed by cycles alone is not predicted: contention only takes away."""
    found = contended(nil, rack=one_server(cores=1))
    assert found.plan.status is Status.INFEASIBLE and found.rounds == 0


def test_latency_is_kept_with_grown_cycles() -> None:
    """1 us of cycles and 2 us of crossings are within 3.5 us; with cycles doubled they are not."""
    assert contended(nil, d_max_us=3.5).plan.chains
    found = contended(beside_another(2.0), d_max_us=3.5)
    assert not found.plan.chains and "latency of 4 us" in found.plan.notes[0]


def test_predicted_latency_has_the_grown_cycles() -> None:
    """The plan states latency by cycles alone, as checkers expect it, and the prediction beside it."""
    found = contended(beside_another(2.0))
    assert float(found.plan.chains[0].layout.latency_us) == 3
    assert float(found.predicted.chains[0].layout.latency_us) == 4


def test_an_nf_in_the_way_moves_to_the_switch() -> None:
    """An NF whose cycles grow is placed where they do not."""
    nfs = {"A": {"server": {"cycles": 1}, "switch": {"blocks": 1}}, "B": small.ON_SERVER}
    rack = rack_of(small.rack(nfs, small.server("s0", cores=2), switch={"stages": 1, "blocks_per_stage": 1}), "rack")
    assert contended(beside_another(1.5), rack=rack, least=0, t_max_mbps=12_000).plan.chains[0].layout.sites == (-1,)


def test_an_openflow_switch_keeps_the_order_of_its_tables() -> None:
    """Packets pass a table once: of two A that follow one another, one is on the server, however its cycles grow."""
    nfs = {"A": {"server": {"cycles": 100}, "switch": {"blocks": 1}}, "B": small.ON_SERVER}
    rack = small.rack(nfs, small.server("s0", nic_mbps=100_000), switch={"kind": "openflow", "table_order": ["A"]})
    asked = {"chains": [small.chain("c0", "AAB")]}

    def growth(device: Device, members: Sequence[Member]) -> list[list[float]]:
        return [[2.0 if nf.nf == "A" else 1.0 for nf in one.kinds] for one in members]

    found = plan_under_contention(chains_of(asked, "chains"), rack_of(rack, "rack"), growth, best_plan)
    assert found.plan.chains and faults(asked, rack, dict(answer(found.plan))) == []


def test_predictions_that_go_in_a_circle_end() -> None:
    """A predictor that dislikes every device ends within the bound on rounds, with rates as predicted."""
    names: list[str] = []

    def growth(device: Device, members: Sequence[Member]) -> list[list[float]]:
        names.append(device.name)
        return [[1.0 + 0.01 * len(names)] * len(one.nfs) for one in members]

    found = contended(growth, rack=one_server(cores=2, servers=2), least=1000)
    assert found.rounds <= MOST_ROUNDS
    assert found.plan.chains
    for one, (factor,) in zip(found.plan.chains, found.factors, strict=True):
        assert one.rate_mbps <= sum(one.cores) * 12_000 / factor * (1 + 1e-6)


def test_equal_chains_stay_equal() -> None:
    """Chains that differ in their names only share the larger factor, so that the program may exchange them."""
    chains = chains_of({"chains": [small.chain(name, "A", **TWO) for name in ("c0", "c1")]}, "chains")

    def growth(device: Device, members: Sequence[Member]) -> list[list[float]]:
        return [[1.1 if one.chain.name == "c0" else 1.2] for one in members]

    found = plan_under_contention(chains, one_server(cores=2), growth, best_plan)
    assert found.factors == ((1.2,), (1.2,))


@pytest.mark.parametrize("factor", [0.9, float("nan"), float("inf")])
def test_refuses_factors_that_make_no_sense(factor: float) -> None:
    """A factor below 1 would raise the bound, which is that of cycles alone."""
    with pytest.raises(ValueError, match="cannot grow by a factor of"):
        contended(beside_another(factor))


def test_a_time_limit_ends_the_loop_after_the_first_prediction() -> None:
    """The plan by cycles alone is always predicted, so that nothing is returned unpredicted."""
    chains: Sequence[Chain] = [replace(one) for one in chains_of({"chains": [small.chain("c0", "A")]}, "chains")]

    def growth(device: Device, members: Sequence[Member]) -> list[list[float]]:
        return [[1.5] for _ in members]

    found = plan_under_contention(chains, one_server(), growth, best_plan, time_limit=0)
    assert found.rounds == 1 and not found.agreed
    assert found.plan.chains[0].rate_mbps == pytest.approx(32_000)


FACTORS = st.fixed_dictionaries({kind: st.sampled_from([0.0, 0.03, 0.2, 1.0]) for kind in instances.KINDS})
GENERATORS = st.sampled_from([instances.everyday, instances.edges])


@pytest.mark.long
@settings(max_examples=examples(40), phases=[Phase.generate], derandomize=True)
@given(GENERATORS, st.integers(0, 10**9), FACTORS, FACTORS)
def test_keeps_every_limit_by_prediction(
    generator: instances.Generator, seed: int, sensitivity: dict[str, float], pressure: dict[str, float]
) -> None:
    """By a checker that shares no code with placing: with cycles as asked, and with cycles as predicted."""
    (asked, rack), growth = generator(seed), by_kind(sensitivity, pressure)
    found = plan_under_contention(chains_of(asked, "chains"), rack_of(rack, "rack"), growth, best_plan)
    assert found.rounds <= MOST_ROUNDS
    assert (found.plan.status is Status.INFEASIBLE) == (found.by_cycles.status is Status.INFEASIBLE)
    if not found.plan.chains:
        assert found.plan.status is Status.INFEASIBLE or found.plan.notes
        return
    assert faults(asked, rack, dict(answer(found.plan))) == []
    assert faults(*grown(asked, rack, found), dict(answer(found.predicted))) == []
    for device, placed in co_locations(found.plan.chains, found.plan.rack):
        for one, factors in zip(placed, growth(device, [each.member for each in placed]), strict=True):
            for at, factor in zip(one.member.nfs, factors, strict=True):
                assert found.factors[one.chain][at] >= factor
    assert found.plan.marginal_mbps <= found.by_cycles.marginal_mbps * (1 + 1e-9) + 1e-6
    assert found.plan.bound_mbps == pytest.approx(found.by_cycles.bound_mbps)


BRANCHED = [["f0", "f1", "1/3"], ["f0", "f2", "2/3"], ["f1", "f3"], ["f2", "f3"]]


def grown(asked: dict[str, Any], rack: dict[str, Any], found: ContendedPlan) -> tuple[dict[str, Any], dict[str, Any]]:
    """The instance with each NF of each chain as a kind of its own, whose cycles on cores have grown."""
    nfs: dict[str, Any] = {}
    renamed = []
    for number, chain in enumerate(asked["chains"]):
        own = []
        for at, nf in enumerate(chain["nfs"]):
            kind = f"{number}.{at}"
            factor = found.factors[number][at]
            costs = rack["nfs"][nf["nf"]]
            nfs[kind] = {
                place: cost if place == "switch" else cost | {"cycles": cost["cycles"] * factor}
                for place, cost in costs.items()
            }
            own.append(nf | {"nf": kind})
        renamed.append(chain | {"nfs": own})
    return {"chains": renamed}, rack | {"nfs": nfs}


BELOW_ITS_BOUND = {
    "chains": [
        small.chain("c0", "AAAC", packet_size=125, t_min_mbps=100, edges=BRANCHED),
        small.chain("c1", "D", packet_size=125, t_min_mbps=100),
    ]
}
THREE_CORES = small.rack(
    {kind: {"server": {"cycles": cycles}} for kind, cycles in {"A": 110, "C": 100, "D": 100}.items()},
    small.server("s0", cores=3, clock_mhz=1000, nic_mbps=4000),
)
"""Its proven plan is below the bound by more than 1e-9, as the tolerance of the search allows."""


@pytest.mark.parametrize(
    ("asked", "rack"), [(BELOW_ITS_BOUND, THREE_CORES), *(instances.everyday(seed) for seed in range(8))]
)
def test_without_contention_it_is_the_plain_plan(asked: dict[str, Any], rack: dict[str, Any]) -> None:
    """A predictor without contention leaves the plan of the program as it is."""
    found = plan_under_contention(chains_of(asked, "chains"), rack_of(rack, "rack"), nil, best_plan)
    assert found.plan.chains == found.by_cycles.chains and found.plan.status == found.by_cycles.status


KINDS = {name: {"server": {"cycles": 1700}} for name in SIX}


def rack(nfs: dict[str, Any] = KINDS, **changes: Any) -> Rack:
    return rack_of(small.rack(nfs, **changes), "rack")


def member(*nfs: str, busy: tuple[float, ...] = (), cores: int = 1) -> Member:
    ids = [{"id": f"f{at}", "nf": nf} for at, nf in enumerate(nfs)]
    edges = [[f"f{at}", f"f{at + 1}"] for at in range(len(nfs) - 1)]
    chain = chains_of({"chains": [small.chain("c", "") | {"nfs": ids, "edges": edges}]}, "chains")[0]
    return Member(chain, tuple(range(len(nfs))), busy or (1.0,) * len(nfs), cores)


@pytest.mark.parametrize(
    ("members", "risk", "factors"),
    [
        # NAT meets the reads of ACL (10 %) and its 1 MB (0.1 %); ACL those of NAT: 2 % and 0.5 %
        ((member("ACL"), member("NAT")), 0.5, [[1.025], [1.101]]),
        # a margin is taken from the low end of the interval of 90 %: 2 % below
        ((member("ACL"), member("NAT")), 0.05, [[round(1.025 / 0.98, 6)], [round(1.101 / 0.98, 6)]]),
        # whatever the risk: with nothing beside it, an NF's cycles are those of the rack
        ((member("ACL"),), 0.05, [[1.0]]),
        # each of three cores with ACL meets the two others, NAT all three
        ((member("ACL", cores=3), member("NAT")), 0.5, [[1.227], [1.303]]),
        # NFs in turn: reads are the mean of 10 and 2 million, working sets are 6 MB together
        ((member("ACL", "NAT", busy=(0.5, 0.5)), member("Match")), 0.5, [[1.0, 1.0], [1.066]]),
        # a core that spends half of its time on ACL and the rest on headers reads half as much
        ((member("ACL", busy=(0.5,)), member("Match")), 0.5, [[1.0], [1.051]]),
    ],
)
def test_an_nf_meets_the_counters_of_the_others(
    members: tuple[Member, ...], risk: float, factors: list[list[float]]
) -> None:
    on = rack()
    predicted = ModelledGrowth(on, fake_models(SIX), risk=risk)(on.devices[0], members)
    assert [[round(factor, 6) for factor in one] for one in predicted] == factors


@pytest.mark.parametrize(("kind", "factor", "other"), [("server", 1.0, "n0"), ("smartnic", 1.101, "s0")])
def test_models_of_one_kind_of_device_say_nothing_of_another(kind: str, factor: float, other: str) -> None:
    """Cycles there stay as they are, and a note says so."""
    nic = {"name": "n0", "cores": 2, "clock_mhz": 1000}
    on = rack(KINDS | {"ACL": {"smartnic": {"cycles": 100}}}, servers=[small.server("s0", smartnic=nic)])
    predictor = ModelledGrowth(on, fake_models(SIX, kind), risk=0.5)
    assert predictor(on.devices[1], [member("ACL"), member("ACL")]) == [[pytest.approx(factor)]] * 2
    assert list(predictor.notes())[1:] == [
        f"contention on {other} is not predicted: the models are of another kind of device"
    ]


def test_more_cores_than_were_measured_are_noted() -> None:
    on = rack(servers=[small.server("s0", cores=20)])
    assert list(ModelledGrowth(on, fake_models(SIX)).notes())[1:] == [
        "the models are of 16 cores, fewer than those of s0: predictions are extrapolated"
    ]


def test_notes_say_how_certain_predictions_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share that may be slower, or that a predictor knows no errors; and where errors are extrapolated."""
    expected = "rates as tomur predicts: at most 5 % of NFs are expected to be slower"
    assert list(ModelledGrowth(rack(), fake_models(SIX)).notes()) == [expected]
    assert "risk 0.001 is below 0.01" in ModelledGrowth(rack(), fake_models(SIX), risk=0.001).notes()
    monkeypatch.setattr(FakePredictor, "supports_risk", False)
    expected = "rates as tomur predicts, without a margin: it does not estimate its errors"
    assert list(ModelledGrowth(rack(), fake_models(SIX)).notes()) == [expected]


def test_models_without_tomur_predict_by_what_they_have() -> None:
    models = replace(fake_models(SIX), predictors={"slomo": fake_models(SIX).predictors["tomur"]})
    assert ModelledGrowth(rack(), models).predictor == "slomo"


def test_of_many_devices_a_note_names_a_few() -> None:
    servers = [small.server(f"s{at}", cores=20) for at in range(100)]
    note = list(ModelledGrowth(rack(servers=servers), fake_models(SIX)).notes())[-1]
    assert "fewer than those of s0, s1, s2 and 97 more" in note


def test_flows_and_matches_are_those_of_the_rack() -> None:
    """The packet size is the chain's; what the rack does not say is the default of the models."""
    asked = chains_of({"chains": [small.chain("c", "A", packet_size=700)]}, "chains")
    on = rack({"A": {"server": {"cycles": 1, "testbed_nf": "ACL"}}}, testbed={"flows": 77})
    (one,) = ModelledGrowth(on, fake_models(SIX)).nfs(asked)
    assert (one.workload.nf, one.workload.traffic.as_tuple()) == ("ACL", (77.0, 700.0, 100.0))


def read(text: str) -> ChainsText:
    return chains_of_text(f"slo c: 1 Mbps to 1 Gbps\n{text}\n", "edge.chains")


def of_acl(**parameters: int) -> dict[str, Any]:
    return {"server": {"cycles": 4091, "testbed_nf": "ACL", "testbed_parameters": parameters}}


@pytest.mark.parametrize(
    ("chain", "nfs", "more", "fault"),
    [
        (
            "NAT -> Acl -> Acl",
            {"NAT": KINDS["NAT"], "Acl": KINDS["ACL"]},
            {},
            "edge.chains:2: column 17: NF Acl is not in the models\n"
            "hint: testbed_nf = ... names the NF that it corresponds to; did you mean ACL?",
        ),
        (
            "A",
            {"A": {"server": {"cycles": 1, "testbed_nf": "Acl"}}},
            {},
            "edge.chains:2: column 10: NF A is not in the models, nor is Acl",
        ),
        # models hold an NF with its defaults: 200 rules of ACL
        (
            "ACL_1024",
            {"ACL_1024": of_acl(rules=1024)},
            {},
            "edge.chains:2: column 10: NF ACL_1024: the models know ACL with rules 200 only, not 1024\n"
            "hint: without testbed_parameters, the NF with its defaults stands for it",
        ),
        ("A", {"A": of_acl(rule=200)}, {}, "with no parameter rule"),
        (
            "ACL",
            KINDS,
            {"testbed": {"flows": 1_000_000}},
            "NF ACL: flows 1e+06 is outside the profiled range 1 to 100000",
        ),
        # what it does to others is not known
        ("ACL", KINDS, {"known": {"ACL": None}}, "the models do not hold ACL alone"),
    ],
)
def test_what_models_cannot_answer_is_refused(chain: str, nfs: Any, more: dict[str, Any], fault: str) -> None:
    """With its place in the file of chains, once for each NF."""
    models = fake_models(more.get("known", SIX))
    with pytest.raises(InputError) as refused:
        refuse_unknown(ModelledGrowth(rack(nfs, testbed=more.get("testbed", {})), models), read(f"chain c: {chain}"))
    assert fault in str(refused.value)
    assert str(refused.value).count("edge.chains:") == 1


@pytest.mark.parametrize(
    "costs", [of_acl(rules=200), {"switch": {"blocks": 1}}, {"smartnic": {"cycles": 1}, "switch": {"blocks": 1}}]
)
def test_what_models_answer_or_need_not_answer_is_accepted(costs: dict[str, Any]) -> None:
    """Default parameters, NFs on the switch, and NFs on devices of another kind."""
    refuse_unknown(ModelledGrowth(rack({"X": costs}), fake_models(SIX)), read("chain c: X"))
