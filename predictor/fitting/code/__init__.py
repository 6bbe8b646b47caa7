"""The languages in which fitted models are written; each file registers itself. Read `python.py` first."""
