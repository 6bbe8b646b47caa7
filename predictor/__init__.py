"""Throughput prediction from profiles. Reads profiles, runs nothing."""
