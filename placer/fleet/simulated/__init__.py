"""Production, simulated: a trace is played through the online engine, and a testbed that drifts answers for the NICs.

Read `simulation.py` first.
"""

from placer.fleet.simulated.simulation import ProductionRequest, simulate

__all__ = ["ProductionRequest", "simulate"]
