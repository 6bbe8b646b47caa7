PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/bash

.PHONY: run test test-all slow sanitized check profile traces bench clean deps nfs cycles lemur references fuzz gpu gpu-compiler

run: .venv/.installed  ## Place the trace in the repo with every strategy.
	$(BIN)/placer run traces/arrivals-500.csv

PARALLEL := -n auto --dist loadscope --no-loadscope-reorder

# checks run beside the tests, as neither keeps all cores busy; what they find is printed last
define with_checks
	@mkdir -p build
	@$(MAKE) --no-print-directory check > build/check.log 2>&1 & checks=$$!; \
	$(1); tested=$$?; wait $$checks; checked=$$?; cat build/check.log; exit $$((tested | checked))
endef

# else each of many processes compiles all modules again
test test-all slow: export PYTHONDONTWRITEBYTECODE =

test: .venv/.installed-dev  ## Lint, types, import rules, and the tests, on all cores: a few minutes.
	$(call with_checks,$(BIN)/pytest $(PARALLEL))

test-all: export THOROUGH = 1
test-all: .venv/.installed-dev  ## The same with all that is tested within 35 minutes, which is what CI runs.
	$(call with_checks,$(BIN)/pytest $(PARALLEL) -m 'not slow')

slow: export THOROUGH = 1
slow: export NEW_DRAWS = 1
slow: .venv/.installed-dev sanitized  ## The rest, for hours: what passed is not run again until a file changes.
	$(BIN)/python -m pytest $(PARALLEL) -m slow -p tests.slow_record --record build/slow.jsonl
	$(BIN)/python -m tests.slow_record build/slow.jsonl > docs/slow-tests.md

sanitized: .venv/.installed-dev  ## The tests of the network functions in C, with sanitizers, and some fuzzing.
	SANITIZE=1 $(BIN)/pytest $(PARALLEL) tests/nfs

check: .venv/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

profile: .venv/.installed  ## Record the profiles of the simulated machines again; the same seed gives the same bytes.
	rm -rf build/bluefield-2-simulated* build/bluefield-2-contended-simulated* build/server-simulated*
	$(BIN)/placer profile --testbed simulated --cores 1,2,4 --out build/bluefield-2-simulated --seed 0
	$(BIN)/placer profile --testbed simulated:contended --cores 1,2,4 --out build/bluefield-2-contended-simulated --seed 0
	$(BIN)/placer profile --testbed simulated:server --cores 1,2,4 --out build/server-simulated --quota 225 --seed 0
	$(BIN)/placer profile --testbed simulated:server --out build/server-simulated --chains pairs --chain-count 30 --seed 0
	$(BIN)/placer profile --testbed simulated:server --out build/server-simulated --chains triples --chain-count 12 --seed 0
	$(BIN)/placer profile --testbed simulated:server --out build/server-simulated --latency --seed 0
	rm -rf traces/bluefield-2-simulated traces/bluefield-2-contended-simulated traces/server-simulated
	cp -r build/bluefield-2-simulated build/bluefield-2-contended-simulated build/server-simulated traces

traces: .venv/.installed  ## Write the traces in the repo again.
	$(BIN)/placer generate --count 500 --seed 1 --out traces/arrivals-500.csv
	$(BIN)/placer generate --count 500 --traffic mixed --seed 2 --out traces/arrivals-mixed.csv
	$(BIN)/placer generate --count 500 --departures 1500 --seed 3 --out traces/arrivals-departures.csv

# Debian packages that build and test the network functions in C
DEBIAN := meson ninja-build pkg-config gcc dpdk-dev libdpdk-dev libhyperscan-dev zlib1g-dev libpcap-dev libjansson-dev \
  libcmocka-dev libssl-dev valgrind clang libclang-rt-dev libbpf-dev \
  pocl-opencl-icd ocl-icd-opencl-dev opencl-headers spin
SUDO := $(shell test "$$(id -u)" = 0 || echo sudo)

deps:  ## Install what builds the network functions in C (Debian, as root); waits while apt is locked.
	for try in 1 2 3 4 5; do $(SUDO) apt-get update -qq && break; sleep 10; done
	DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $(DEBIAN)

# configured each time, which takes half a second: a package that was missing may be installed now
MESON = $(if $(shell command -v ld.gold),CC_LD=gold) meson setup $(if $(wildcard $(1)/build.ninja),--reconfigure) $(1) nfs

nfs:  ## Build the network functions in C and the host testbed.
	$(call MESON,build/nfs)
	ninja -C build/nfs programs

cycles: nfs  ## Cycles per packet of network functions and chains, compared with peers and predictions.
	build/nfs/cycles

lemur: nfs .venv/.installed  ## Lemur's five chains: placed, compiled, and run with packets on an emulated rack.
	cd build && ../$(BIN)/python ../examples/compile_and_run.py

references: nfs .venv/.installed-dev  ## Each function in C against its model in Python, a million packets each.
	$(BIN)/python -m tests.nfs.comparison

# NVIDIA's compiler: the machine's, or the one that gpu-compiler installs
NVCC ?= $(firstword $(shell command -v nvcc) \
  $(abspath $(wildcard build/cuda/lib/python3*/site-packages/nvidia/cu1*/bin/nvcc)) nvcc)
gpu:  ## Kernels for GPUs: built, and verified on an NVIDIA GPU; without one on the CPU, which it says.
	NVCC=$(NVCC) nfs/gpu/verify.sh

gpu-compiler:  ## Install NVIDIA's compiler from PyPI, which needs no GPU.
	test -x build/cuda/bin/python || $(PYTHON) -m venv build/cuda
	build/cuda/bin/pip install --quiet --disable-pip-version-check 'nvidia-cuda-nvcc==13.*' 'nvidia-cuda-crt==13.*' \
	  'nvidia-cuda-runtime==13.*' 'nvidia-cuda-nvrtc==13.*' 'nvidia-nvvm==13.*'

FUZZ_S ?= 60
fuzz:  ## Fuzz the packet path, and captures, for FUZZ_S seconds each.
	CC=clang $(call MESON,build/nfs-fuzz) -Dfuzz=true -Dtests=disabled \
	  -Db_sanitize=address,undefined -Db_lundef=false
	ninja -C build/nfs-fuzz fuzz_packets fuzz_captures
	mkdir -p build/fuzz-corpus build/fuzz-captures
	build/nfs-fuzz/fuzz_packets -max_total_time=$(FUZZ_S) -max_len=4096 -dict=nfs/fuzz/packets.dict \
	  -artifact_prefix=build/ build/fuzz-corpus
	build/nfs-fuzz/fuzz_captures -max_total_time=$(FUZZ_S) -max_len=4096 -artifact_prefix=build/ build/fuzz-captures

clean:
	rm -rf .venv build

# uv installs in seconds what takes pip minutes; where it cannot, as with a mirror that only pip knows, pip does
install = $(BIN)/uv pip install --quiet --python $(BIN)/python $(2) --editable '$(1)' 2> /dev/null || \
  $(BIN)/pip install --quiet --disable-pip-version-check --editable '$(1)'

.venv/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("placer needs Python 3.11 or later") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check 'uv<1' || true
	$(call install,.,--compile-bytecode)
	touch $@

.venv/.installed-dev: .venv/.installed
	$(call install,.[dev])
	touch $@

bench: .venv/.installed  ## Speed, memory and accuracy: hours.
	$(BIN)/python -m benches all
