"""Solvers of linear programs keep stdout for data, whatever they print."""

import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[2]

PRINTING = """
import ctypes, os, sys, threading
import scipy.optimize
def printing(solve):
    def call(*args, **options):
        os.write(1, b"WARNING: written\\n")
        ctypes.pythonapi.puts(b"WARNING: in a buffer")
        return solve(*args, **options)
    return call
scipy.optimize.linprog, scipy.optimize.milp = printing(scipy.optimize.linprog), printing(scipy.optimize.milp)
"""
"""The solvers of scipy print from C, as HiGHS does now and then."""


def test_what_a_solver_prints_is_not_in_the_data_of_a_command() -> None:
    """JSON of `chain place` can be piped into another program."""
    words = ["chain", "place", "examples/edge.chains", "--rack", "examples/rack.toml", "--format", "json"]
    code = f"{PRINTING}\nfrom placer.cli import main\nsys.argv[1:] = {words}\nmain()"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    assert shown.stdout.startswith("{") and shown.stdout.endswith("}\n")
    assert "WARNING: written" in shown.stderr and "WARNING: in a buffer" in shown.stderr


def test_threads_that_solve_together_leave_stdout_as_it_was() -> None:
    """The first one that begins ends before the second one; a child that is forked meanwhile has stdout."""
    code = f"""{PRINTING}
from profiles.linear_programs import linprog, stdout_kept
begun, ended = threading.Event(), threading.Event()
def first():
    with stdout_kept():
        begun.set(), ended.wait(), os.write(1, b"hidden\\n")
one = threading.Thread(target=first)
one.start(), begun.wait()
with stdout_kept():
    ended.set(), one.join()
    linprog([1.0])
    if not (child := os.fork()):
        os.write(1, b"a child's\\n"), os._exit(0)
    os.waitpid(child, 0)
os.write(1, b"shown\\n")
os.close(1)
linprog([1.0])
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=REPO)
    assert shown.stdout == "a child's\nshown\n" and "hidden\n" in shown.stderr
