"""Chains of NFs on a rack of a programmable switch, servers and SmartNICs: placed, proven and explained.

The system is Lemur (Yen et al., "Meeting SLOs in Cross-Platform NFV"): each chain gets a rate
between its least and its largest one, and the sum of what chains get beyond their least rate is maximised.
`chain.py` and `rack.py` are what is asked, `layout.py` is one way to place a chain, `place.py` finds the best plan.
"""
