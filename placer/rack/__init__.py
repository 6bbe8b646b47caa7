"""Chains of NFs on a rack of a programmable switch, servers and SmartNICs: placed, proven and explained.

The system is Lemur (Yen et al., "Meeting SLOs in Cross-Platform NFV"): each chain gets a rate between its least and its
largest one, and the sum of what chains get beyond their least rate is maximised.

`chain.py` and `rack.py` are what is asked, `plan.py` is the answer, `options.py` lists what each chain may get, and
`strategies/optimal.py` finds the best plan. Rooms: `files` (what people write), `stages` (of the switch), `search` (the
best plan, and bounds), `proofs` (certificates), `strategies` and `heuristics` (rivals), `contention` (what neighbours
slow down), `replanning`, and `reasons` (why not).
"""
