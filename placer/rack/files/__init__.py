"""Files of chains, racks and plans: what people write, and the JSON of programs; every fault with its line."""
