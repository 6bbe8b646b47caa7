"""Simulated machines: testbeds that are computed from a model of cores, caches, memory and accelerators."""

from profiler.simulated.card import BLUEFIELD_2, BLUEFIELD_3, BLUEFIELD_3_NFS, PENSANDO, PENSANDO_NFS, Card
from profiler.simulated.server import SERVER_CARD, SERVER_NFS
from profiler.simulated.server_testbed import SimulatedServer
from profiler.simulated.testbed import BLUEFIELD_2_CONTENDED, CONTENDED_NFS, Account, SimulatedTestbed

__all__ = [
    "BLUEFIELD_2", "BLUEFIELD_2_CONTENDED", "BLUEFIELD_3", "BLUEFIELD_3_NFS", "CONTENDED_NFS", "PENSANDO",
    "PENSANDO_NFS", "SERVER_CARD", "SERVER_NFS", "Account", "Card", "SimulatedServer", "SimulatedTestbed",
]  # fmt: skip
