"""Tables and the scaling example of van Rossem et al., one file each. Read `chains_table4.py` first."""

from experiments.registry import Paper

PAPER = Paper("VNF chains", "VNF Performance Modelling: from Stand-alone to Chained Topologies", "van Rossem et al.")
