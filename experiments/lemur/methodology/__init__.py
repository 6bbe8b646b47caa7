"""What the experiments on racks share: chains, racks, and plans of strategies for them."""
