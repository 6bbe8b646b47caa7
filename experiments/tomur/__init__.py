"""Tables and figures of Tomur, one file each. Read `table2.py` first."""

from experiments.registry import Paper

PAPER = Paper(
    "Tomur",
    "Tomur: Traffic-Aware Performance Prediction of On-NIC Network Functions with Multi-Resource Contention",
    "Wu et al.",
)

SIMULATED_CARD, HARDWARE_CARD = "Simulated BlueField-2", "BlueField-2 hardware"
"""The testbeds, as lists of runs name them."""
