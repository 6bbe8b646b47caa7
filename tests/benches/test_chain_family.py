"""Many chains of the same NFs on one host."""

from itertools import permutations

import numpy as np
import pytest

from benches.chain_family import ChainFamily, ChainRun, CommonCosts
from predictor.chains.placed_chain import PlacedChain, StageEffect
from predictor.chains.profiled_nf import ProfiledNf
from tests.benches.hosts import NFS, NULL, Host


def mape(family: ChainFamily, runs: list[ChainRun]) -> float:
    """Mean error, %, of measured chains."""
    return 100 * float(np.mean([abs(family.predict(run.chain, run.at) / run.measured - 1) for run in runs]))


@pytest.mark.long
@pytest.mark.parametrize("seed", [2000, 2001, 2002])
def test_ten_measured_chains_correct_all_others(seed: int) -> None:
    """Pairs and triples on one core or two: at most 12 % from profiles alone, 5 % after ten chains of 84."""
    host, draw = Host(seed), np.random.default_rng(seed)
    family = ChainFamily({nf: host.profile(nf) for nf in (*NFS, NULL)}, source=NULL)
    runs = [host.run(chain, draw) for chain in host.chains()]
    measured, others = [runs[at] for at in range(0, 84, 9)], [run for at, run in enumerate(runs) if at % 9]
    assert mape(family, others) < 12 and mape(family.fit(measured), others) < 5


def flat(**kpps: float) -> dict[str, ProfiledNf]:
    """Profiles of one packet size."""
    return {
        nf: ProfiledNf.fit(nf, ("packet_size",), np.array([[64.0], [1500.0]]), np.array([value, value]))
        for nf, value in kpps.items()
    }


def test_a_stage_sees_what_those_before_it_pass_on() -> None:
    """Half of the packets reach the NF of 100 kpps: the chain takes 200 kpps."""
    chain = PlacedChain.of(["acl", "ids"], effects=[StageEffect(0.5), StageEffect()])
    assert ChainFamily(flat(acl=900.0, ids=100.0)).predict(chain, {"packet_size": 64}) == pytest.approx(200, rel=0.02)


def test_a_stage_sees_the_packets_that_those_before_it_make() -> None:
    """Behind a tunnel that doubles packets, the NF that reads every byte is half as fast."""
    at = np.array([[64.0], [128], [256], [512], [1024], [2048]])
    scan = ProfiledNf.fit("scan", ("packet_size",), at, 64000 / at[:, 0], regressor="smooth")
    chain = PlacedChain.of(["tunnel", "scan"], effects=[StageEffect(bytes_factor=2), StageEffect()])
    family = ChainFamily(flat(tunnel=5000.0) | {"scan": scan})
    assert family.predict(chain, {"packet_size": 256}) == pytest.approx(64000 / 512, rel=0.03)


def test_a_ring_costs_what_two_nfs_that_do_nothing_show() -> None:
    """Alone they take 1 us a packet, with a ring between them 1.5 us: an NF of 2 us takes 2.5 us, 400 kpps."""
    family = ChainFamily(flat(nothing=1000.0, twice=1000 / 1.5, acl=500.0), source="nothing", ring="twice")
    pipeline = PlacedChain.of(["acl", "acl"], cores=[[0], [1]])
    assert family.predict(pipeline, {"packet_size": 64}) == pytest.approx(400, rel=0.01)
    on_one_core = PlacedChain.of(["acl", "acl"], cores=[[0, 1]])
    assert family.predict(on_one_core, {"packet_size": 64}) == pytest.approx(1000 / 3, rel=0.01)


def test_sending_by_a_ring_costs_what_the_nf_shows_in_front_of_one() -> None:
    """Alone 2 us, in front of a ring 4 us, behind one 2.5 us: a pipeline of two takes 4 us, 250 kpps."""
    profiles = flat(nothing=1000.0, twice=1000 / 1.5, acl=500.0, sends=250.0, receives=400.0)
    receivers, senders = {"acl": "receives"}, {"acl": "sends"}
    family = ChainFamily(profiles, source="nothing", ring="twice", receivers=receivers, senders=senders)
    pipeline = PlacedChain.of(["acl", "acl"], cores=[[0], [1]])
    assert family.predict(pipeline, {"packet_size": 64}) == pytest.approx(250, rel=0.01)


def test_runs_show_what_all_nfs_have_in_common() -> None:
    """NFs share 0.9 of what doing nothing takes, and behind a tunnel cost 0.4 of it more: both are found within 0.1."""
    profiles = flat(nothing=1000.0, acl=400.0, nat=300.0, tunnel=700.0)
    effects = {"tunnel": StageEffect(bytes_added=50)}
    truth = ChainFamily(profiles, source="nothing", common=CommonCosts(0.9, 0.4))
    at, runs = {"packet_size": 64.0}, []
    for pair in permutations(["acl", "nat", "tunnel"], 2):
        chain = PlacedChain.of(pair, cores=[[0, 1]], effects=[effects.get(nf, StageEffect()) for nf in pair])
        runs.append(ChainRun(chain, at, truth.predict(chain, at)))
    fitted = ChainFamily(profiles, source="nothing").fit(runs)
    assert fitted.common.source == pytest.approx(0.9, abs=0.1)
    assert fitted.common.changed == pytest.approx(0.4, abs=0.1)
    assert fitted.predict(runs[0].chain, at) == pytest.approx(runs[0].measured, rel=0.02)


def test_too_few_runs_correct_nothing() -> None:
    family = ChainFamily(flat(acl=900.0))
    run = ChainRun(PlacedChain.of(["acl"]), {"packet_size": 64.0}, 500.0)
    assert family.fit([run, run]).correction is None


def test_runs_as_predicted_correct_nothing() -> None:
    """A correction that left-out runs do not need is none."""
    family = ChainFamily(flat(acl=900.0, nat=450.0, lb=300.0))
    draw = np.random.default_rng(0)
    runs = []
    for pair in permutations(family.profiles, 2):
        chain, at = PlacedChain.of(pair, cores=[[0, 1]]), {"packet_size": 64.0}
        runs += [ChainRun(chain, at, family.predict(chain, at) * float(np.exp(draw.normal(0, 0.01)))) for _ in range(2)]
    assert family.fit(runs).correction is None


def test_one_nf_alone_is_not_corrected() -> None:
    """Runs of pairs, all 20 % slower than predicted, say nothing about an NF whose own profile is known."""
    family = ChainFamily(flat(acl=900.0, nat=450.0, lb=300.0))
    at = {"packet_size": 64.0}
    pairs = [PlacedChain.of(pair, cores=[[0, 1]]) for pair in permutations(family.profiles, 2)]
    fitted = family.fit([ChainRun(pair, at, 0.8 * family.predict(pair, at)) for pair in pairs])
    assert fitted.predict(pairs[0], at) == pytest.approx(0.8 * family.predict(pairs[0], at), rel=0.02)
    alone = PlacedChain.of(["acl"])
    assert fitted.predict(alone, at) == pytest.approx(family.predict(alone, at), rel=1e-12)


def test_a_core_with_half_its_time_is_half_as_fast() -> None:
    """Of two cores, the one with less time for the chain limits it."""
    family = ChainFamily(flat(acl=900.0, nat=600.0))
    chain = PlacedChain.of(["acl", "nat"], cores=[[0], [1]], core_times=[0.5, 1.0])
    assert family.predict(chain, {"packet_size": 64.0}) == pytest.approx(450, rel=0.02)


def test_a_column_without_value_is_named() -> None:
    with pytest.raises(KeyError, match=r"acl\.packet_size"):
        ChainFamily(flat(acl=900.0)).predict(PlacedChain.of(["acl"]), {"flows": 1.0})
