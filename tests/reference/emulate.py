"""Runs all programs of a rack on frames, in one process: interpreters of their texts, joined as the rack is.

Each frame from the world passes the rack before the next one enters. It is the check of the compiler for which no
packet needs to be sent; `execute.py` runs the programs themselves.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from placer.rack.compiler.compile import CompiledRack
from placer.rack.compiler.ebpf.limits import read_object
from placer.rack.compiler.ebpf.source import names_of, source_of
from placer.rack.compiler.routing import switch_ports
from placer.rack.compiler.swx.spec import entries_text, names_text, spec_text
from tests.reference.ebpf.machine import DROP, PASS, TX, NicMachine
from tests.reference.nfs.headers import has_too_many_tags, read_headers
from tests.reference.server.runtime import ChainRuntime, Sorter
from tests.reference.swx.pipeline import Pipeline

WORLD = 0
MOST_HOPS = 1000  # of a frame between devices; more is a circle


@dataclass(frozen=True)
class RackTexts:
    """The programs of a rack as they are written."""

    ports: Sequence[str]  # names of the servers at the switch's ports from 1 on
    spec: str
    entries: str
    names: str
    servers: Mapping[str, str]  # chain files
    files: Mapping[str, Mapping[str, str]]  # by server, then by name, what its functions read
    functions: Mapping[str, Mapping[str, str]]
    nics: Mapping[str, tuple[str, str]]  # by server: name, C source and counters' names of its SmartNIC


@dataclass
class Emulation:
    """What became of frames. `outputs`: number of the frame that entered, and the frame that left."""

    outputs: list[tuple[int, bytes]] = field(default_factory=list)
    entered: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)  # by reason, outside of NFs
    ways: Counter[str] = field(default_factory=Counter)  # behind NFs, those that devices count
    rules: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))  # on the switch, by NF


def texts_of(rack: CompiledRack) -> RackTexts:
    """What the compiler writes for a rack."""
    server_of = {place.name: place.server for place in rack.routing.graph.places}
    assert rack.switch is not None, "an OpenFlow switch has rules: `openflow/labelled_switch.py` runs them"
    return RackTexts(
        switch_ports(rack.routing),
        spec_text(rack.switch),
        entries_text(rack.switch),
        names_text(rack.switch),
        {name: one.chain for name, one in rack.servers.items()},
        {name: one.files for name, one in rack.servers.items()},
        {name: one.functions for name, one in rack.servers.items()},
        {server_of[name]: (name, source_of(one)) for name, one in rack.nics.items()},
    )


class EmulatedRack:
    """A rack that runs programs."""

    def __init__(
        self, rack: CompiledRack, texts: RackTexts, compile_nic: Callable[[str], bytes], sorter: Sorter
    ) -> None:
        self.rack, self.texts = rack, texts
        self.result = Emulation()
        self.switch = Pipeline(texts.spec, texts.entries)
        self.servers = {name: ChainRuntime(text, texts.files[name], sorter) for name, text in texts.servers.items()}
        self.nics = {name: NicMachine(read_object(compile_nic(source))) for name, (_, source) in texts.nics.items()}
        self.count = 0

    def enter(self, frame: bytes, time_us: int) -> None:
        """Let a frame arrive from the world, and run all that it becomes."""
        number, self.count = self.count, self.count + 1
        if read_headers(frame).kind == "malformed" or has_too_many_tags(frame):
            self.result.dropped["malformed"] += 1
            return
        waiting = [(WORLD, frame)]
        for _ in range(MOST_HOPS):
            if not waiting:
                return
            port, one = waiting.pop(0)
            left = self.switch.process(one, port, time_us)
            if left is None:
                continue
            to, one = left
            if to == WORLD:
                self.result.outputs.append((number, one))
            else:
                waiting += [(to, back) for back in self._beyond(self.texts.ports[to - 1], one, time_us)]
        raise AssertionError("a frame travels in a circle")

    def _beyond(self, server: str, frame: bytes, time_us: int) -> list[bytes]:
        """What comes back to the switch from a server and its SmartNIC."""
        if server not in self.nics:
            return self.servers[server].receive(frame, time_us)
        to_switch: list[bytes] = []
        at_nic = [frame]
        for _ in range(MOST_HOPS):
            if not at_nic:
                return to_switch
            action, one = self.nics[server].run(at_nic.pop(0), time_us)
            if action == TX:
                to_switch.append(one)
            elif action == PASS and server in self.servers:
                at_nic += self.servers[server].receive(one, time_us)
            else:
                assert action == DROP, action
        raise AssertionError("a frame travels in a circle")

    def finish(self) -> Emulation:
        """The counters of all devices, added up."""
        result = self.result
        for line in self.texts.names.splitlines():
            kind, at, name, *count = line.split()
            if kind == "reason":
                result.dropped[name] += self.switch.registers["reasons"][int(at)]
            elif kind == "rules":
                met = self.switch.registers["rules"][int(at) : int(at) + int(count[0])]
                result.rules[name].update({rule: packets for rule, packets in enumerate(met, 1) if packets})
            else:
                result.entered[name] += self.switch.registers["entered"][int(at)]
                result.sent[name] += self.switch.registers["sent"][int(at)]
        for server, runtime in self.servers.items():
            add_server(result, runtime, self.texts.functions[server])
        for name, machine in self.nics.items():
            self._add_nic(machine, self.texts.nics[name][0])
        result.dropped = Counter({name: count for name, count in result.dropped.items() if count})
        for name in [name for name in result.entered if ">" in name]:  # ways behind NFs
            result.ways[name] = result.entered.pop(name)
            assert result.sent.pop(name) == result.ways[name]
        return result

    def _add_nic(self, machine: NicMachine, name: str) -> None:
        counters, names = machine.counters(), names_of(self.rack.nics[name])
        for one in names["functions"]:
            self.result.entered[one["name"]] += counters[one["entered"]]
            self.result.sent[one["name"]] += counters[one["sent"]]
        for reason, at in names["reasons"].items():
            self.result.dropped[reason] += counters[at]


def emulated(
    rack: CompiledRack,
    frames: Iterable[tuple[int, bytes]],
    compile_nic: Callable[[str], bytes],
    sorter: Sorter,
    texts: RackTexts | None = None,
) -> Emulation:
    """What the programs of a rack make of frames that arrive at times, us."""
    running = EmulatedRack(rack, texts or texts_of(rack), compile_nic, sorter)
    for time_us, frame in frames:
        running.enter(frame, time_us)
    return running.finish()


def add_server(result: Emulation, runtime: ChainRuntime, functions: Mapping[str, str]) -> None:
    """The counters of functions as those of NFs: a function that sorts passes all, and loses what it cannot sort.

    Functions of no NF keep the limits of chains.
    """
    counts = runtime.counts
    for name in counts.entered.keys() - functions:
        result.dropped["rate_limit"] += counts.entered[name] - counts.sent[name]
    for name, nf in functions.items():
        sorts = name in runtime.filters
        lost = counts.entered[name] - counts.sent[name] if sorts else 0
        result.dropped["unmatched"] += lost
        if not name.partition(".")[0].endswith("__sort"):
            result.entered[nf] += counts.entered[name]
            result.sent[nf] += counts.sent[name] + lost
    result.dropped.update(counts.lost)
