"""Traffic expressions: which packets a chain takes, or a branch.

`expression.py` is what an expression means, `parse.py` reads one, `entries.py` turns it into entries of a ternary
table, `pcap.py` into a filter of libpcap.
"""
