"""Profiling of chains of NFs, and of the cycles per packet of the NFs in them (Lemur, section 3.2)."""
