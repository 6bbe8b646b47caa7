#!/bin/sh
# Builds the kernels and compares them with the functions in C: on an NVIDIA GPU, if there is one.
# `make gpu` runs it from the top folder; NVCC names the compiler of CUDA.
set -eu

gpu=$(nvidia-smi -L 2>/dev/null | head -n 1 || true)
nvcc=${NVCC:-nvcc}
options="-Dnvcc=$nvcc"
if [ -n "$gpu" ]; then
	if ! command -v "$nvcc" >/dev/null; then
		echo "make gpu: $gpu, but no nvcc: \`make gpu-compiler\` installs it" >&2
		exit 1
	fi
	capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
	options="$options -Dcompute_capability=$capability"
	GPU_REQUIRED=cuda
	export GPU_REQUIRED
fi

tests=
for file in nfs/tests/test_gpu_*.c; do
	name=$(basename "$file" .c)
	tests="$tests ${name#test_}"
done
again=
[ ! -e build/nfs/build.ninja ] || again=--reconfigure
# shellcheck disable=SC2086
meson setup $again build/nfs nfs $options >&2
# shellcheck disable=SC2086
ninja -C build/nfs $(printf 'test_%s ' $tests) >&2
# shellcheck disable=SC2086
meson test -C build/nfs --no-rebuild --print-errorlogs $tests

if [ -n "$gpu" ]; then
	echo "make gpu: kernels run by CUDA on $gpu as the functions in C do"
elif command -v "$nvcc" >/dev/null; then
	echo "make gpu: no NVIDIA GPU here (nvidia-smi): kernels compile as CUDA, but ran on the CPU alone"
else
	echo "make gpu: no NVIDIA GPU here (nvidia-smi), and no nvcc: kernels ran on the CPU alone"
	echo "hint: \`make gpu-compiler\` installs nvcc from PyPI, which compiles them without a GPU"
fi
