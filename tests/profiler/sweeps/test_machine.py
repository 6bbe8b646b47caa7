"""Facts of the machine, only where it is the testbed."""

from __future__ import annotations

from datetime import datetime

import pytest

from profiler.sweeps.claim import machine_facts


@pytest.mark.parametrize("testbed", ["host", "host:--cores 2-5"])
def test_the_host_is_described(testbed: str) -> None:
    """Cores, memory, kernel, and a time with its zone."""
    facts = machine_facts(testbed)
    assert facts["cores"] >= 1 and facts["memory_mb"] > 100 and facts["kernel"]
    assert datetime.fromisoformat(facts["began"]).tzinfo is not None


@pytest.mark.parametrize("testbed", ["simulated", "exec:ssh host agent", "replay:host", "hosts"])
def test_other_testbeds_say_nothing_of_this_machine(testbed: str) -> None:
    """A simulation has the same files everywhere; another machine is not this one."""
    assert machine_facts(testbed) == {}
