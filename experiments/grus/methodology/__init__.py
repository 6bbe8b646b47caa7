"""What the experiments on GPUs share: the device, SLOs, and judged admissions."""
