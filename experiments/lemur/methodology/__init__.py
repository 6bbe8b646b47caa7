"""What the experiments of this paper share."""
