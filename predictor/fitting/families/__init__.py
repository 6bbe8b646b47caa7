"""The families of functions; each entry registers itself under its name. Read `exponential.py` first."""
