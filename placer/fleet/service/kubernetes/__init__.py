"""The scheduler extender for Kubernetes: pods are NF instances, nodes are NICs. Read `extender.py` first."""
