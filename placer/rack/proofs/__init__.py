"""Certificates: proofs of bounds that `placer verify` checks without the solver."""
