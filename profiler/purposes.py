"""What a run in the journal was made for.

Runs of one NF carry its name, and a name holds no slash. Repeats and readings of the reference run during the runs of
co-locations of several NFs carry both purposes, that of the co-locations first.
"""

BENCHES, TOGETHER, FURTHER, REPEATS, REFERENCE = "/benches", "/together", "/further", "/again", "/reference"
CYCLES, CHAINS, SWEEP, SHARING, LATENCY = "/cycles", "/chains", "/sweep", "/sharing", "/latency"


def further(number: int) -> str:
    """The purpose of the further runs of this number, counted from 1."""
    return f"{FURTHER}-{number}"


def of_co_locations(purpose: str) -> bool:
    """Whether a run was made for several NFs together, cycles, chains, latency or a sweep; no other depends on it."""
    return purpose.startswith((TOGETHER, FURTHER, CYCLES, CHAINS, SWEEP, SHARING, LATENCY))
