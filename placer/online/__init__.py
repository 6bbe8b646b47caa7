"""Deciding online: events in any order, each answered at once, for fleets whose NICs are looked at by class."""
