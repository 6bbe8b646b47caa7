"""`python -m profiler.simulated` speaks the testbed protocol on stdin and stdout."""

import sys

from profiler.serve import serve
from profiler.simulated import SimulatedTestbed

serve(SimulatedTestbed(), sys.stdin, sys.stdout)
