"""Testbeds, and the methods that profile NFs on them. Knows the testbed protocol, knows no model. `profiling.profile`
is the main flow; `testbeds.open_testbed` opens what it runs on."""
