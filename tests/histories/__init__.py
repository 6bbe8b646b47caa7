"""Histories of the service under faults, checked by a program that knows only what an answer means."""
