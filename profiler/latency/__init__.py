"""Profiling of the latency of NFs on SmartNICs and servers, against their offered rate and beside others."""
