"""Figures of Grus, one file each. Read `figure11.py` first."""

from experiments.registry import Paper

PAPER = Paper("Grus", "Grus: Enabling Latency SLOs for GPU-Accelerated NFV Systems", "Zheng et al.")

MODELLED_GPU = (
    "Modelled, nothing is run on a GPU: a device like a TITAN Xp, with 30 SMs of 16 executors; times that the paper "
    "does not print are assumed (experiments/grus/methodology/paper_gpu.py)."
)
"""How SLOs are judged, as lists of testbeds say it."""
SIMULATED_GPU = (
    "simulated:gpu, a simulated server with a card like a TITAN Xp: nothing is run on a GPU. It is calibrated to "
    "numbers of figures 1, 3, 9 and 10 (profiler/simulated_gpu/card.py); its NF ACL is the firewall of the paper."
)
"""Where latencies come from, as lists of testbeds say it."""
NOT_PRINTED = "not printed"
BUS_SCHEDULES = ("one-shot", "sporadic")  # transfers once each, as in the paper, or recurring every period
