"""`simulated`: the simulated BlueField-2; `simulated:contended`: one on which NFs contend more."""

from __future__ import annotations

from profiler.simulated import BLUEFIELD_2_CONTENDED, CONTENDED_NFS, SimulatedTestbed
from profiler.testbed import Testbed
from profiler.testbeds import TESTBEDS
from profiles import InputError

CONTENDED = "contended"


@TESTBEDS.register("simulated")
def open_simulated(argument: str, timeout: float) -> Testbed:
    """The simulated card of that name; no name opens the BlueField-2."""
    if not argument:
        return SimulatedTestbed()
    if argument != CONTENDED:
        hint = f"simulated or simulated:{CONTENDED}"
        raise InputError.of("--testbed", f"there is no simulated card '{argument}'", hint=hint)
    return SimulatedTestbed(card=BLUEFIELD_2_CONTENDED, nfs=CONTENDED_NFS)
