"""Regression: Gaussian process, boosted trees, and the trees compiled."""
