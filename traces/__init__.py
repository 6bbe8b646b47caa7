"""Arrival sequences, traffic profiles, their generators, and the recorded profile of the simulated BlueField-2."""
