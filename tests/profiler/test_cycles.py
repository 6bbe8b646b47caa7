"""Cycles per packet, found on servers whose cycles are known."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from profiler.cycles import measure_part_of_cycles
from profiler.journal.journal import Journal
from profiler.simulated import SimulatedServer
from profiler.testbed import Measurement, Run, Testbed
from profiler.testbed_stack import TestbedStack
from profiles import Counters, Load, TrafficProfile
from profiles.cycles import MeasuredCycles
from tests.profiler.toy_server import CLOCK_MHZ, PER_RULE, RULES, SOURCE, ToyServer, server_description
from tests.profiler.toy_testbed import ToyTestbed


def cycles_of(testbed: Testbed, tmp_path: Path, messages: list[str] | None = None) -> MeasuredCycles | None:
    described = testbed.describe()
    say = (messages if messages is not None else []).append
    with Journal(tmp_path / "j") as journal:
        stack = TestbedStack(testbed, journal, 0, say)
        return measure_part_of_cycles(stack, journal, described.fitting_nfs, notify=say)


def test_cycles_are_those_of_the_server_at_the_worst_traffic(tmp_path: Path) -> None:
    """Without the source; coder takes most with the largest packets, gate the same at all traffic."""
    found = cycles_of(ToyServer(), tmp_path)
    assert found is not None and (found.clock_mhz, found.source_cycles) == (CLOCK_MHZ, pytest.approx(SOURCE))
    coder, gate = found.nfs["coder"], found.nfs["gate"]
    assert (coder.cycles, coder.at_default, coder.traffic.packet_size) == (pytest.approx(550), pytest.approx(500), 1000)
    assert (gate.cycles, gate.replicable, coder.replicable) == (pytest.approx(150), True, False)


def test_cycles_grow_with_rules_by_a_straight_line(tmp_path: Path) -> None:
    """Of an NF that has rules."""
    found = cycles_of(ToyServer(), tmp_path)
    assert found is not None and found.nfs["coder"].of_rules is None
    rules = found.nfs["gate"].of_rules
    assert rules is not None and (rules.rules, rules.cycles_per_rule) == (RULES, pytest.approx(PER_RULE))
    assert rules.error_pct == pytest.approx(0, abs=1e-6)


def test_the_clock_is_counted_where_it_is_not_described(tmp_path: Path) -> None:
    """Instructions per second over instructions per cycle."""
    found = cycles_of(ToyServer(server_description(nic={"model": "toy-server", "cores": 4})), tmp_path)
    assert found is not None and found.clock_mhz == pytest.approx(CLOCK_MHZ)


def test_without_clock_and_counters_no_cycles_are_known(tmp_path: Path) -> None:
    """A message says so."""

    class Uncounted(ToyServer):
        def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
            run = super().run(loads)
            return Run(tuple(Measurement(one.throughput_kpps, Counters()) for one in run.measurements))

    messages: list[str] = []
    described = server_description(nic={"model": "toy-server", "cores": 4})
    assert cycles_of(Uncounted(described), tmp_path, messages) is None
    assert messages == ["cycles per packet are not known: the testbed neither describes its clock nor counts cycles"]


def test_a_testbed_without_a_null_nf_is_not_asked_for_cycles(tmp_path: Path) -> None:
    toy = ToyTestbed()
    assert cycles_of(toy, tmp_path) is None and not toy.requests


def test_cycles_do_not_depend_on_which_nfs_are_measured_together(tmp_path: Path) -> None:
    """Nor on the order of the commands."""
    specs = [spec for spec in SimulatedServer()._specs.values() if spec.name in ("Null", "ACL", "Limiter")]
    both, one = SimulatedServer(nfs=specs), SimulatedServer(nfs=[spec for spec in specs if spec.name != "Limiter"])
    (tmp_path / "both").mkdir()
    (tmp_path / "one").mkdir()
    together, alone = cycles_of(both, tmp_path / "both"), cycles_of(one, tmp_path / "one")
    assert together is not None and alone is not None
    assert together.nfs["ACL"] == alone.nfs["ACL"]


def test_published_cycles_are_found_on_the_simulated_server(tmp_path: Path) -> None:
    """Within 2 %, and of Limiter's 20 cycles within 2 cycles; ACL with its default rules and with 1,024."""
    specs = [spec for spec in SimulatedServer()._specs.values() if spec.name in ("Null", "ACL", "Limiter", "NAT")]
    found = cycles_of(SimulatedServer(nfs=specs), tmp_path)
    assert found is not None and found.nfs["NAT"].cycles == pytest.approx(519, rel=0.02)
    assert found.nfs["NAT"].traffic == TrafficProfile(100_000, 1500, found.nfs["NAT"].traffic.mtbr)
    assert found.nfs["Limiter"].cycles == pytest.approx(20, abs=2)
    acl = found.nfs["ACL"]
    assert acl.of_rules is not None and acl.cycles == pytest.approx(985, rel=0.02)
    assert acl.cycles + acl.of_rules.cycles_per_rule * (1024 - acl.of_rules.rules) == pytest.approx(4091, rel=0.02)
    assert acl.low < acl.cycles < acl.high and acl.repeats == 12
