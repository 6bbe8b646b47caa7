"""What the experiments share (Tomur, section 7.1): NFs, traffic, company, benches, testbeds and error metrics."""
