"""Which co-locations to measure so that a placement can rest on them: `placer profile --for ARRIVALS`.

Read `rounds.py`: plan, choose, measure, train again. `usage.py` finds which co-locations plans use, and `worth.py` what
a further run of each is worth.
"""
