"""The configuration of the chain runtime of a server: what `nf-server` reads."""
