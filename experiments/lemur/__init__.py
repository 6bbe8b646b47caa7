"""Figures of Lemur, one file each. Read `figure2.py` first."""

from experiments.registry import Paper

PAPER = Paper("Lemur", "Meeting SLOs in Cross-Platform NFV", "Yen et al.")

BY_CYCLES = "By cycles: rates are computed from cycles per packet, nothing is run."
"""How plans are judged, as lists of testbeds say it."""
NOT_PRINTED = "not printed"
