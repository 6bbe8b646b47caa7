"""The language that profiling and prediction share: nouns, and the profile directory that passes between them.

Nothing here measures, learns or places. `profiler` writes a `Profile`, `predictor` reads it; neither knows the other.
"""

from profiles.counters import COUNTERS, Counters
from profiles.description import BenchDescription, NfDescription, NicModel, TestbedDescription
from profiles.faults import Fault, InputError
from profiles.traffic import ATTRIBUTES, TrafficProfile
from profiles.workload import BenchLoad, Load, Workload

__all__ = [
    "ATTRIBUTES",
    "COUNTERS",
    "BenchDescription",
    "BenchLoad",
    "Counters",
    "Fault",
    "InputError",
    "Load",
    "NfDescription",
    "NicModel",
    "TestbedDescription",
    "TrafficProfile",
    "Workload",
]
