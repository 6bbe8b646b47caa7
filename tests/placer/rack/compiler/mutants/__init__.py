"""Faults that are put into the generator, one at a time; the comparison with the reference must catch each."""
