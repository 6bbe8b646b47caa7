"""Contention in the loop of placing chains: subgroups that share a server or a SmartNIC slow one another down.

Cycles alone ignore that. Here a plan is solved, a predictor says by which factors the cycles of its NFs grow beside
their neighbours (`co_location.py`), the grown cycles go back into the program (`grown_instance.py`), and it is solved
again, until plan and prediction agree (`loop.py`). `modelled_growth.py` predicts by the models of a
testbed.
"""
