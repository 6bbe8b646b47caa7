"""New tables for a compiled rack: its sources are read again, and all devices stay what they are."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from placer.rack.chain import Chain
from placer.rack.compiler.compile import CompiledRack, compile_rack
from placer.rack.compiler.directory import PLAN_FILE, write_files, write_rack
from placer.rack.compiler.ebpf.limits import CLANG, build
from placer.rack.compiler.live_socket import ask_running
from placer.rack.compiler.own_data import load_own_data
from placer.rack.compiler.switch.stages import stages_of
from placer.rack.files.chains_file import ChainsText
from placer.rack.files.plan_file import PlanFile, read_plan
from placer.rack.files.sources import SourceFolder
from placer.rack.files.written_twins import write_chains
from placer.rack.plan import SWITCH_SITE, ChainPlan, Layout
from profiles import Fault, InputError

AGAIN_HINT = "run `placer chain place` and `placer chain compile` again"


@dataclass(frozen=True)
class SourceChange:
    """A file that has changed. `entries`: by `chain/nf` and parameter, how many it has, and had before."""

    name: str
    entries: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class TableUpdate:
    """What changed sources change. `files`: those of the directory that differ. `texts`: of all of them, by path."""

    directory: Path
    sources: tuple[SourceChange, ...]
    files: tuple[str, ...]
    chains: tuple[Chain, ...]
    rack: CompiledRack
    texts: Mapping[str, str]

    def write(self) -> Mapping[str, float] | None:
        """Give the tables to the rack that runs from the directory, and replace the directory, each in one step.

        Where no source has changed, the rack gets what the directory has: it may have missed an update. Returns how
        long the rack took, empty if it had the tables; None if none runs. Raises InputError when it does not take the
        tables, and as `write_rack`: then nothing has changed.
        """
        if not self.sources:
            there = {name: text for name in self.texts if (text := _text_of(self.directory / name)) is not None}
            return ask_running(self.directory, there)
        took: Mapping[str, float] | None = None

        def ask() -> None:
            nonlocal took
            took = ask_running(self.directory, self.texts)

        document = json.loads((self.directory / PLAN_FILE).read_text(encoding="utf-8"))
        document["chains"] = write_chains(self.chains)
        with tempfile.TemporaryDirectory() as folder:
            plan = Path(folder) / PLAN_FILE
            plan.write_text(json.dumps(document), encoding="utf-8")
            shutil.copymode(self.directory / PLAN_FILE, plan)
            write_rack(self.rack, plan, self.directory, self.texts, ask)
        return took


def read_update(directory: Path) -> TableUpdate:
    """What the sources of a compiled rack are now.

    Raises InputError with every fault: of sources, and of chains that would not keep their SLO, or whose programs would
    not fit their devices.
    """
    file = directory / PLAN_FILE
    plan = read_plan(file)
    if not plan.sources:
        hint = 'as in ACL(rules = "edge.acl")'
        raise InputError.of(str(directory), "its chains name no files of your own", hint=hint)
    paths = {name: source.origin or source.path for name, source in plan.sources.items()}
    read = load_own_data(ChainsText(str(file), tuple(plan.chains)), SourceFolder(directory, paths=paths))
    changed = [name for name, source in read.sources.items() if source.sha256 != plan.sources[name].sha256]
    faults = [Fault(str(directory), None, None, message, AGAIN_HINT) for message in _broken_slos(plan, read.chains)]
    if faults:
        raise InputError(faults)
    rack = compile_rack(replace(plan, chains=read.chains, sources=read.recorded), str(file), shares=None)
    _refuse_misfits(rack, plan, directory)
    texts = write_files(rack)
    files = [name for name, text in texts.items() if _text_of(directory / name) != text]
    changes = tuple(SourceChange(name, dict(_entries(name, plan.chains, read.chains))) for name in changed)
    return TableUpdate(directory, changes, tuple(files), read.chains, rack, texts)


def _text_of(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _entries(name: str, before: Any, after: Any) -> Iterator[tuple[str, tuple[int, int]]]:
    for old, new in zip(before, after, strict=True):
        for old_nf, nf in zip(old.nfs, new.nfs, strict=True):
            for parameter, value in nf.data.items():
                if value == name and parameter in nf.parameters:
                    sizes = int(nf.parameters[parameter]), int(old_nf.parameters.get(parameter, 0))
                    yield f"{new.name}/{nf.id} {parameter}", sizes


def _broken_slos(plan: PlanFile, chains: tuple[Chain, ...]) -> Iterator[str]:
    """Chains that their cores would carry no more as promised, with the sizes that their data has now."""
    numbers = {device.name: at for at, device in enumerate(plan.rack.devices)}
    for chain in chains:
        on = plan.places[chain.name]
        sites = {nf.id: numbers.get(on[nf.id].on, SWITCH_SITE) for nf in chain.nfs}
        for subgroup in plan.subgroups.get(chain.name, ()):
            if (site := subgroup.site(plan.rack)) is not None:
                sites.update(dict.fromkeys(subgroup.nfs, site))
        layout = Layout(chain, plan.rack, tuple(sites[nf.id] for nf in chain.nfs))
        known = {(group.on, frozenset(group.nfs)): group.cores for group in plan.subgroups.get(chain.name, ())}
        cores = [
            known.get((plan.rack.devices[group.device].name, frozenset(chain.nfs[at].id for at in group.nfs)), 1)
            for group in layout.subgroups
        ]
        most = ChainPlan(layout, 0.0, tuple(cores)).most_mbps
        if most < chain.slo.t_min_mbps:
            least = float(chain.slo.t_min_mbps)
            yield f"{chain.name}: carries {float(most):,.1f} Mbps with its new data, and t_min is {least:,.1f}"
        if chain.slo.d_max_us is not None and layout.latency_us > chain.slo.d_max_us:
            latency, largest = float(layout.latency_us), float(chain.slo.d_max_us)
            yield f"{chain.name}: its latency is {latency:.2f} us with its new data, and d_max is {largest:.2f}"


def _refuse_misfits(rack: CompiledRack, plan: PlanFile, directory: Path) -> None:
    """Refuse programs that the switch has no stages for, and those that do not fit their SmartNICs."""
    usable = plan.rack.switch.usable_stages
    stages = None if rack.switch is None else stages_of(rack.switch)
    if usable is not None and stages is not None and stages > usable:
        message = f"the tables need {stages} stages of the switch, by our packer, and it has {usable}"
        raise InputError.of(str(directory), message, hint=AGAIN_HINT)
    if shutil.which(CLANG):
        for nic in rack.nics.values():
            build(nic)
