"""What to measure so that a placement can rest on it: `placer profile --for ARRIVALS`, `placer run --measure N`.

For a profile read `rounds.py`: plan, choose, measure, train again. `usage.py` finds which co-locations plans use, and
`worth.py` what a further run of each is worth. For one plan read `measured_plan.py`: plan, run the co-locations of the
plan, plan again. `needs.py` lists these co-locations, `card_runs.py` runs them, and `measured_predictor.py` weighs runs
with predictions."""
