"""cycles.json, as a rack names cycles."""

from __future__ import annotations

import json
from pathlib import Path

from profiles import TrafficProfile
from profiles.cycles import CyclesOfRules, MeasuredCycles, NfCycles, write_cycles
from tests.profiler.toy_server import server_description
from tests.profiler.toy_testbed import description

NF = NfCycles(985.12345678, 980, 990, 12, TrafficProfile(1, 1500), 980, True, CyclesOfRules(200, 3.77, 0.4))


def written(path: Path, nfs: dict[str, NfCycles], **changes: object) -> dict[str, object]:
    described = server_description(**changes)
    write_cycles(MeasuredCycles(1700, 86.4, nfs), described, path, path)
    loaded: dict[str, object] = json.loads(path.read_text())
    return loaded


def test_the_file_has_what_a_rack_names(tmp_path: Path) -> None:
    """Per NF and device the cycles and whether it is replicable; the clock, and whether it is simulated."""
    file = written(tmp_path / "cycles.json", {"ACL": NF})
    assert {name: file[name] for name in ("testbed", "simulated", "clock_mhz", "source_cycles")} == {
        "testbed": "toy-server", "simulated": True, "clock_mhz": 1700, "source_cycles": 86.4
    }  # fmt: skip
    assert file["nfs"] == {
        "ACL": {
            "server": {
                "cycles": 985.123, "replicable": True, "rules": 200, "cycles_per_rule": 3.77, "rules_error_pct": 0.4,
                "cycles_low": 980, "cycles_high": 990, "repeats": 12,
                "traffic": {"flows": 1, "packet_size": 1500, "mtbr": 0}, "cycles_default_traffic": 980,
            }
        }
    }  # fmt: skip


def test_nfs_of_the_same_testbed_stay_and_others_go(tmp_path: Path) -> None:
    """A file that cannot be read is replaced."""
    path = tmp_path / "cycles.json"
    path.write_text("not JSON")
    written(path, {"ACL": NF})
    assert sorted(written(path, {"NAT": NF})["nfs"]) == ["ACL", "NAT"]  # type: ignore[call-overload]
    assert sorted(written(path, {"LB": NF}, name="other")["nfs"]) == ["LB"]  # type: ignore[call-overload]


def test_the_device_is_the_kind_of_the_nic(tmp_path: Path) -> None:
    """A server where the testbed does not describe it."""
    nic = {"model": "m", "cores": 4, "kind": "smartnic"}
    assert list(written(tmp_path / "a", {"ACL": NF}, nic=nic)["nfs"]["ACL"]) == ["smartnic"]  # type: ignore[index]
    write_cycles(MeasuredCycles(1, 1, {"ACL": NF}), description(), tmp_path / "b", tmp_path / "b")
    assert list(json.loads((tmp_path / "b").read_text())["nfs"]["ACL"]) == ["server"]
