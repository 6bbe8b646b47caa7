"""Grus's repaired algorithm on arrays: the same answers as `placer.gpu.greedy`, in microseconds.

SLOs as arrays -> batches -> SMs of the least penalty -> queue on the bus -> what is admitted
"""
