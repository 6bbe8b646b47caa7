"""The latency of NFs on SmartNICs and servers, against the share of their throughput that is used."""
