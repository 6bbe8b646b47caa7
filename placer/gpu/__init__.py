"""Admission of latency SLOs to a GPU (paper 003), and its model.

device, SLOs -> batches, minibatches and transfer orders -> latency by stage -> what is admitted, and a bound
"""
