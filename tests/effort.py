"""How much is tried: `make test` draws a few examples, the same ones each time; `make test-all` draws many new ones."""

import os

THOROUGH = os.environ.get("THOROUGH") == "1"  # whether `make test-all` runs the tests


def examples(most: int) -> int:
    """How many examples a property is tried with, of `most` in `make test-all`."""
    return most if THOROUGH else max(most // 4, 5)
