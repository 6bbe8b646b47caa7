"""The NFs that the switch runs, one file each."""
