"""Throughput and response time of chains of network functions, from the profile of each (van Rossem et al., 2020)."""
