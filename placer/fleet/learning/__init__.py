"""What production teaches: measurements correct predictions, drift is found, retrained models prove themselves."""
