"""Tables and figures of Tomur (Wu et al.), one file each. Read `table2.py` first."""
