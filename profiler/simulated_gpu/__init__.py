"""Simulated servers with a GPU, event by event: the ground truth of latency. Nothing here is measured."""

from profiler.simulated_gpu.card import SMALL_CARD, TITAN, Bus, GpuCard
from profiler.simulated_gpu.nfs import NFS, SMALL_CARD_NFS, GpuNfSpec
from profiler.simulated_gpu.testbed import SimulatedGpu

GPUS = {"gpu": (TITAN, NFS), "gpu-b": (SMALL_CARD, SMALL_CARD_NFS)}
"""Cards and their NFs, by what follows `simulated:`."""

__all__ = ["GPUS", "NFS", "SMALL_CARD", "SMALL_CARD_NFS", "TITAN", "Bus", "GpuCard", "GpuNfSpec", "SimulatedGpu"]
