"""Sweeps: from what `profiler.sweeps` measured to fitted models."""
