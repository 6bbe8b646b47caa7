"""Latency models: what they learn of a queue whose law is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor import load_models, train
from predictor.latency import NfLatency, load_latencies, save_latencies
from predictor.training.latency import train_latencies
from profiles import InputError, TrafficProfile
from profiles.latency_table import LATENCY_COLUMNS
from profiles.profile import NfProfile, read_profile, write_json
from tests.effort import examples

RECORDED = Path(__file__).parents[2] / "traces" / "server-simulated"
UTILISATIONS = (0.1, 0.3, 0.5, 0.7, 0.9)


def packets(flows: float, used: float) -> float:
    """The p99 of a made-up queue in service times: bursts are the longer the fewer flows, waiting has a pole at 1."""
    return (1 + 40 / np.sqrt(flows)) * (4 + 3 * used) / (1 - used)


def measured(
    name: str, *, factor: float = 1.0, carried: float = 1.0, noise: float = 0.0, capacity: float = 1000.0
) -> NfProfile:
    """An NF in that queue, at ten traffic profiles; the few flows have, the less it carries without loss."""
    rng, rows = np.random.default_rng(len(name)), []
    for setting, flows in enumerate(np.geomspace(1, 1e5, 10).round()):
        kpps = capacity * (1 - 0.03 * setting)
        for used in UTILISATIONS:
            if used <= carried or flows > 100:
                p99 = factor * packets(flows, used) * 1e3 / kpps * np.exp(noise * rng.normal())
                rows.append([flows, 500.0, 0.0, "", kpps, used * kpps, p99 / 4, p99 / 5, p99, 2 * p99, 2, 0.0])
    return NfProfile(name, None, pd.DataFrame(), pd.DataFrame(), latency=pd.DataFrame(rows, columns=LATENCY_COLUMNS))


def trained(*nfs: NfProfile) -> dict[str, NfLatency]:
    return train_latencies({nf.name: nf for nf in nfs}, lambda message: None)


MODELS = trained(measured("a"), measured("bb"), measured("slow", factor=1.5))
NOISY = trained(*(measured("n" * at, noise=0.1) for at in range(1, 5)))["n"]


@settings(max_examples=examples(50))
@given(st.floats(2, 5e4), st.floats(0.05, 0.9), st.floats(10, 1e4))
def test_a_known_queue_is_learned(flows: float, used: float, kpps: float) -> None:
    """Between what was measured, at any throughput: the latency is the queue's, and four times the mean."""
    found = MODELS["a"].predict(TrafficProfile(flows, 500), used * kpps, kpps)
    assert found is not None
    assert found.p99_us == pytest.approx(
        packets(flows, max(used, 0.1)) * (1 - max(used, 0.1)) / (1 - used) * 1e3 / kpps, rel=0.06
    )
    assert found.mean_us == pytest.approx(found.p99_us / 4, rel=0.02)


def test_an_nf_has_a_factor_of_its_own() -> None:
    """Half as much more than the others."""
    slow, other = (MODELS[name].predict(TrafficProfile(100, 500), 50, 100) for name in ("slow", "a"))
    assert slow and other and slow.p99_us / other.p99_us == pytest.approx(1.5, rel=0.05)


def test_nothing_is_predicted_beyond_what_was_carried() -> None:
    """Few flows are only carried up to 70 % here, many up to 90 %."""
    model = trained(measured("a", carried=0.75), measured("bb", carried=0.75))["a"]
    few, many = TrafficProfile(3, 500), TrafficProfile(50_000, 500)
    assert model.law.most(few) == pytest.approx(0.7) and model.law.most(many) == pytest.approx(0.9)
    assert model.predict(few, 80, 100) is None and model.predict(many, 80, 100) is not None
    assert model.predict(many, 80, 0.0) is None


@settings(max_examples=examples(50))
@given(st.floats(1, 1e5), st.floats(1, 1e4), st.sampled_from([None, 0.5, 0.1, 0.01]))
def test_a_curve_never_falls_and_care_lengthens_it(flows: float, rate: float, risk: float | None) -> None:
    """At a rate, less throughput means a longer latency; a smaller risk, too."""
    used, latencies = NOISY.curve("p99", TrafficProfile(flows, 500), rate, risk)
    assert (np.diff(used) > 0).all() and (np.diff(latencies) >= 0).all() and used[-1] == pytest.approx(0.9)
    careful = NOISY.curve("p99", TrafficProfile(flows, 500), rate, 0.005)[1]
    assert (careful >= latencies * (1 - 1e-9)).all()


def test_a_curve_is_what_is_predicted() -> None:
    """At each of its utilisations, for each statistic."""
    traffic = TrafficProfile(100, 500)
    for statistic in ("mean", "p99"):
        used, latencies = MODELS["a"].curve(statistic, traffic, 50.0)
        for at in range(10, len(used), 30):
            found = MODELS["a"].predict(traffic, 50.0, 50.0 / used[at])
            assert found and getattr(found, f"{statistic}_us") == pytest.approx(latencies[at], rel=0.02)


def test_intervals_hold_what_they_promise() -> None:
    """With noise of 10 %, nine of ten further measurements are inside, and one of ten exceeds a risk of 10 %."""
    rng, inside, above, count = np.random.default_rng(5), 0, 0, 2000
    for _ in range(count):
        flows, used = float(np.exp(rng.uniform(0, 11))), float(rng.uniform(0.1, 0.9))
        found = NOISY.predict(TrafficProfile(flows, 500), used, 1.0)
        truth = packets(flows, used) * 1e3 * np.exp(0.1 * rng.normal())
        assert found and found.p99_interval and found.mean_interval
        inside += found.p99_interval[0] <= truth <= found.p99_interval[1]
        above += truth > found.p99_us * NOISY.errors.exceeded("p99", np.array([used]), 0.1)[0]
    assert 0.85 < inside / count < 0.97 and 0.05 < above / count < 0.15


def test_too_little_is_not_learned() -> None:
    """And the user is warned; nothing measured is nothing to warn of."""
    few = measured("a")
    messages: list[str] = []
    few = replace(few, latency=few.latency.head(19))
    assert train_latencies({"a": few}, messages.append) == {} == train_latencies({}, messages.append)
    assert messages == ["latency: 19 measurements are too few, 20 are needed; no latency can be promised"]


def test_a_mean_may_be_missing() -> None:
    """The p99 is learned as with it."""
    nf = measured("a")
    without = trained(replace(nf, latency=nf.latency.assign(mean_us=np.nan)))["a"]
    traffic = TrafficProfile(100, 500)
    one, other = without.predict(traffic, 50, 100), trained(nf)["a"].predict(traffic, 50, 100)
    assert one and other and one.p99_us == pytest.approx(other.p99_us, rel=0.05)


def test_files_hold_the_models(tmp_path: Path) -> None:
    """What is loaded predicts the same; the same models are the same bytes; NFs without one have none."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        save_latencies(tmp_path / folder, MODELS)
    for file in ("shared.npz", "a.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    loaded = load_latencies(tmp_path / "one", ["a", "slow", "other"])
    assert list(loaded) == ["a", "slow"]
    traffic = TrafficProfile(77, 300)
    assert loaded["slow"].predict(traffic, 3, 7) == MODELS["slow"].predict(traffic, 3, 7)


def test_training_writes_latency_into_the_models_folder(tmp_path: Path) -> None:
    """Checked by digest as all else; damaged, the folder is refused; training without latency removes it."""
    profile = read_profile(RECORDED)
    models = train(replace(profile, nfs={"Tunnel": profile.nfs["Tunnel"]}), ["tomur"])
    models.save(tmp_path / "m")
    assert list(load_models(tmp_path / "m").latencies) == ["Tunnel"]
    write_json({"latency": 2}, tmp_path / "m" / "latency" / "Tunnel.json")
    with pytest.raises(InputError, match=r"Tunnel.json.*damaged"):
        load_models(tmp_path / "m")
    models.save(tmp_path / "m")
    replace(models, latencies={}).save(tmp_path / "m")
    assert not (tmp_path / "m" / "latency").exists()
