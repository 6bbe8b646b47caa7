"""`cycles.json` of a profile (docs/formats/profile.md): cycles per packet of each NF, as a rack names them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiles.description import TestbedDescription
from profiles.profile import write_json
from profiles.traffic import TrafficProfile

CYCLES_FILE = "cycles.json"
SERVER_DEVICE = "server"  # the device of testbeds that do not describe their kind


@dataclass(frozen=True, slots=True)
class CyclesOfRules:
    """How cycles grow with the rules of an NF."""

    rules: float  # their number at which `NfCycles.cycles` was measured
    cycles_per_rule: float  # of each further rule
    error_pct: float  # the largest relative difference between the straight line and what was measured


@dataclass(frozen=True, slots=True)
class NfCycles:
    """Cycles per packet of one NF on one core, without those of the source."""

    cycles: float
    """At the traffic at which it takes most: the mean of `repeats` runs, of which `low` is the least, `high` the most.
    """
    low: float
    high: float
    repeats: int
    traffic: TrafficProfile
    at_default: float  # at the default traffic
    replicable: bool  # whether several cores can run copies of it
    of_rules: CyclesOfRules | None = None

    def as_dict(self) -> dict[str, Any]:
        """As the file has it."""
        rules = self.of_rules
        return {
            "cycles": _neat(self.cycles),
            "replicable": self.replicable,
            **(
                {
                    "rules": rules.rules,
                    "cycles_per_rule": _neat(rules.cycles_per_rule),
                    "rules_error_pct": _neat(rules.error_pct),
                }
                if rules
                else {}
            ),
            "cycles_low": _neat(self.low),
            "cycles_high": _neat(self.high),
            "repeats": self.repeats,
            "traffic": self.traffic.as_dict(),
            "cycles_default_traffic": _neat(self.at_default),
        }


@dataclass(frozen=True, slots=True)
class MeasuredCycles:
    """What was measured on one testbed: the clock, the cycles of the source alone, and those of each NF."""

    clock_mhz: float
    source_cycles: float
    nfs: Mapping[str, NfCycles]


def write_cycles(measured: MeasuredCycles, description: TestbedDescription, path: Path, known: Path) -> None:
    """Write the cycles to `path`; NFs that the file `known` has of the same testbed stay, unless measured again."""
    device = description.nic.kind or SERVER_DEVICE
    nfs = {name: {device: nf.as_dict()} for name, nf in measured.nfs.items()}
    write_json(
        {
            "testbed": description.name,
            "simulated": description.simulated,
            "clock_mhz": _neat(measured.clock_mhz),
            "source_cycles": _neat(measured.source_cycles),
            "nfs": dict(sorted({**_read_known(known, description), **nfs}.items())),
        },
        path,
    )


def _read_known(path: Path, description: TestbedDescription) -> dict[str, Any]:
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(written, dict) or written.get("testbed") != description.name:
        return {}
    nfs = written.get("nfs")
    return nfs if isinstance(nfs, dict) else {}


def _neat(value: float) -> float:
    return float(f"{value:.6g}")
