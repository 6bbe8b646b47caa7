"""Adapters over the online engine; no decision is made here. JSON lines over stdin and stdout."""
