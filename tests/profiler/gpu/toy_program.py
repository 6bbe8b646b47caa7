"""The GPU server of `toy_gpu` as a program: `exec:python -m tests.profiler.gpu.toy_program`."""

import sys

from profiler.serve import serve
from tests.profiler.gpu.toy_gpu import ToyGpu

if __name__ == "__main__":
    serve(ToyGpu(), sys.stdin, sys.stdout)
