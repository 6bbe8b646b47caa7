"""Latency of NFs on a GPU server, stage by stage (Grus, sections III-B and V-A)."""
