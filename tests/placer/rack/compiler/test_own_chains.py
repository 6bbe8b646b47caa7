"""Chains as text with operators' own data do what an interpreter of the text and of the files says."""

import json
import multiprocessing
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from placer.rack.compiler.compile import CompiledRack, compile_rack
from placer.rack.compiler.directory import write_rack as write_directory
from placer.rack.compiler.own_data import load_own_data
from placer.rack.compiler.p4.emit import p4_text
from placer.rack.compiler.swx.spec import entries_text, spec_text
from placer.rack.compiler.update import TableUpdate, read_update
from placer.rack.files.chains_file import read_chains_file
from placer.rack.files.plan_file import read_plan
from placer.rack.files.rack_file import read_rack_file
from placer.rack.files.sources import write_sources
from placer.rack.files.written_twins import plan_document, write_chains, write_rack
from placer.rack.strategies.optimal import best_plan
from profiles import InputError
from tests.effort import examples
from tests.placer.rack.compiler.ebpf.programs import require_clang
from tests.placer.rack.compiler.own_chains import OwnChains, draw_own_chains, redraw_files
from tests.placer.rack.compiler.rack_packets import rack_packets, timed
from tests.placer.rack.compiler.rack_runs import Coverage, compiled_or_none, emulated_outcome, require_libpcap
from tests.placer.rack.compiler.test_executed_racks import EMULATION_WORKERS, require_programs, run_rack
from tests.reference.chain_text import file_lines, meaning_by_files
from tests.reference.compare import ReferenceRun
from tests.reference.nfs.headers import read_headers
from tests.reference.p4.checker import check
from tests.reference.p4.run import P4Machine
from tests.reference.swx.pipeline import Pipeline

MANY_TEXTS, TEXTS_AT_A_TIME = 12_000, 1_000
EXECUTED_TEXTS, EXECUTED_AT_A_TIME = 400, 20
EXAMPLE = Path(__file__).parents[4] / "examples" / "own"
REFUSALS = ("packets are shared out", "nothing takes the packets", "empty branches lead from", "no packet takes")


def own_rack(seed: int, folder: Path, coverage: Coverage, **how: Any) -> tuple[OwnChains, CompiledRack] | None:
    """Chains and their programs; None where the text says what no list of ways can, or a device has no room."""
    try:
        chains = draw_own_chains(seed, folder, **how)
    except InputError as error:
        assert all(any(map(fault.message.__contains__, REFUSALS)) for fault in error.faults), str(error)
        return None
    rack = compiled_or_none(chains.plan, coverage)
    return (chains, rack) if rack else None


def reference_of(chains: OwnChains, seed: int) -> tuple[ReferenceRun, list[bytes]]:
    """The reference by the text, and the frames."""
    frames = rack_packets(chains.matched, seed, of_each=2, others=30, urls=chains.urls)
    return ReferenceRun(chains.plan.chains, timed(frames), chains.meaning.meaning()), frames


@dataclass
class Findings:
    """What runs of random texts have shown. `own`: kinds with own data; `updated`: those whose files were redrawn."""

    coverage: Coverage = field(default_factory=Coverage)
    own: Counter[str] = field(default_factory=Counter)
    updates: int = 0
    updated: Counter[str] = field(default_factory=Counter)
    wrong: dict[int, list[str]] = field(default_factory=dict)

    def judge(self, seed: int, chains: OwnChains, rack: CompiledRack) -> None:
        """Compare the programs with the reference by the text, and by the files as they are now."""
        reference, frames = reference_of(chains, seed)
        if found := reference.differences(emulated_outcome(rack, frames)):
            self.wrong.setdefault(seed, [chains.text]).extend(found)
        self.coverage.add(rack.routing, reference)

    def merge(self, other: "Findings") -> None:
        """Add those of other texts."""
        self.coverage.merge(other.coverage)
        self.own.update(other.own)
        self.updates += other.updates
        self.updated.update(other.updated)
        self.wrong |= other.wrong


def run_texts(seeds: Sequence[int]) -> Findings:
    """Random chains as text, their programs beside the reference, before and after an update of their files."""
    findings = Findings()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            if (made := own_rack(seed, Path(folder), findings.coverage)) is None:
                continue
            chains, rack = made
            findings.own.update(chains.kinds)
            findings.judge(seed, chains, rack)
            if chains.plan.sources and (update := update_after_redrawing(seed, Path(folder), chains)):
                findings.judge(seed, chains, update.rack)
                findings.updates += 1
                findings.updated.update({Path(change.name).suffix[1:] for change in update.sources})
    return findings


def test_programs_do_what_the_text_and_the_files_say() -> None:
    """On switch, servers and SmartNICs, before and after an update: bytes, order per flow, counters, drops."""
    require_libpcap()
    require_clang()
    found = run_texts(range(examples(60)))
    assert not found.wrong
    assert found.coverage.pairs - found.updates > examples(60) // 4
    assert set(found.own) >= {"ACL", "IPv4Fwd", "LB", "Match", "NAT"}
    assert set(found.updated) >= {"ACL", "IPv4Fwd", "LB", "Match"}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100_000, 100_000 + MANY_TEXTS, TEXTS_AT_A_TIME))
def test_programs_of_ten_thousand_texts_do_what_the_files_say(first: int) -> None:
    """All kinds that take own data, wherever they run; more than ten thousand racks in all, before and after an
    update of their files."""
    require_libpcap()
    require_clang()
    total = Findings()
    pieces = [range(at, at + 20) for at in range(first, first + TEXTS_AT_A_TIME, 20)]
    with multiprocessing.get_context("spawn").Pool(EMULATION_WORKERS) as pool:
        for findings in pool.imap_unordered(run_texts, pieces):
            total.merge(findings)
    print(
        f"\n{total.coverage.text()}\nwith own data: {dict(total.own)}\n{total.updates} updates: {dict(total.updated)}"
    )
    print(f"differences: {total.wrong or 'none'}")
    assert not total.wrong
    assert total.coverage.pairs - total.updates > TEXTS_AT_A_TIME * 3 // 4


@pytest.mark.long
def test_the_p4_program_does_with_own_tables_what_the_pipeline_does(tmp_path: Path) -> None:
    """The P4 checker accepts it, and each packet from the world leaves both in the same way."""
    kinds = Counter[str]()
    for seed in range(600, 600 + examples(40)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        made = own_rack(seed, folder, Coverage(), smartnics=0, kinds=("ACL", "ACL", "IPv4Fwd", "LB", "NAT", "Match"))
        if made is None or made[1].switch is None:
            continue
        chains, rack = made
        text = p4_text(rack.switch)
        assert check(text, "switch.p4") == []
        machine, pipeline = P4Machine(text), Pipeline(spec_text(rack.switch), entries_text(rack.switch))
        for frame in rack_packets(chains.matched, seed, of_each=2, others=20):
            if read_headers(frame).kind != "malformed":
                assert machine.process(frame, 0) == pipeline.process(frame, 0), (chains.text, frame.hex())
        kinds.update(nf.kind for nf in rack.routing.graph.nfs if nf.own and nf.place.name == "switch")
    assert set(kinds) == {"ACL", "IPv4Fwd", "LB", "NAT", "Match"}


def test_processes_do_what_the_text_and_the_files_say(tmp_path: Path) -> None:
    """Switch and servers, joined by links."""
    require_programs(smartnics=False)
    run = 0
    for seed in range(500, 506):
        folder = tmp_path / str(seed)
        folder.mkdir()
        if made := own_rack(seed, folder, Coverage(), smartnics=0):
            chains, rack = made
            _, frames = reference_of(chains, seed)
            assert run_rack(chains.plan, rack, seed, folder, frames, chains.meaning.meaning()).differences == [], seed
            run += 1
    assert run > 2


def compiled_into(directory: Path, chains: OwnChains) -> None:
    """What `placer chain compile` writes."""
    plan = chains.plan
    answer = [
        {
            "name": chain.name,
            "rate_mbps": 1.0,
            "placement": {nf: placed.on for nf, placed in plan.places[chain.name].items()},
            "subgroups": [
                {"on": group.on, "nfs": list(group.nfs), "cores": group.cores} for group in plan.subgroups[chain.name]
            ],
        }
        for chain in plan.chains
    ]
    sources = {name: {"path": str(source.path), "sha256": source.sha256} for name, source in plan.sources.items()}
    document = {"answer": {"chains": answer}, "chains": write_chains(plan.chains), "rack": write_rack(plan.rack)}
    file = directory.parent / "plan.json"
    file.write_text(json.dumps({**document, "sources": sources}), encoding="utf-8")
    write_directory(compile_rack(read_plan(file), str(file)), file, directory)


def update_after_redrawing(seed: int, folder: Path, chains: OwnChains) -> TableUpdate | None:
    """What `placer chain update` has written after other entries came into the files.

    None where a SmartNIC has no room for its NFs, or the entries are refused.
    """
    try:
        compiled_into(folder / "compiled", chains)
        redraw_files(seed, folder)
        update = read_update(folder / "compiled")
    except InputError as error:
        refusals = ("no packet takes", " instructions, at most ")
        assert all(any(map(fault.message.__contains__, refusals)) for fault in error.faults), str(error)
        return None
    update.write()
    if seed % 4 == 0:
        assert read_update(folder / "compiled").sources == ()
    return update


def test_lemurs_five_chains_with_own_rules_do_what_their_files_say(tmp_path: Path) -> None:
    """The example: placed, compiled, and run by processes, without the SmartNIC that only root may run."""
    require_programs(smartnics=False)
    read = load_own_data(read_chains_file(EXAMPLE / "own.chains"))
    rack = read_rack_file(EXAMPLE.parent / "lemur-rack.toml")
    rack = replace(rack, servers=tuple(replace(server, smartnic=None) for server in rack.servers))
    document = plan_document(best_plan(read.chains, rack), read.chains, write_sources(read.sources, tmp_path / "plan"))
    (tmp_path / "plan").write_text(json.dumps(document), encoding="utf-8")
    plan, meaning = read_plan(tmp_path / "plan"), meaning_by_files(EXAMPLE)
    urls = file_lines(EXAMPLE / "blocked.txt")
    without = [replace(chain, edges=tuple(replace(edge, match="") for edge in chain.edges)) for chain in plan.chains]
    frames = rack_packets(without, 7, of_each=40, others=30, urls=urls)
    run = run_rack(plan, compile_rack(plan, "plan", shares=None), 7, tmp_path, frames, meaning)
    assert run.differences == []
    dropped = {nf.partition("/")[2] for nf, counts in run.execution.nfs.items() if counts.dropped}
    assert dropped >= {"ACL", "first", "UrlFilter"}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(30_000, 30_000 + EXECUTED_TEXTS, EXECUTED_AT_A_TIME))
def test_processes_of_racks_with_smartnics_do_what_the_text_and_the_files_say(first: int, tmp_path: Path) -> None:
    """More than three hundred racks in all, before and after an update of their files."""
    require_programs(smartnics=True)
    coverage, own, wrong, updates = Coverage(), Counter[str](), dict[int, list[str]](), 0
    for seed in range(first, first + EXECUTED_AT_A_TIME):
        folder = tmp_path / str(seed)
        folder.mkdir()
        if (made := own_rack(seed, folder, coverage)) is None:
            continue
        chains, rack = made
        for updates_first in (False, True):
            if updates_first:
                if not chains.plan.sources or (update := update_after_redrawing(seed, folder, chains)) is None:
                    break
                rack, updates = update.rack, updates + 1
            _, frames = reference_of(chains, seed)
            run = run_rack(chains.plan, rack, seed, folder, frames, chains.meaning.meaning())
            coverage.add(rack.routing, run.reference)
            if run.differences:
                wrong[seed] = [chains.text, *run.differences]
        own.update(chains.kinds)
    print(f"\n{coverage.text()}\nwith own data: {dict(own)}; {updates} updates")
    assert not wrong
