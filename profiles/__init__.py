"""What profiling and prediction share: the types of the domain, and the profile directory. Nothing here measures,
learns or places. `profiler` writes a `Profile`, `predictor` reads it; neither imports the other."""

from typing import TYPE_CHECKING, Any

from profiles.chain import ChainLoad, NfStage
from profiles.counters import COUNTERS, Counters
from profiles.faults import Fault, InputError
from profiles.gpu import GpuSettings, Minibatch
from profiles.traffic import ATTRIBUTES, TrafficProfile
from profiles.workload import BenchLoad, CoLocation, ConfiguredWorkload, GpuWorkload, Load, Workload

if TYPE_CHECKING:
    from profiles.description import BenchDescription, NfDescription, NicModel, TestbedDescription

__all__ = [
    "ATTRIBUTES", "COUNTERS", "BenchDescription", "BenchLoad", "ChainLoad", "CoLocation", "ConfiguredWorkload",
    "Counters", "Fault", "GpuSettings", "GpuWorkload", "InputError", "Load", "Minibatch", "NfDescription", "NfStage",
    "NicModel", "TestbedDescription", "TrafficProfile", "Workload",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Descriptions are checked by pydantic, which takes a while to load: it is loaded when one is used."""
    if name in __all__:
        from profiles import description

        return getattr(description, name)
    raise AttributeError(f"module 'profiles' has no attribute '{name}'")
