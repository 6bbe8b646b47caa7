"""A simulated BlueField-2: a testbed computed from a model of its cores, caches, memory and accelerators."""

from profiler.simulated.account import Account
from profiler.simulated.card import BLUEFIELD_2, BLUEFIELD_3, Card
from profiler.simulated.contended import BLUEFIELD_2_CONTENDED, CONTENDED_NFS
from profiler.simulated.testbed import SimulatedTestbed

__all__ = [
    "BLUEFIELD_2",
    "BLUEFIELD_2_CONTENDED",
    "BLUEFIELD_3",
    "CONTENDED_NFS",
    "Account",
    "Card",
    "SimulatedTestbed",
]
