"""Chosen chains, measured in rounds."""

from pathlib import Path

import pytest

from experiments.vnf_chains.methodology.chain_rounds import ChainRounds
from profiler.testbed import TestbedError
from profiles import ChainLoad, InputError
from tests.profiler.toy_server import ToyServer

TRAFFIC = ToyServer().describe().traffic
LOADS = [
    ChainLoad.of(nfs, cores, TRAFFIC)
    for nfs, cores in ((["gate"], [[0]]), (["coder"], [[0]]), (["gate", "coder"], [[0, 1]]))
]


def test_each_round_has_every_chain_once(tmp_path: Path) -> None:
    """In one order, which the seed draws; the results are in the order of the request."""
    server = ToyServer()
    with ChainRounds(server, tmp_path / "p") as rounds:
        measured = rounds.measure(LOADS, 3)
    ran = [loads[0] for loads in server.requests]
    assert len(ran) == 9 and ran[:3] == ran[3:6] == ran[6:] and set(ran) == set(LOADS)
    assert list(measured) == LOADS and [len(one.runs) for one in measured.values()] == [3, 3, 3]


def test_a_later_request_runs_only_what_is_new(tmp_path: Path) -> None:
    """A first look at one chain is its first round."""
    server = ToyServer()
    with ChainRounds(server, tmp_path / "p") as rounds:
        rounds.measure(LOADS[:1], 1)
        rounds.measure(LOADS, 2)
    assert len(server.requests) == 6


def test_what_was_measured_before_an_interrupt_is_not_run_again(tmp_path: Path) -> None:
    """Four of six runs, then the testbed breaks; the table afterwards has six rows."""
    broken, server = ToyServer(fails_after=4), ToyServer()
    with pytest.raises(TestbedError), ChainRounds(broken, tmp_path / "p") as rounds:
        rounds.measure(LOADS, 2)
    with ChainRounds(server, tmp_path / "p") as rounds:
        rounds.measure(LOADS, 2)
        table = rounds.write()
    assert len(broken.requests) + len(server.requests) == 6 and sorted(table["repeat"]) == [0, 0, 0, 1, 1, 1]


def test_what_does_not_run_is_left_out(tmp_path: Path) -> None:
    said: list[str] = []
    with ChainRounds(ToyServer(refused=["coder"]), tmp_path / "p", notify=said.append) as rounds:
        assert list(rounds.measure(LOADS, 1)) == LOADS[:1]
    assert said == ["gate,coder, coder do not run here; left out"] or said == [
        "coder, gate,coder do not run here; left out"
    ]


def test_runs_of_another_seed_are_not_mixed_in(tmp_path: Path) -> None:
    with ChainRounds(ToyServer(), tmp_path / "p") as rounds:
        rounds.measure(LOADS, 1)
    with pytest.raises(InputError, match="seed 0, not 1"):
        ChainRounds(ToyServer(), tmp_path / "p", seed=1)
