"""The methodology of Tomur: its NFs, traffic, co-locations, benches and testbeds."""
