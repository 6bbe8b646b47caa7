"""The kinds of NF that chains are made of: one file each, which registers its kind. Read `acl.py` first.

A file says which parameters a chain may set, on which platforms the NF runs (Lemur, table 3), makes the data of an
instance once for all platforms (filters, routes, backends), and has a model of what the NF does to frames: the same
bytes as the functions in C under `nfs/functions`. `nf_model.py` is the seam, `headers.py` reads frames.
"""
