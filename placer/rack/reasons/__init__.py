"""Why: what limits a chain, why other layouts were not chosen, and why there is no plan."""
