"""The example and the case study of Scholz et al., one file each. Read `linear_or_quadratic.py` first."""

from experiments.registry import Paper

PAPER = Paper(
    "Data planes", "A Framework for Reproducible Data Plane Performance Modeling", "Scholz et al."
)  # fmt: skip
