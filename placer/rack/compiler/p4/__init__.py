"""P4-16: the program of the switch as text, what checks it, and what runs it."""
