"""From a profile to models: what is fitted to which measurements."""
