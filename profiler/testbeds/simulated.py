"""`simulated`: the simulated BlueField-2."""

from __future__ import annotations

from profiler.simulated import SimulatedTestbed
from profiler.testbed import Testbed
from profiler.testbeds import TESTBEDS
from profiles import InputError


@TESTBEDS.register("simulated")
def open_simulated(argument: str, timeout: float) -> Testbed:
    """The testbed of `simulated`, which takes no argument."""
    if argument:
        raise InputError.of("--testbed", f"simulated takes nothing after a colon, got '{argument}'")
    return SimulatedTestbed()
