"""CycleGrowth of cycles by models: what a core exerts, what its NFs meet, and what models cannot answer."""

from dataclasses import replace
from typing import Any

import pytest

from placer.rack.contention.co_location import Member
from placer.rack.contention.modelled_growth import ModelledGrowth, refuse_unknown
from placer.rack.files.chains_file import ChainsText, chains_of_text
from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.rack import Rack
from profiles import InputError
from tests.placer.rack import small
from tests.placer.rack.contention.fake_models import SIX, FakePredictor, fake_models

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
