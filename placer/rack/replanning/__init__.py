"""Plans for chains that changed: all SLOs, then the fewest moves, then the largest rates."""
