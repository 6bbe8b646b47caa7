"""The best plan: branch and bound on few servers, column generation on many, and bounds that prove it."""
