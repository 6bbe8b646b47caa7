"""The recorded profile of the simulated server is what `make profile` records, and models are trained from it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from placer.inputs.catalogue import Cards, open_catalogue
from placer.inputs.models import find_recorded
from predictor import Models, train
from profiler.chains.plan import ChainRequest
from profiler.chains.profiling import profile_chains
from profiler.latency import profile_latency
from profiler.profiling import profile
from profiler.simulated import SimulatedServer
from profiler.testbeds import open_testbed
from profiles import InputError, Workload
from profiles.chain_table import ORDER, read_chains
from profiles.profile import read_profile

RECORDED = Path(__file__).parents[3] / "traces" / "server-simulated"


def test_recorded_runs_are_those_of_the_server(tmp_path: Path) -> None:
    """Profiling one NF with the seed and quota of the recorded profile measures the recorded bytes again."""
    recorded = profile(open_testbed("simulated:server"), tmp_path / "p", nfs=["Limiter"], quota=150)
    for file in ("testbed.json", "benches.csv", "Limiter/solo.csv", "Limiter/memory.csv"):
        assert (recorded / file).read_bytes() == (RECORDED / file).read_bytes()
    cycles, again = (json.loads((folder / "cycles.json").read_text()) for folder in (RECORDED, recorded))
    assert again["nfs"]["Limiter"] == cycles["nfs"]["Limiter"]
    assert {name: cycles[name] for name in cycles if name != "nfs"} == {
        name: again[name] for name in again if name != "nfs"
    }


def test_recorded_chains_are_those_of_the_server(tmp_path: Path) -> None:
    """A chain that is measured again with the seed of the recorded profile has the recorded rows."""
    server = SimulatedServer()
    here = read_chains(profile_chains(server, tmp_path / "p", ChainRequest(["Limiter"])) / "chains.csv")
    there = read_chains(RECORDED / "chains.csv")
    there = there[there[ORDER] == "Limiter"].reset_index(drop=True)
    pd.testing.assert_frame_equal(here, there[here.columns], check_exact=True)


@pytest.mark.long
def test_recorded_latencies_are_those_of_the_server(tmp_path: Path) -> None:
    """Measured again with the seed of the recorded profile, byte by byte."""
    again = profile_latency(SimulatedServer(), tmp_path / "p", nfs=["LB"])
    assert (again / "LB" / "latency.csv").read_bytes() == (RECORDED / "LB" / "latency.csv").read_bytes()
    assert all(len(nf.latency) > 40 for nf in read_profile(RECORDED).nfs.values())


def test_recorded_chains_are_pairs_and_triples_with_their_nfs() -> None:
    """Thirty pairs and twelve triples, and each of the fourteen functions alone."""
    orders = read_chains(RECORDED / "chains.csv")[ORDER].unique()
    lengths = np.bincount([1 + order.count(",") for order in orders])
    assert lengths.tolist() == [0, 14, 30, 12]
    assert not any("Null" in order for order in orders)


@pytest.fixture(scope="module")
def models() -> Models:
    """Of two functions of the recorded profile."""
    recorded = read_profile(RECORDED)
    return train(replace(recorded, nfs={name: recorded.nfs[name] for name in ("NAT", "UrlFilter")}), ["tomur"])


def test_models_are_trained_from_the_recorded_profile(models: Models) -> None:
    """On co-locations at default traffic, Tomur's mean error is below 3 %."""
    server, traffic = SimulatedServer(), SimulatedServer().describe().traffic
    names = [["NAT", "UrlFilter"], ["UrlFilter"] * 3, ["NAT"] * 4, ["NAT", "UrlFilter"] * 3]
    co_locations = [[Workload(name, traffic) for name in members] for members in names]
    predicted = models.predictors["tomur"].throughput(co_locations)
    for co_location, run, kpps in zip(co_locations, server.run_many(co_locations, noise=False), predicted, strict=True):
        truth = [one.throughput_kpps for one in run.measurements]
        assert np.mean(np.abs(np.array(kpps) / truth - 1)) < 0.03, co_location


def test_models_of_the_server_are_evaluated_on_it_alone(models: Models, tmp_path: Path) -> None:
    """It is their ground truth unless another is named, and a card is refused; the profile is found by its testbed."""
    models.save(tmp_path / "models")
    with ExitStack() as stack:
        own = open_catalogue(Cards(models=tmp_path / "models"), stack, lambda message: None)
        assert own.specs == ("simulated:server",)
        with pytest.raises(InputError, match="is a bluefield-2, the models were trained on a server-16"):
            open_catalogue(Cards(models=tmp_path / "models", testbed="simulated"), stack, lambda message: None)
    assert find_recorded("simulated:server") == RECORDED.name
