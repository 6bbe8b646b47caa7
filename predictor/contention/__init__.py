"""The models of one NF: accelerators, memory, their composition, and the equilibrium of a co-location."""
