"""Chains on cores, and what reaches their stages."""

from __future__ import annotations

import numpy as np
import pytest

from predictor.chains.placed_chain import PlacedChain, StageEffect


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


def test_there_is_a_share_of_time_for_each_core() -> None:
    with pytest.raises(ValueError, match="3 shares of time are given for 2 cores"):
        PlacedChain.of(["a", "b"], core_times=[1, 0.5, 1])
