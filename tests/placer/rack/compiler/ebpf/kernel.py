"""Runs programs of SmartNICs by the kernel (BPF_PROG_TEST_RUN), through libbpf."""

from __future__ import annotations

import ctypes
import os
import shutil

import pytest

from placer.rack.compiler.ebpf.limits import CLANG

LIBRARY = "libbpf.so.1"
MOST_BYTES = 4096


class TestRun(ctypes.Structure):
    """`struct bpf_test_run_opts`."""

    __test__ = False
    _fields_ = [
        ("sz", ctypes.c_size_t),
        ("data_in", ctypes.c_void_p),
        ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32),
        ("data_size_out", ctypes.c_uint32),
        ("ctx_in", ctypes.c_void_p),
        ("ctx_out", ctypes.c_void_p),
        ("ctx_size_in", ctypes.c_uint32),
        ("ctx_size_out", ctypes.c_uint32),
        ("retval", ctypes.c_uint32),
        ("repeat", ctypes.c_int),
        ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("cpu", ctypes.c_uint32),
        ("batch_size", ctypes.c_uint32),
    ]


def require_clang() -> None:
    """Skip the test without clang."""
    if shutil.which(CLANG) is None:
        pytest.skip("clang not installed: `make deps` installs it")


def require_kernel() -> ctypes.CDLL:
    """libbpf; skip the test without it, or without the right to load programs."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        pytest.skip(f"{LIBRARY} not installed: `make deps` installs it")
    if os.geteuid() != 0:
        pytest.skip("the kernel loads BPF programs for root only")
    library.bpf_object__open_mem.restype = ctypes.c_void_p
    for name in ("bpf_object__next_program", "bpf_object__next_map"):
        getattr(library, name).restype = ctypes.c_void_p
    library.bpf_map__name.restype = ctypes.c_char_p
    return library


class KernelProgram:
    """A program in the kernel."""

    def __init__(self, data: bytes) -> None:
        self.library = library = require_kernel()
        silent = library.libbpf_set_print
        silent(None)
        self.object = ctypes.c_void_p(library.bpf_object__open_mem(data, ctypes.c_size_t(len(data)), None))
        assert self.object
        assert library.bpf_object__load(self.object) == 0, "the kernel refuses the program"
        program = ctypes.c_void_p(library.bpf_object__next_program(self.object, None))
        self.program = library.bpf_program__fd(program)
        self.map, size = self._counters()
        self.values = (ctypes.c_uint64 * (size // 8))()

    def _counters(self) -> tuple[int, int]:
        place = None
        while place := self.library.bpf_object__next_map(self.object, ctypes.c_void_p(place)):
            found = ctypes.c_void_p(place)
            if self.library.bpf_map__name(found).endswith(b".bss"):
                return self.library.bpf_map__fd(found), self.library.bpf_map__value_size(found)
        raise AssertionError("no counters")

    def run(self, packet: bytes) -> tuple[int, bytes]:
        """The action for a packet, and the packet as the program leaves it."""
        out = ctypes.create_string_buffer(MOST_BYTES)
        given = ctypes.create_string_buffer(packet, len(packet))
        options = TestRun(
            ctypes.sizeof(TestRun), ctypes.addressof(given), ctypes.addressof(out), len(packet), MOST_BYTES
        )
        options.repeat = 1
        assert self.library.bpf_prog_test_run_opts(self.program, ctypes.byref(options)) == 0
        return options.retval, out.raw[: options.data_size_out]

    def counters(self) -> list[int]:
        """The program's counters."""
        key = ctypes.c_uint32(0)
        assert self.library.bpf_map_lookup_elem(self.map, ctypes.byref(key), ctypes.byref(self.values)) == 0
        return list(self.values)

    def close(self) -> None:
        """Take the program out of the kernel."""
        self.library.bpf_object__close(self.object)
