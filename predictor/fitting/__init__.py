"""Fitted models: from measurements of one curve to a formula per segment. Read `fit.py` first. After Scholz et al., "A
Framework for Reproducible Data Plane Performance Modeling" (ANCS 2021)."""
