"""Generated programs do what the reference does: run by interpreters of their texts, and as processes, joined by
links."""

import multiprocessing
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path

import pytest

from placer.rack.compiler.compile import CompiledRack, compile_rack
from placer.rack.compiler.directory import write_files
from placer.rack.compiler.ebpf.limits import CLANG, compile_source
from placer.rack.compiler.execute import RackRun, execute_rack, find_programs
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.rack.files.plan_file import PlanFile
from placer.rack.rack import Switch, SwitchKind
from profiles import InputError
from tests.nfs.captures import LAST_SECOND, read_capture, read_frames, write_capture, write_frames
from tests.placer.rack.compiler import rack_runs
from tests.placer.rack.compiler.ebpf.programs import require_clang, require_kernel
from tests.placer.rack.compiler.library.frames import ipv4_frame
from tests.placer.rack.compiler.rack_packets import GAP_US, rack_packets, timed
from tests.placer.rack.compiler.rack_runs import Coverage, compiled_or_none
from tests.placer.rack.compiler.racks import ALL_KINDS, made_chain, made_plan, random_plan
from tests.reference.compare import RackOutcome, ReferenceRun
from tests.reference.emulate import emulated
from tests.reference.interpret import Interpretation, Meaning

FIRST_SEED, MANY = 20_000, 300
WORKERS = int(os.environ.get("TEST_WORKERS") or 2)
SMARTNICS = 0.35


@dataclass(frozen=True)
class ExecutedRack:
    """A run of processes beside the reference, and what is wrong with it."""

    rack: CompiledRack
    reference: ReferenceRun
    execution: RackRun
    differences: list[str]


def require_programs(*, smartnics: bool) -> None:
    """Skip the test without what it runs."""
    try:
        find_programs(smartnics)
    except InputError as error:
        pytest.skip(f"{error}".splitlines()[0])
    if smartnics:
        require_clang()
        require_kernel()


def write_rack_files(rack: CompiledRack, directory: Path) -> None:
    """Write the programs of a rack, without its plan."""
    for name, text in write_files(rack).items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def wrong_branches(run: RackRun, expected: Interpretation) -> list[str]:
    """Branches whose packets are counted otherwise than the reference does, or not; only certain ones are compared."""
    found = Counter[tuple[str, str]]()
    wrong = [f"{way.nf} to {way.to}: not counted" for way in run.branches if way.packets is None]
    for way in run.branches:
        found[way.nf, way.to] += way.packets or 0
    return wrong + [
        f"{nf} to {to}: counted {count} packets, not {expected.turns[nf, to]}"
        for (nf, to), count in found.items()
        if not {nf, to} & expected.uncertain_nfs and count != expected.turns[nf, to]
    ]


def run_rack(
    plan: PlanFile,
    rack: CompiledRack,
    seed: int,
    folder: Path,
    frames: Sequence[bytes] = (),
    meaning: Meaning | None = None,
    openflow: str = "emulated",
) -> ExecutedRack:
    """Send packets through the processes of a rack. `frames`: those of all chains, and strays, unless given."""
    frames = frames or rack_packets(plan.chains, seed, of_each=3, others=40)
    directory = folder / "rack"
    write_rack_files(rack, directory)
    source, target = write_capture(folder / "in.pcap", frames, GAP_US), folder / "out.pcap"
    execution = execute_rack(directory, source, target, openflow=openflow)
    out = read_capture(target)
    reference = ReferenceRun(plan.chains, timed(frames), meaning)
    wrong = reference.differences(RackOutcome(out, execution.nfs, execution.dropped))
    if (execution.received, execution.sent) != (len(frames), len(out)):
        wrong.append(f"counted {execution.received} received and {execution.sent} sent")
    if not execution.is_explained:
        wrong.append("frames that nothing explains")
    if not any(nf.nf == "Limiter" for chain in plan.chains for nf in chain.nfs):
        wrong += wrong_branches(execution, reference.expected)
    return ExecutedRack(rack, reference, execution, wrong)


@pytest.mark.parametrize("seed", range(6))
def test_processes_of_random_racks_do_what_chains_say(seed: int, tmp_path: Path) -> None:
    """Switch and servers: bytes, order per flow, counters, and a reason for each packet that did not leave."""
    require_programs(smartnics=False)
    plan = random_plan(FIRST_SEED + seed, ALL_KINDS, smartnics=0)
    rack = compiled_or_none(plan, Coverage())
    assert rack is not None
    assert run_rack(plan, rack, seed, tmp_path).differences == []


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 2])
def test_processes_of_random_racks_with_smartnics_do_what_chains_say(seed: int, tmp_path: Path) -> None:
    """The same with the emulated SmartNIC between switch and server."""
    require_programs(smartnics=True)
    plan = random_plan(FIRST_SEED + 500 + seed, ALL_KINDS, smartnics=1)
    rack = compiled_or_none(plan, Coverage())
    assert rack is not None
    assert rack.nics
    assert run_rack(plan, rack, seed, tmp_path).differences == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "first"), [(kind, first) for kind in ("pisa", "openflow") for first in ("switch", "s0", "n0")]
)
def test_processes_keep_t_max(kind: str, first: str, tmp_path: Path) -> None:
    """Of 25 Mbps, 10 pass, by the stamps of the capture, over 10 s after the first second; one stamp is wrong."""
    require_programs(smartnics=first == "n0")
    chain = made_chain(["Tunnel", "ACL"])
    plan = made_plan((replace(chain, slo=replace(chain.slo, t_max_mbps=Fraction(10))), f"{first} s0"))
    switch = Switch(kind=SwitchKind(kind), table_order=("Tunnel", "ACL") if kind == "openflow" else ())
    rack = compile_rack(replace(plan, rack=replace(plan.rack, switch=switch)), "plan")
    write_rack_files(rack, tmp_path / "rack")
    frame = ipv4_frame(0x0A000001, 0x0A000002, payload=bytes(1458))
    times = [1_000_000 + 480 * at for at in range(22_917)]
    times.insert(1000, LAST_SECOND * 1_000_000)
    source = write_frames(tmp_path / "in.pcap", [(time_us, frame) for time_us in times])
    run = execute_rack(tmp_path / "rack", source, tmp_path / "out.pcap")
    begin = 2_000_000  # the first frame comes at 1 s
    left = [(time_us // 1_000_000, out) for time_us, out in read_frames(tmp_path / "out.pcap") if time_us >= begin]
    passed = sum(len(out) - 4 for second, out in left if second < LAST_SECOND)  # untagged
    assert 8 * passed / 10e6 == pytest.approx(10, rel=0.02)
    assert run.is_explained and run.dropped["rate_limit"] == run.received - run.sent


@pytest.mark.slow
def test_processes_of_three_hundred_random_racks_do_what_chains_say() -> None:
    """All 14 kinds of NFs; without root only racks without SmartNICs."""
    with_nics = os.geteuid() == 0 and shutil.which(CLANG) is not None
    require_programs(smartnics=with_nics)
    total, wrong, dropped, processes = Coverage(), dict[int, list[str]](), Counter[str](), Counter[str]()
    seeds = iter(range(FIRST_SEED, FIRST_SEED + 2 * MANY))

    def run(made: tuple[int, PlanFile, CompiledRack]) -> tuple[int, ExecutedRack]:
        seed, plan, rack = made
        with tempfile.TemporaryDirectory() as folder:
            return seed, run_rack(plan, rack, seed, Path(folder))

    with ThreadPoolExecutor(WORKERS) as pool:
        while total.pairs < MANY:
            part = []
            for seed in islice(seeds, min(4 * WORKERS, MANY - total.pairs)):
                plan = random_plan(seed, ALL_KINDS, smartnics=SMARTNICS * with_nics)
                rack = compiled_or_none(plan, total)
                part += [(seed, plan, rack)] if rack else []
            for seed, one in pool.map(run, part):
                total.add(one.rack.routing, one.reference)
                dropped.update(one.execution.dropped)
                dropped["by NFs"] += one.execution.dropped_by_nfs
                processes.update({"switch": 1, "servers": len(one.rack.servers), "SmartNICs": len(one.rack.nics)})
                if one.differences:
                    wrong[seed] = one.differences
                    print(f"\nseed {seed}: {one.differences}", flush=True)
    print(f"\n{total.text()}\nprocesses: {dict(processes)}\ndropped: {dict(dropped)}\ndifferences: {wrong or 'none'}")
    assert not wrong
    assert not with_nics or processes["SmartNICs"] > MANY // 10


FEW, FEW_WITH_SMARTNICS, MANY_EMULATED = range(30), range(100, 110), range(10_040)
PARTS = 4
AT_A_TIME = 20
EMULATION_WORKERS = int(os.environ.get("TEST_WORKERS") or os.cpu_count() or 1)
EMULATED_SMARTNICS = 0.1  # chance of a server to have one
MOST_REFUSED = 0.01

Findings = tuple[rack_runs.Coverage, dict[int, list[str]]]  # what was covered, and differences by seed


def run_racks(seeds: Sequence[int], smartnics: float = EMULATED_SMARTNICS, *, shares: bool = False) -> Findings:
    """Random racks beside the reference."""
    coverage, wrong = rack_runs.Coverage(), dict[int, list[str]]()
    for seed in seeds:
        plan = random_plan(seed, ALL_KINDS, smartnics=smartnics)
        rack = rack_runs.compiled_or_none(plan, coverage, shares=shares)
        if rack is None:
            continue
        frames = rack_packets(plan.chains, seed)
        reference = ReferenceRun(plan.chains, timed(frames))
        differences = reference.differences(rack_runs.emulated_outcome(rack, frames))
        coverage.add(rack.routing, reference)
        if differences:
            wrong[seed] = differences
    return coverage, wrong


@pytest.mark.parametrize("shares", [False, True], ids=["one table per NF", "one table per kind"])
@pytest.mark.long
def test_programs_of_random_racks_do_what_chains_say(shares: bool) -> None:
    """Frames byte for byte, order per flow, counters, and a reason for each frame that did not leave."""
    rack_runs.require_libpcap()
    coverage, wrong = run_racks(FEW, 0, shares=shares)
    assert not wrong
    assert coverage.branches > 20
    assert coverage.merges > 10
    assert coverage.refused == 0


@pytest.mark.long
def test_programs_of_random_racks_with_smartnics_do_what_chains_say() -> None:
    rack_runs.require_libpcap()
    require_clang()
    coverage, wrong = run_racks(FEW_WITH_SMARTNICS, 1)
    assert not wrong
    assert coverage.refused <= 1


@pytest.mark.parametrize("place", ["n0", "switch"])
def test_a_device_keeps_the_t_max_of_a_chain_that_begins_there(place: str) -> None:
    """Of 2.5 Mbps, 1 passes, over 2 s after the first second; packets of another chain all pass.

    Within the first second a stamp is wrong by far, and others go back by little.
    """
    require_clang()
    limited = made_chain(["Tunnel"], name="a", aggregates=["udp"])
    limited = replace(limited, slo=replace(limited.slo, t_max_mbps=Fraction(1)))
    rack = compile_rack(made_plan((limited, place), (made_chain(["Tunnel"], name="b"), place)), "plan")
    frames = [ipv4_frame(payload=bytes(1500 - headers), protocol=protocol) for protocol, headers in ((17, 42), (6, 54))]
    packets = [(4800 * at + 1, frame) for at in range(625) for frame in frames]
    packets[100:100] = [(LAST_SECOND * 1_000_000, frames[0]), *packets[100:0:-1]]
    found = emulated(rack, packets, compile_source, rack_runs.sorted_by_libpcap)
    assert {len(frame) for frame in frames} == {1500}
    later = [packets[number][1] for number, _ in found.outputs if 1 <= packets[number][0] / 1e6 < LAST_SECOND]
    rates = {kind: 8 * 1500 * later.count(frame) / 2e6 for kind, frame in zip("ab", frames, strict=True)}
    assert rates == {"a": pytest.approx(1, rel=0.02), "b": pytest.approx(2.5, rel=0.02)}
    assert found.dropped == {"rate_limit": len(packets) - len(found.outputs)}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_programs_of_ten_thousand_random_racks_do_what_chains_say(part: int) -> None:
    """The same for all 14 kinds of NFs, wherever they run."""
    rack_runs.require_libpcap()
    require_clang()
    total, wrong = rack_runs.Coverage(), dict[int, list[str]]()
    seeds = MANY_EMULATED[part * len(MANY_EMULATED) // PARTS : (part + 1) * len(MANY_EMULATED) // PARTS]
    pieces = [seeds[at : at + AT_A_TIME] for at in range(0, len(seeds), AT_A_TIME)]
    with multiprocessing.get_context("spawn").Pool(EMULATION_WORKERS) as pool:
        for coverage, differences in pool.imap_unordered(run_racks, pieces):
            total.merge(coverage)
            wrong |= differences
            if differences:
                print(f"\nafter {total.pairs} pairs: {differences}", flush=True)
    print(f"\n{total.text()}\ndifferences: {wrong or 'none'}")
    assert not wrong
    assert total.pairs * PARTS >= 10_000
    assert total.refused <= MOST_REFUSED * total.pairs
    places = {(kind, place) for kind in NF_KINDS for place in NF_KINDS[kind].platforms}
    assert set(total.nfs) == {(kind, place) for kind, place in places if place != "openflow"}
