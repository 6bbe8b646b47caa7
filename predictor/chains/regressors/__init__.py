"""The regressors; each is one file that registers itself under its name. Read `interpolation.py` first."""
