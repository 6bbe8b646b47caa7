"""Figures and tables of Lemur (Yen et al.), one file each."""

from experiments.registry import Paper

PAPER = Paper("Lemur", "Meeting SLOs in Cross-Platform NFV", "Yen et al.")
