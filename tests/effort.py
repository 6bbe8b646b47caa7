"""How much is tried: `make test` draws a few examples, `make test-all` many, and both the same ones in each run.

So a commit passes wherever it passed once. `make test-all NEW_DRAWS=1` and `make slow` search among new ones.
"""

import os

THOROUGH = os.environ.get("THOROUGH") == "1"  # whether `make test-all` runs the tests
NEW_DRAWS = os.environ.get("NEW_DRAWS") == "1"  # whether examples differ from run to run


def examples(most: int) -> int:
    """How many examples a property is tried with, of `most` in `make test-all`."""
    return most if THOROUGH else max(most // 4, 5)
