"""How an arrival is placed online: rules compare the NICs on which every SLA stays met, indexes find them fast."""
