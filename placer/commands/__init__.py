"""The commands, one file each: what it takes, what it prints. The work is done elsewhere."""
