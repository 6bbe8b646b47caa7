"""`placer run` of instances at offered rates: cores are chosen, what cannot be carried is refused."""

import json
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer, refuse

NFS = ("FlowMonitor", "NAT", "ACL", "IPRouter", "FlowStats")


def _trace(path: Path, rows: list[str], header: str = "id,time,nf,rate_kpps") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def light(tmp_path: Path) -> Path:
    """Forty instances at 100 or 490 kpps, of which each takes one core or two."""
    return _trace(tmp_path / "light.csv", [f"{at},{at},{NFS[at % 5]},{(100, 490)[at % 2]}" for at in range(40)])


def test_light_instances_share_nics_by_what_is_offered(placer: Placer, light: Path) -> None:
    """As many on a NIC as it has cores, so few NICs are enough; no plan has more than one violation."""
    status, out, err = placer("run", light, "--format", "json", "--time-limit", "20", "--range", "0", "--risk", "0.22")
    assert status == 0, err
    assert "slomo is left out: it knows no offered rates and no numbers of cores" in err
    found = json.loads(out)
    rows = {row["strategy"]: row for row in found["strategies"]}
    assert rows["monopolization"]["nics"] == 40
    assert found["optimal"]["lower_bound"] <= found["optimal"]["nics"] <= rows["contention-aware"]["nics"] <= 9
    assert found["optimal"]["nics"] <= rows["planned"]["nics"] + 1
    assert all(row["violated"] <= 1 and row["rejected"] == 0 for row in found["strategies"])


def test_cores_that_are_given_are_kept(placer: Placer, tmp_path: Path) -> None:
    """Two instances that get four cores each fill a NIC, whatever they are offered."""
    trace = _trace(tmp_path / "given.csv", [f"{at},0,NAT,100,4" for at in range(4)], "id,time,nf,rate_kpps,cores")
    status, out, _ = placer("run", trace, "--format", "json", "--time-limit", "5")
    found = json.loads(out)
    assert status == 0
    assert [row["nics"] for row in found["strategies"] if row["strategy"] != "monopolization"] == [2, 2, 2, 2]


def test_headroom_is_kept_for_growth(placer: Placer, tmp_path: Path) -> None:
    """Eight instances that fill the cores of a NIC need more NICs where each may double; none may tenfold."""
    trace = _trace(tmp_path / "full.csv", [f"{at},0,NAT,500" for at in range(8)])
    run = ("run", trace, "--strategy", "contention-aware", "--format", "json")
    status, out, _ = placer(*run)
    assert (status, json.loads(out)["strategies"][0]["nics"]) == (0, 1)
    status, out, err = placer(*run, "--headroom", "100")
    assert (status, json.loads(out)["strategies"][0]["nics"]) == (0, 2)
    assert "every offered rate is planned 100 % higher" in err
    assert "--headroom: 0: 5,000 kpps is more than 'NAT' carries" in refuse(*run, "--headroom", "900")
