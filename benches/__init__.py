"""Speed and memory, each beside a peer in the same run: `python -m benches NAME`."""
