"""A state in PostgreSQL, on which several agents decide."""
