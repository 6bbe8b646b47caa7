"""Tests of the proven optimum."""
