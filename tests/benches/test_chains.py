"""The benchmark of chains."""

from pathlib import Path

import pytest

from benches import chains
from experiments.registry import Setting
from experiments.vnf_chains.methodology import loads, shares


def test_rising_loads_are_measured_into_a_folder_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two runs at least, since one trains and the others judge; experiments read what was written."""
    monkeypatch.setattr(shares, "NF_PAIRS", (("ACL", "Match"),))
    monkeypatch.setattr(chains, "FLOW_STEP", 50_000.0)
    table = chains.run(out=tmp_path, part="loads", rounds=1)
    assert set(table["chain"]) == {"ACL", "Match", "ACL-Match", "Match-ACL"}
    assert (table["loads"] == 2).all() and (table["runs"] == 4).all()
    assert len(loads.load_runs(Setting(chains=tmp_path)).chains) == 6
