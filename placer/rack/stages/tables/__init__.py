"""NFs on a switch as match-action tables: their dependencies, and whether they fit the stages."""
