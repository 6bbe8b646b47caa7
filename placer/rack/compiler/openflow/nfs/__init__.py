"""The NFs of an OpenFlow switch; each file registers its rules under the name of the kind. Read `tunnel.py` first."""
