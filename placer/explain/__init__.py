"""Why: candidates of an arrival, idle capacity by cause, the resource that limits an NF."""
