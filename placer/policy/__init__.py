"""How an arrival is placed online: rules score the NICs that keep every SLA, indexes find them fast."""
