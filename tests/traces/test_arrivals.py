"""Generated traces, and the recorded profile of the simulated server with a GPU."""

import csv
from importlib.resources import as_file, files
from itertools import pairwise

import pytest

from profiles.gpu_tables import STAGE_COLUMNS, read_gpu_profile
from traces.arrivals import TABLE_2_NFS, TRAFFICS, Recipe, generate

ATTRIBUTES = {"flows": (1.0, 500000.0), "packet_size": (64.0, 1500.0), "mtbr": (0.0, 1100.0)}


def rows(recipe: Recipe) -> list[dict[str, str]]:
    """The generated rows."""
    return list(csv.DictReader(generate(recipe)))


def test_the_same_seed_gives_the_same_bytes() -> None:
    """Two traces of one recipe are equal, of another seed they are not."""
    recipe = Recipe(traffic="mixed", attributes=ATTRIBUTES, mean_stay_s=60.0, seed=7)
    assert list(generate(recipe)) == list(generate(recipe))
    assert list(generate(recipe)) != list(generate(Recipe(traffic="mixed", attributes=ATTRIBUTES, seed=8)))


@pytest.mark.parametrize("traffic", TRAFFICS)
def test_rows_follow_the_recipe(traffic: str) -> None:
    """Ids are unique, times never decrease, SLAs and traffic are in range, stays are positive."""
    trace = rows(Recipe(count=300, traffic=traffic, attributes=ATTRIBUTES, mean_stay_s=50.0))
    assert len({row["id"] for row in trace}) == 300
    assert all(float(a["time"]) <= float(b["time"]) for a, b in pairwise(trace))
    assert all(0.05 <= float(row["sla_drop"]) <= 0.20 for row in trace)
    assert all(float(row["departure"]) > float(row["time"]) for row in trace)
    assert {row["nf"] for row in trace} == set(TABLE_2_NFS)
    for name, (low, high) in ATTRIBUTES.items():
        assert all(low <= float(row[name]) <= high for row in trace if name in row)


def test_each_kind_of_traffic_has_its_number_of_profiles() -> None:
    """Default traffic names none, mixed draws nine, unique draws one per arrival."""
    found = {
        traffic: {
            tuple(row.get(name) for name in ATTRIBUTES) for row in rows(Recipe(traffic=traffic, attributes=ATTRIBUTES))
        }
        for traffic in TRAFFICS
    }
    assert {traffic: len(profiles) for traffic, profiles in found.items()} == {"default": 1, "mixed": 9, "unique": 500}


@pytest.mark.long
def test_the_recorded_profile_is_read_whole() -> None:
    """Four NFs; sharers are pairs and more; the stages of each latency add up to its mean."""
    with as_file(files("traces") / "gpu-simulated") as path:
        profile = read_gpu_profile(path)
    assert profile.testbed.simulated and profile.testbed.nic.sms == 30
    assert set(profile.nfs) == {"ACL", "IPRouter", "IPSec", "NIDS"}
    for nf in profile.nfs.values():
        assert min(len(nf.batching), len(nf.kernel), len(nf.transfer), len(nf.prepost)) > 40
        assert {text.count(";") for text in nf.sharing.others} == {0, 1, 2}
    assert (abs(profile.latency[STAGE_COLUMNS].sum(axis=1) / profile.latency.latency_mean_us - 1) < 0.02).all()
    sizes = profile.latency.groupby("run").size()
    assert sizes.max() > 5 and (sizes == 1).any()
