"""Optima of Lemur's evaluation (paper 001, section 5), for the chains and the rack that `placer reproduce` uses."""

from experiments.lemur.methodology.paper_rack import CHAIN_GRAPHS, RATE_DELTAS, chain_json, chains, rack, rack_json

__all__ = ["CHAIN_GRAPHS", "OPTIMA_GBPS", "RATE_DELTAS", "chain_json", "chains", "rack", "rack_json"]

OPTIMA_GBPS: dict[tuple[int, ...], tuple[float | None, ...]] = {
    (1, 2, 3, 4): (27.51, 21.35, 18.11, 18.11, None, None, None, None),
    (1, 2, 3): (29.19, 25.21, 23.59, 23.59, 21.97, 21.97, 20.35, 20.35),
    (1, 2, 4): (29.15, 25.21, 23.59, 23.59, 21.97, 21.97, 20.35, 20.35),
    (1, 3, 4): (21.28, 16.88, 14.25, 14.25, 13.25, 13.25, None, None),
    (2, 3, 4): (27.99, 23.59, 20.35, 20.35, 17.10, 17.10, 13.86, 13.86),
}
"""Aggregate rates by set of chains and delta, from an independent program; None: infeasible."""
