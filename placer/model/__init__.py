"""The nouns: arrivals, SLAs, NICs and their fleet, oracles, plans, and whether a co-location keeps every SLA."""
