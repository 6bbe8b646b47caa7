"""What the experiments on chains share: what is measured at shares of cores, and how it is read."""
