"""What the example and the case study share."""
