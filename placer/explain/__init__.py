"""Why: the NICs that an arrival could go to, unused capacity by cause, the bottleneck of an NF."""
