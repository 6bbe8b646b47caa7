"""`simulated`: the simulated BlueField-2; `simulated:NAME`: another simulated card, server or GPU."""

from collections.abc import Callable, Mapping

from profiler.simulated import (
    BLUEFIELD_2_CONTENDED,
    BLUEFIELD_3,
    BLUEFIELD_3_NFS,
    CONTENDED_NFS,
    PENSANDO,
    PENSANDO_NFS,
    SimulatedServer,
    SimulatedTestbed,
)
from profiler.testbed import Testbed
from profiler.testbeds import TESTBEDS
from profiles import InputError


def _gpu(name: str) -> Testbed:
    from profiler.simulated_gpu import SIMULATED_GPUS, SimulatedGpu  # loads compiled code, which nobody else needs

    card, nfs = SIMULATED_GPUS[name]
    return SimulatedGpu(card=card, nfs=nfs)


SIMULATED_MACHINES: Mapping[str, Callable[[], Testbed]] = {
    "": SimulatedTestbed,
    "contended": lambda: SimulatedTestbed(card=BLUEFIELD_2_CONTENDED, nfs=CONTENDED_NFS),
    "bluefield-3": lambda: SimulatedTestbed(card=BLUEFIELD_3, nfs=BLUEFIELD_3_NFS),
    "pensando": lambda: SimulatedTestbed(card=PENSANDO, nfs=PENSANDO_NFS),
    "server": SimulatedServer,
    "gpu": lambda: _gpu("gpu"),
    "gpu-b": lambda: _gpu("gpu-b"),
}
"""By what follows the colon: a BlueField-2, one on which NFs contend more, a BlueField-3, a card of another maker, a
server that runs chains of NFs, a server with a GPU, and one with another GPU."""


@TESTBEDS.register("simulated")
def open_simulated(argument: str, timeout: float) -> Testbed:
    """The simulated machine of that name; no name opens the BlueField-2."""
    if argument not in SIMULATED_MACHINES:
        *others, last = [f"simulated:{name}" if name else "simulated" for name in SIMULATED_MACHINES]
        message = f"there is no simulated card '{argument}'"
        raise InputError.of("--testbed", message, hint=f"{', '.join(others)} or {last}")
    return SIMULATED_MACHINES[argument]()
