"""Rates that plans promise for servers, beside those that the generated chains of the servers have on one core.

Each NF of the paper's chains 2, 3 and 5 is profiled alone, a plan is made with these cycles, compiled, and each
subgroup of its server is measured, in turns that repeat. What a chain costs without NFs, its labels among it, is the
plan's overhead of a subgroup. Packets are in memory, of 1,500 bytes, and carry labels.
"""

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from benches.bench import register
from profiles import InputError

ROOT = Path(__file__).resolve().parents[1]
BENCH_PROGRAM = ROOT / "build" / "nfs" / "rack" / "nf-server-bench"
CHAINS = {
    "chain2": "Encrypt -> LB -> NAT -> IPv4Fwd",
    "chain3": "Dedup -> ACL(rules=64) -> Limiter(mbps=100000) -> LB -> IPv4Fwd",
    "chain5": "ACL(rules=64) -> UrlFilter -> FastEncrypt(blocks=1) -> IPv4Fwd",
}
"""As in table 2 of the paper; one of chain 2's three equal NATs. The limiter is so wide that all packets pass."""
ON_SWITCH = ("ACL", "LB", "NAT", "IPv4Fwd")
CLOCK_MHZ = 2000  # of the rack: both rates are cycles of this host's time stamp counter at this clock
GUESS = 1000
REPEATS = 3


@dataclass
class _Case:
    """A chain, with what may run on the switch there; and what was measured, cycles per packet in each repeat."""

    chain: str
    switch: tuple[str, ...]
    nfs: dict[str, list[float]] = field(default_factory=dict)
    empty: list[float] = field(default_factory=list)
    subgroups: dict[str, list[float]] = field(default_factory=dict)

    @property
    def kinds(self) -> list[str]:
        return re.findall(r"\b([A-Z]\w+)", CHAINS[self.chain])


@register("metacompiler-rates")
def run(repeats: int = REPEATS, all_on_server: bool = True) -> pd.DataFrame:
    """Per chain: the rate of the plan, the measured one, their difference in percent, and the spreads of both.

    Chains are placed with a switch that runs what it can, then also with all NFs on the server (`--all-on-server`).
    Cycles are lower quartiles over rounds: neighbours on the machine only add. A spread is half the range over repeats,
    in percent of the median. The table is empty if nf-server-bench is not built. Raises `InputError` when a chain
    cannot be placed or measured."""
    if not BENCH_PROGRAM.exists():
        print("metacompiler-rates: nf-server-bench is not built; `make deps nfs` builds it", file=sys.stderr)
        return pd.DataFrame()
    cases = [_Case(name, switch) for name in CHAINS for switch in ((ON_SWITCH, ()) if all_on_server else (ON_SWITCH,))]
    with TemporaryDirectory() as folder:
        rows = []
        for number, case in enumerate(cases):
            place = Path(folder) / str(number)
            place.mkdir()
            _planned(case, dict.fromkeys(case.kinds, GUESS), 0, place)
            for _ in range(repeats):
                _measure(case, place / "out" / "servers" / "s0")
            costs = {kind: float(np.median(values)) for kind, values in case.nfs.items()}
            promised = _planned(
                case, {**dict.fromkeys(case.kinds, GUESS), **costs}, float(np.median(case.empty)), place
            )
            rows.append(_row(case, promised))
    return pd.DataFrame(rows)


def _planned(case: _Case, cycles: Mapping[str, float], empty: float, folder: Path) -> float:
    """Place and compile a chain on a server with as many cores as it has subgroups; the rate of the plan, Mbps."""
    (folder / "c.chains").write_text(
        f"packets: 1500 B\nslo {case.chain}: 1 Mbps to 1000 Gbps\nchain {case.chain}: {CHAINS[case.chain]}\n",
        encoding="utf-8",
    )
    lines = [f"crossing_us = 6\n[overheads]\nsubgroup_cycles = {empty:.0f}\n[switch]\nblocks_per_stage = 24"]
    cores = _subgroups(case)
    lines.append(f'[[server]]\nname = "s0"\ncores = {cores}\nclock_mhz = {CLOCK_MHZ}\nnic_mbps = 1_000_000\n[nf]')
    for kind in dict.fromkeys(case.kinds):
        if kind in case.switch:
            lines.append(f"{kind} = {{switch = {{blocks = 1}}}}")
        else:
            lines.append(f"{kind} = {{server = {{cycles = {cycles[kind]:.0f}, replicable = false}}}}")
    (folder / "rack.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = _placer(
        "place", "c.chains", "--rack", "rack.toml", "--plan", "plan.json", "--format", "json", folder=folder
    )
    _placer("compile", "plan.json", "--out", "out", folder=folder)
    chains = json.loads(found)["chains"]
    if not chains:
        raise InputError.of(case.chain, "has no plan")
    return float(chains[0]["rate_mbps"])


def _subgroups(case: _Case) -> int:
    """NFs of a line that stay together between those on the switch."""
    elsewhere = [kind not in case.switch for kind in case.kinds]
    return sum(here and not before for here, before in zip(elsewhere, [False, *elsewhere[:-1]], strict=True))


def _placer(*words: str, folder: Path) -> str:
    command = [sys.executable, "-m", "placer", "chain", *words]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise InputError.of(f"placer chain {words[0]}", ended.stderr.strip())
    return ended.stdout


def _measure(case: _Case, server: Path) -> None:
    """An empty chain, each NF alone, and each subgroup, once."""
    text = (server / "server.chain").read_text(encoding="utf-8")
    empty = cycles_alone("null: Null", server)
    case.empty.append(empty)
    for kind, line in _functions(text):
        case.nfs.setdefault(kind, []).append(cycles_alone(line, server) - empty)
    for path, index in re.findall(r"^nsh (\d+) (\d+) ->", text, flags=re.MULTILINE):
        case.subgroups.setdefault(index, []).append(_cycles("server.chain", f"{path},{index}", server))


def cycles_alone(line: str, server: Path) -> float:
    """Cycles per packet of a chain of one function."""
    name = line.partition(":")[0]
    chain = f"{line}\n{name} -> nsh 1 254\nnsh 1 255 -> {name}\ncore 0: {name}\n"
    (server / "alone.chain").write_text(chain, encoding="utf-8")
    return _cycles("alone.chain", "1,255", server)


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """Kind and line of each function of a chain file."""
    for line in text.splitlines():
        if (found := re.match(r"\w+: ([A-Z]\w+)", line)) is not None:
            yield found[1], line


def _cycles(chain: str, entry: str, folder: Path) -> float:
    """Cycles per packet of a chain, from the label that comes to the label that leaves."""
    command = [str(BENCH_PROGRAM), "--chain", chain, "--entry", entry]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise InputError.of("nf-server-bench", ended.stderr.strip())
    return float(pd.read_csv(io.StringIO(ended.stdout)).iloc[0]["cycles_q1"])


def _row(case: _Case, promised: float) -> dict[str, object]:
    slowest = max(case.subgroups.values(), key=lambda values: float(np.median(values)))
    measured = CLOCK_MHZ * 1500 * 8 / float(np.median(slowest))
    nfs = list(case.nfs.values())
    return {
        "chain": case.chain,
        "on_the_server": " ".join(kind for kind in case.kinds if kind not in case.switch),
        "plan_mbps": round(promised, 1),
        "measured_mbps": round(measured, 1),
        "difference_pct": round(100 * (measured / promised - 1), 1),
        "spread_of_chain_pct": round(spread_pct(slowest), 1),
        "spread_of_nfs_pct": round(spread_pct([sum(values) for values in zip(*nfs, strict=True)]), 1),
    }


def spread_pct(values: Sequence[float]) -> float:
    """Half the range, in percent of the median."""
    return 50 * (max(values) - min(values)) / float(np.median(values))
