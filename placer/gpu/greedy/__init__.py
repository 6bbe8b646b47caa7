"""Admission of one SLO after another: the parts of Grus's algorithm (paper 003, Algorithm 1), repaired.

SLO -> layouts (batch, minibatches) -> SMs of the least penalty -> order of the transfers -> admitted, or a cause
"""
