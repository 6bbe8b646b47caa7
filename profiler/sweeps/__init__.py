"""Sweeps: one thing is varied, everything else stays, and every point is measured several times. Read `measuring.py`.
After Scholz et al., "A Framework for Reproducible Data Plane Performance Modeling" (ANCS 2021), section 3."""
