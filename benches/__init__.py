"""Benchmarks of speed and memory, each compared with a peer in the same run: `python -m benches NAME`."""
