"""Programs of SmartNICs, which XDP emulates: C for clang, within the limits of the card.

`program.py` is what a SmartNIC does, `functions.py` its NFs, `source.py` writes the program in C from it and the
snippets of `nfs/xdp`, `build.py` compiles that, `limits.py` checks the object, `machine.py` runs it without a kernel.
"""
