"""Simulated servers with a GPU, event by event: the ground truth of latency. Nothing here is measured."""

from profiler.simulated_gpu.card import NFS, SMALL_CARD, SMALL_CARD_NFS, TITAN, Bus, GpuCard, GpuNfSpec
from profiler.simulated_gpu.testbed import SimulatedGpu

GPUS = {"gpu": (TITAN, NFS), "gpu-b": (SMALL_CARD, SMALL_CARD_NFS)}
"""Cards and their NFs, by what follows `simulated:`."""

__all__ = ["GPUS", "NFS", "SMALL_CARD", "SMALL_CARD_NFS", "TITAN", "Bus", "GpuCard", "GpuNfSpec", "SimulatedGpu"]
