"""The program of a switch: standalone NFs merged into one pipeline.

`program.py` is what a program is, whatever language it is written in; `block.py` what the author of an NF gives, one
file each in `nfs`; `merge.py` unites their parsers, `tree.py` orders the runs of NFs, and `compose.py` makes the
program.
"""
