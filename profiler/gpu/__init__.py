"""Profiling of a GPU server: the time of each stage of each NF, sharing of SMs, and whole co-locations."""
