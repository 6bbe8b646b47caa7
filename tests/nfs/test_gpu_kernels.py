"""Kernels of functions for GPUs: their CUDA compiles without a GPU, and a million packets are the same everywhere.

No figure here is one of a GPU: kernels run as plain C and by OpenCL on the CPU, and are only compiled as CUDA.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.nfs.builds import ROOT, require

BUILD = ROOT / "build" / "nfs"
MILLION = 1_000_000
KERNELS = ("ip_router", "acl", "nids", "ipsec")
REGISTERS = {"ip_router": 40, "acl": 40, "nids": 80, "ipsec": 80, "persistent": 80}
"""Most registers of a thread: an SM with 65,536 has room for six executors of 128 threads with 80 each."""

SOURCE = """#include "gpu/host/persistent.h"
#define ONLY(name) KERNEL void only_##name(const u8 *in, u8 *out, const u8 *state, const struct gpu_task task) \\
    { nf_##name(in, out, state, &task, group() * lanes() + lane(), groups() * lanes()); }
"""


def find_nvcc() -> str:
    """NVIDIA's compiler; the test is skipped without it."""
    packages = sorted((ROOT / "build" / "cuda").glob("lib/python3*/site-packages/nvidia/cu1*/bin/nvcc"))
    found = os.environ.get("NVCC") or shutil.which("nvcc") or (str(packages[-1]) if packages else None)
    if found is None:
        pytest.skip("no nvcc (PATH, NVCC, or `make gpu-compiler`): kernels are not compiled as CUDA")
    return found


def test_cuda_of_each_kernel_compiles_without_spills(tmp_path: Path) -> None:
    """For sm_90, within the registers above; ptxas prints registers and stack of each kernel. Compiled, not run."""
    nvcc = find_nvcc()
    source = tmp_path / "each.cu"
    source.write_text(SOURCE + "".join(f"ONLY({name})\n" for name in KERNELS), encoding="utf-8")
    done = subprocess.run(
        [nvcc, "-arch=sm_90", "-cubin", "-Xptxas", "-v", f"-I{ROOT / 'nfs'}", "-o", tmp_path / "each.cubin", source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.findall(
        r"entry function '(?:only|gpu)_(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads"
        r".*?Used (\d+) registers",
        done.stderr,
        re.DOTALL,
    )
    print(*(f"{name}: {registers} registers" for name, _, _, registers in found), sep=", ")
    assert {name for name, *_ in found} == {*KERNELS, "once", "persistent"}
    assert all((stores, loads) == ("0", "0") for _, stores, loads, _ in found)
    assert all(int(registers) <= REGISTERS.get(name, 80) for name, _, _, registers in found)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_million_packets_are_the_same_everywhere(kernel: str) -> None:
    """Byte by byte in C, as plain C, and by each engine that has a device: `-s` shows which ran."""
    require("cc")
    program = BUILD / f"test_gpu_{kernel}"
    if not program.exists():
        pytest.skip(f"{program.name} is not built: `ninja -C build/nfs` builds it")
    done = subprocess.run(
        [program], capture_output=True, text=True, check=False, env=os.environ | {"GPU_PACKETS": str(MILLION)}
    )
    printed = done.stdout + done.stderr
    print(*sorted(set(re.findall(r"^(?:plain|opencl|cuda): .*$", printed, re.MULTILINE))), sep="\n")
    assert done.returncode == 0, printed[-5000:]
    assert sum(map(int, re.findall(r"(\d+) packets the same", printed))) >= MILLION
