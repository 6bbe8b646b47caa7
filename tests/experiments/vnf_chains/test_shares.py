"""Functions and chains at shares of cores, as tables of chains hold them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from experiments.vnf_chains.methodology.shares import SHARES_TOGETHER, place_on_cores, share_loads, topologies
from profiler.simulated import SimulatedServer
from profiles import InputError
from profiles.chain_table import key_of
from tests.profiler.toy_server import server_description


def table(rows: list[tuple[str, list[float], float, float, float]]) -> pd.DataFrame:
    """Order, shares, packet size, flows and throughput of each run; the first function drops a tenth."""
    return pd.DataFrame(
        {
            "order": order,
            "cores": json.dumps([[at] for at in range(order.count(",") + 1)]),
            "shares": json.dumps(shares),
            "flows": flows,
            "packet_size": size,
            "rate_kpps": 0.0,
            "throughput_kpps": kpps,
            "stage0_dropped_pct": 10.0,
        }
        for order, shares, size, flows, kpps in rows
    )


ALONE = [("A", [share], size, 1000.0, 100 * share) for share in (0.5, 1.0) for size in (64.0, 512.0, 1400.0)]


def test_both_orders_of_each_pair_are_measured_at_every_share() -> None:
    loads = share_loads(SimulatedServer().describe(), [("NAT", "LB")])
    assert len(set(loads)) == len(loads) == 2 * 4 * 5 + 2 * len(SHARES_TOGETHER) * 5
    assert {load.label for load in loads} == {"NAT", "LB", "NAT,LB", "LB,NAT"}
    assert all(len(load.cores) == len(load.stages) for load in loads)
    assert {key_of(load, 0)["shares"] for load in loads if len(load.stages) == 1} == {
        "[0.25]", "[0.5]", "[0.75]", "[1.0]"
    }  # fmt: skip


def test_a_testbed_without_the_functions_or_a_second_core_is_refused() -> None:
    with pytest.raises(InputError, match="--testbed: toy-server runs no NAT, LB on one core"):
        share_loads(server_description(), [("NAT", "LB")])
    one_core = server_description(nic={"model": "toy", "cores": 1})
    with pytest.raises(InputError, match="has one core, pipelines need two"):
        share_loads(one_core, [("gate", "coder")])


def test_repeats_of_a_setting_are_one() -> None:
    """Six settings, each twice."""
    one = topologies(table([*ALONE, *ALONE]))["A"]
    assert one.nfs == ("A",) and one.inputs == ("cpu", "packet_size")
    assert len(one.settings) == 6 and len(one.kpps) == 12
    assert one.dropped_pct == pytest.approx(10)


def test_what_was_not_measured_at_shares_is_left_out() -> None:
    """Chains with all of each core; chains on one core; other flows; too few settings."""
    whole = [("B", [1.0], size, 1000.0, 50.0) for size in range(64, 74)]
    other_flows = [("A", [1.0], size, 16000.0, 70.0) for size in (64.0, 512.0)]
    few = [("C", [share], 64.0, 1000.0, 50.0) for share in (0.25, 0.5, 1.0)]
    found = topologies(table([*ALONE, *whole, *other_flows, *few]))
    assert list(found) == ["A"] and len(found["A"].settings) == 6


def test_functions_come_before_chains() -> None:
    """A chain has an input for each of its functions; what the first drops does not reach the second."""
    shares = [[0.5, 1.0], [1.0, 0.5], [1.0, 1.0]]
    chain = [("A,B", share, size, 1000.0, 40.0) for share in shares for size in (64.0, 512.0)]
    seconds = [("B", share, size, flows, kpps) for _, share, size, flows, kpps in ALONE]
    found = topologies(table([*chain, *ALONE, *seconds]))
    assert list(found) == ["A", "B", "A-B"]
    assert found["A-B"].inputs == ("A.cpu", "B.cpu", "packet_size")
    assert np.array_equal(np.unique(found["A-B"].columns["A.cpu"]), [0.5, 1.0])
    assert place_on_cores(found["A-B"], found).shares.tolist() == pytest.approx([1.0, 0.9])
