"""The online engine: events in any order, each decided at once, and a state file that survives a kill."""
