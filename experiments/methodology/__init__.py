"""What the experiments of every paper share: error metrics, findings, plots and the host testbed."""
