"""Registered testbeds, and those drawn at random in `tests/data`, which keep the protocol and make physical sense."""

import math
import random
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from placer.testing import check_testbed
from profiler.testbed import RunRefused, Testbed
from profiler.testbeds import TESTBEDS, list_testbeds, open_testbed
from profiles import BenchLoad, InputError, Load, TestbedDescription, TrafficProfile, Workload

REPO = Path(__file__).parents[3]
PROGRAM = REPO / "tests" / "data" / "random_testbed.py"
SEEDS = range(6)


def spec(seed: int) -> str:
    """The SPEC of the testbed of this seed."""
    return f"exec:{sys.executable} {PROGRAM} --seed {seed}"


def throughputs(testbed: Testbed, loads: list[Load]) -> list[float]:
    """The noise-free throughput of each load, kpps."""
    return [measured.throughput_kpps for measured in testbed.run(loads, noise=False).measurements]


def random_load(draw: random.Random, described: TestbedDescription) -> Load:
    """An NF or a bench, anywhere in its range."""
    if draw.random() < 0.6:
        traffic = {name: draw.uniform(*bounds) for name, bounds in described.attributes.items()}
        return Workload(draw.choice(described.nfs).name, TrafficProfile.from_mapping(traffic))
    bench = draw.choice(described.benches)
    return BenchLoad.of(bench.name, {name: draw.uniform(*bounds) for name, bounds in bench.parameters.items()})


def mean_drop(testbed: Testbed, count: int, draw: random.Random) -> float:
    """The mean drop in 40 random co-locations of `count` NFs at default traffic."""
    described = testbed.describe()
    solo = {nf.name: throughputs(testbed, [Workload(nf.name, described.traffic)])[0] for nf in described.nfs}
    drops: list[float] = []
    while len(drops) < 40 * count:
        chosen = draw.choices(described.nfs, k=count)
        if sum(nf.cores for nf in chosen) <= described.nic.cores:
            together = throughputs(testbed, [Workload(nf.name, described.traffic) for nf in chosen])
            drops += [1 - one / solo[nf.name] for nf, one in zip(chosen, together, strict=True)]
    return sum(drops) / len(drops)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_testbed_keeps_the_protocol(seed: int) -> None:
    """It passes the conformance kit, with 6 to 16 cores, 8 to 12 NFs and at most two accelerators."""
    with open_testbed(spec(seed)) as testbed:
        check_testbed(testbed)
        described = testbed.describe()
    assert 6 <= described.nic.cores <= 16 and 8 <= len(described.nfs) <= 12
    assert len(described.nic.accelerators) <= 2


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_are_carried_and_cores_help(seed: int) -> None:
    """Up to the capacity beside another NF; more cores lose at most a little by waiting for each other."""
    with open_testbed(spec(seed)) as testbed:
        described = testbed.describe()
        other = Workload(described.nfs[0].name, described.traffic)
        for nf in described.nfs[1:]:
            workload = Workload(nf.name, described.traffic)
            capacity = throughputs(testbed, [workload, other])[0]
            for share in (0.3, 0.99, 1.2):
                carried = throughputs(testbed, [replace(workload, rate_kpps=share * capacity), other])[0]
                assert carried == pytest.approx(min(share, 1) * capacity, rel=1e-4)
            kpps = [throughputs(testbed, [replace(workload, cores=cores)])[0] for cores in nf.core_counts]
            assert all(after > 0.95 * before for before, after in pairwise(kpps))


@pytest.mark.long
def test_seeds_differ_in_hardware_and_in_how_resources_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """No two descriptions are the same, and ten seeds show every kind of sharing, waiting and queue discipline."""
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    import random_nic  # type: ignore[import-not-found]

    nics = [random_nic.Nic(seed) for seed in range(10)]
    assert len({(nic.cores, nic.llc_mb, nic.bandwidth, *nic.nfs) for nic in nics}) == len(nics)
    assert {nic.sharing for nic in nics} == set(random_nic.SHARES)
    assert {nic.waiting for nic in nics} == set(random_nic.WAITS)
    assert {engine.discipline for nic in nics for engine in nic.engines.values()} == set(random_nic.DISCIPLINES)
    assert {"mtbr" in nic.traffic for nic in nics} == {True, False}
    assert {nf.pipeline for nic in nics for nf in nic.nfs.values() if nf.engines} == {True, False}


def test_noise_free_answers_depend_only_on_seed_and_workloads() -> None:
    """Another process, after other runs, answers the same; another seed does not."""
    answers = []
    for warm_up in (0, 5):
        with open_testbed(spec(3)) as testbed:
            described = testbed.describe()
            loads: list[Load] = [Workload(nf.name, described.traffic) for nf in described.nfs[:3]]
            for _ in range(warm_up):
                testbed.run(loads[:1])
            answers.append(testbed.run(loads, noise=False).measurements)
    assert answers[0] == answers[1]


def test_noise_has_the_drawn_size() -> None:
    """Repeated runs differ by half a percent to two percent."""
    with open_testbed(spec(1)) as testbed:
        described = testbed.describe()
        load = Workload(described.nfs[0].name, described.traffic)
        exact = throughputs(testbed, [load])[0]
        noisy = [testbed.run([load]).measurements[0].throughput_kpps / exact - 1 for _ in range(100)]
    assert 0.004 < (sum(error**2 for error in noisy) / len(noisy)) ** 0.5 < 0.025


@pytest.mark.parametrize("seed", SEEDS)
def test_a_competitor_never_helps_unless_it_slows_another(seed: int) -> None:
    """With one more workload, no throughput grows by more than 1 % while no other one falls."""
    draw = random.Random(seed)
    with open_testbed(spec(seed)) as testbed:
        described = testbed.describe()
        checked = 0
        while checked < 60:
            loads = [random_load(draw, described) for _ in range(draw.randint(2, 5))]
            try:
                before, after = throughputs(testbed, loads[:-1]), throughputs(testbed, loads)
            except RunRefused:
                continue
            ratios = [new / old for new, old in zip(after, before, strict=False)]
            assert max(ratios) < 1.01 or min(ratios) < 0.999, loads
            checked += 1


@pytest.mark.parametrize("seed", SEEDS)
def test_placement_matters_at_default_traffic(seed: int) -> None:
    """More co-located NFs lose more; three lose 2 to 25 % on average, four 8 to 40 %."""
    draw = random.Random(seed)
    with open_testbed(spec(seed)) as testbed:
        three, four = mean_drop(testbed, 3, draw), mean_drop(testbed, 4, draw)
    assert 0.02 < three < 0.25 and 0.08 < four < 0.40 and four > three


def test_a_request_outside_the_description_is_refused() -> None:
    """Traffic out of range, too many cores, parameters of NFs: refused, and the testbed goes on."""
    with open_testbed(spec(0)) as testbed:
        described = testbed.describe()
        nf = described.nfs[0]
        known = Workload(nf.name, described.traffic)
        with pytest.raises(RunRefused, match=r"flows .* is outside"):
            testbed.run([Workload(nf.name, TrafficProfile(1e9, described.traffic.packet_size))])
        with pytest.raises(RunRefused, match="more than 6 cores"):
            testbed.run([known] * 7)
        assert throughputs(testbed, [known])[0] > 0


def test_every_file_of_the_package_is_a_kind_of_testbed() -> None:
    assert list(TESTBEDS) == ["exec", "host", "netns", "replay", "simulated", "switch"]
    simulated = (
        "simulated, simulated:contended, simulated:bluefield-3, simulated:pensando, simulated:server, simulated:gpu, "
        "simulated:gpu-b"
    )
    assert list_testbeds() == f"exec:COMMAND, host, netns, netns:SECONDS, replay:PROFILE, {simulated}, switch"


@pytest.mark.parametrize("timeout", [math.nan, math.inf, 0.0, -1.0, 1e300])
def test_a_timeout_that_no_clock_can_measure_is_refused(timeout: float) -> None:
    with pytest.raises(InputError, match=r"--timeout: .* is not between 0 and 1,000,000 s"):
        open_testbed("exec:true", timeout=timeout)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("simulator", "--testbed: 'simulator' is not a testbed\nhint: did you mean simulated?"),
        ("Exec:ssh bf2", "--testbed: 'Exec' is not a testbed\nhint: did you mean exec?"),
        ("lab", "--testbed: 'lab' is not a testbed\nhint: one of exec, host, netns, replay, simulated, switch"),
        ("none", "nothing can be run without a testbed\nhint: one of exec:COMMAND, host, netns, netns:SEC"),
        ("", "--testbed: names no testbed\nhint: one of exec:COMMAND"),
        ("replay:", "--testbed: replay: names no profile\nhint: replay:PROFILE"),
        ("simulated:fast", "--testbed: there is no simulated card 'fast'\n"
            "hint: simulated, simulated:contended, simulated:bluefield-3, simulated:pensando, simulated:server, "
            "simulated:gpu or simulated:gpu-b"),
    ],
)  # fmt: skip
def test_a_spec_that_opens_nothing_is_refused(spec: str, message: str) -> None:
    """The error has the nearest name, or all."""
    with pytest.raises(InputError) as raised:
        open_testbed(spec)
    assert message in str(raised.value)


def test_the_program_imports_nothing_of_the_project() -> None:
    """It runs in a Python without any package."""
    script = f"import sys; sys.path.insert(0, {str(PROGRAM.parent)!r}); import random_testbed"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
