"""Simulated servers with a GPU, event by event: the ground truth of latency. Nothing here is measured."""

from profiler.simulated_gpu.card import GPU_NFS, SMALL_CARD, SMALL_CARD_NFS, TITAN, Bus, GpuCard, GpuNfSpec
from profiler.simulated_gpu.testbed import SimulatedGpu

SIMULATED_GPUS = {"gpu": (TITAN, GPU_NFS), "gpu-b": (SMALL_CARD, SMALL_CARD_NFS)}
"""Cards and their NFs, by what follows `simulated:`."""

__all__ = [
    "GPU_NFS", "SIMULATED_GPUS", "SMALL_CARD", "SMALL_CARD_NFS", "TITAN", "Bus", "GpuCard", "GpuNfSpec", "SimulatedGpu",
]  # fmt: skip
