"""Places network functions on SmartNICs: few NICs, no SLA broken."""
