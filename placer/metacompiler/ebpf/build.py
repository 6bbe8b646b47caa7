"""Compiles the program of a SmartNIC with clang."""

from __future__ import annotations

import subprocess
import sysconfig
import tempfile
from pathlib import Path

from profiles import InputError

CLANG = "clang"
OPTIONS = ("-O2", "-target", "bpf", "-mcpu=v3", "-fno-jump-tables", "-Wall", "-Wextra", "-Wno-unused-function")
REGISTERS = ("-mllvm", "-pre-RA-sched=source")
"""Instructions in the order of the source: ChaCha20 then keeps more of its words in registers."""
STACK_MESSAGE = "BPF stack limit"


class StackLimitError(Exception):
    """A program that needs more stack than BPF has, 512 bytes: clang writes no object."""


def compile_command(source: Path | str, target: Path | str) -> list[str]:
    """The command that compiles `source` into the object `target`."""
    headers = f"/usr/include/{sysconfig.get_config_var('MULTIARCH') or 'x86_64-linux-gnu'}"
    return [CLANG, *OPTIONS, *REGISTERS, "-idirafter", headers, "-c", str(source), "-o", str(target)]


def compiled(source: str) -> bytes:
    """The object of a program in C.

    Raises
    ------
    InputError
        If clang is missing or refuses the program, with its first message.
    StackLimitError
    """
    with tempfile.TemporaryDirectory() as folder:
        text, target = Path(folder, "nic.c"), Path(folder, "nic.o")
        text.write_text(source, encoding="utf-8")
        try:
            done = subprocess.run(compile_command(text, target), capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise InputError.of("nic.c", f"{CLANG} is not installed", hint="make deps") from None
        if STACK_MESSAGE in done.stderr:
            raise StackLimitError
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            raise InputError.of("nic.c", f"clang refuses the program: {next(iter(errors), 'without saying why')}")
        return target.read_bytes()
