"""The runtime of network functions on GPUs, in C, and the models of its tables."""
