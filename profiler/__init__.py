"""Testbeds and the profiling methods that question them. Knows the protocol, knows no model."""
