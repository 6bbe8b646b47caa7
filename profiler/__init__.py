"""Testbeds and the profiling methods that question them. Knows the protocol, knows no model.

`profiling.profile` is the main flow; `testbeds.open_testbed` opens what it runs on.
"""
