"""The kinds of NF that chains are made of: one file each, which registers its kind. Read `acl.py` first.

A file says which parameters a chain may set, on which platforms the NF runs (Lemur, table 3), makes the data of an
instance once for all platforms (filters, routes, backends), and says what the function in C under `nfs/functions` gets.
What an NF does to packets is not here: `tests/reference/nfs` has a model of each. `nf_kind.py` is the seam.
"""
