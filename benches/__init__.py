"""Benchmarks of speed, memory and accuracy: `python -m benches NAME`."""
