"""What a run in the journal was made for.

Runs of one NF carry its name, and a name holds no slash. Repeats and readings of the reference run during the runs of
co-locations of several NFs carry both purposes, `TOGETHER` first.
"""

BENCHES, TOGETHER, REPEATS, REFERENCE = "/benches", "/together", "/again", "/reference"
