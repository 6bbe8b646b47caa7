"""The program of the switch of a plan: packets are steered to their run of NFs, pass it, and go on."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from placer.rack.compiler.graph import SWITCH_PLACE, DeviceKind, NfInstance, RackNf, Way
from placer.rack.compiler.routing import BURST_S, PORT_MBPS, Routing, switch_ports
from placer.rack.compiler.switch.flow import BLOCKS, COUNTED_KINDS, RULES_REGISTER, Block, hash_flow, limits_of
from placer.rack.compiler.switch.headers import (
    FLOW_BITS,
    HEADER_TYPES,
    LABELLED_EDGES,
    PLAIN_EDGES,
    TO_PORTS,
    label_packets,
)
from placer.rack.compiler.switch.loading import load_where_used, sharing_runs
from placer.rack.compiler.switch.needed import drop_needless
from placer.rack.compiler.switch.program import (
    ActionCall,
    Apply,
    Assign,
    Body,
    ChainMeter,
    Count,
    FieldComparison,
    If,
    IsOverRate,
    IsValid,
    MatchEntry,
    MatchTable,
    ParserEdge,
    Registers,
    SetValid,
    SwitchAction,
    SwitchProgram,
    TableKey,
)
from placer.rack.compiler.switch.tree import NfRun, exclusive_groups, runs_of, tree_of
from placer.rack.compiler.traffic.entries import FIELD_WIDTHS, Entry, entries_of
from placer.rack.compiler.traffic.expression import Expression
from placer.rack.rack import MatchKind
from profiles import InputError

FORGED, UNCLASSIFIED, UNKNOWN_PATH, WITHOUT_LABEL, UNMATCHED, RATE_LIMIT = DROP_REASONS = (
    "forged",
    "unclassified",
    "unknown_path",
    "without_label",
    "unmatched",
    "rate_limit",
)
WORLD_PORT = 0  # the port of the world; the others are those of servers

SWITCH_METADATA: Mapping[str, int] = {
    "port": 32,
    "node": 16,
    "label": 32,
    "path": 32,
    "drop": 8,
    **FLOW_BITS,
    "fragment": 16,
    "hash": 32,
    "shifted": 32,
    "word": 32,
}
SWITCH_ACTIONS = (
    SwitchAction("to_run", (Assign("m.node", "t.node"),), {"node": 16}),
    SwitchAction("to_device", (Assign("m.label", "t.label"), Assign("m.port", "t.port")), {"label": 32, "port": 32}),
    SwitchAction("to_world", (Assign("m.port", WORLD_PORT),)),
    SwitchAction("relay", (Assign("m.port", "t.port"),), {"port": 32}),
)
"""What becomes of a packet next: a run of NFs on the switch, another device with a new label, the world, or another
device with the label that the packet has."""
COMPARED_LABELS = 2  # labels; more of them are looked up in a table
GROUPED_RUNS = 3  # runs side by side; from so many on, else-if does not nest them deeper
ROOM_FOR_RULES = 65_536  # counters of rules, an equal part for each NF: an update of one leaves the others as they are


@dataclass
class _Composer:
    """Collects tables and actions while bodies are made."""

    routing: Routing
    instances: Mapping[int, NfInstance]
    shares: bool = False
    only_steering: bool = False
    tables: list[MatchTable] = field(default_factory=list)
    actions: list[SwitchAction] = field(default_factory=list)
    rules: list[tuple[str, int, int]] = field(default_factory=list)  # as those of the program

    def __post_init__(self) -> None:
        self.graph = self.routing.graph
        self.ports = {name: at for at, name in enumerate(switch_ports(self.routing), 1)}
        self.runs = runs_of(self.graph)
        self.functions = [nf for run in self.runs.values() for nf in run.nfs]
        counters = self.graph.counters.items()
        self.counters = {way: name for way, name in counters if self.routing.on_switch(way[0])}
        self.instances = dict(self.instances)
        counted = [self.instances[nf.number] for nf in self.functions if nf.kind in COUNTED_KINDS]
        room, first = ROOM_FOR_RULES // max(len(counted), 1), 0
        has_room = all(len(instance.data) <= room for instance in counted)
        for instance in counted:
            self.instances[instance.nf.number] = replace(instance, first_rule=first)
            if count := len(instance.data):
                self.rules.append((instance.nf.name, first, count))
            first += room if has_room else count
        self.meters = [
            ChainMeter(entry.chain, entry.t_max_mbps, round(1e6 * BURST_S))
            for entry in self.graph.entries
            if self.routing.on_switch(entry.nf) and entry.t_max_mbps < PORT_MBPS
        ]
        self.blocks: dict[int, Block] = {}
        self.shared_blocks: list[tuple[str, Block]] = []

    # steering

    def port_of(self, nf: int) -> int:
        return self.ports[self.graph.nfs[nf].place.server]

    def next(self, target: int | None) -> ActionCall:
        """What becomes of a packet whose next NF is this one, where it has no label."""
        if target is None:
            return ActionCall("to_world")
        if self.routing.on_switch(target):
            return ActionCall("to_run", (target + 1,))
        return ActionCall("to_device", (self.routing.labels[target].word, self.port_of(target)))

    def run_call(self, call: ActionCall) -> Body:
        """The body of an action with its arguments in place."""
        action = next(candidate for candidate in (*SWITCH_ACTIONS, *self.actions) if candidate.name == call.action)
        values = dict(zip(action.arguments, call.arguments, strict=True))
        body: Body = ()
        for statement in action.body:
            match statement:
                case Assign(to, str(value)) if value.startswith("t."):
                    body += (Assign(to, values[value.removeprefix("t.")]),)
                case _:
                    body += (statement,)
        return body

    def classify(self) -> Body:
        """Packets from the world enter the first chain of which an aggregate fits them."""
        expressions = [(aggregate, entry) for entry in self.graph.entries for aggregate in entry.aggregates]
        calls = [self.next(entry.nf) for _, entry in expressions]
        body = self.sort("classify", [one for one, _ in expressions], calls, drop(UNCLASSIFIED))
        nfs = {entry.chain: entry.nf for entry in self.graph.entries}
        for number, meter in enumerate(self.meters):
            over = If(IsOverRate(number), (*drop(RATE_LIMIT), Assign("m.node", 0)))
            is_here = FieldComparison("m.node", "==", nfs[meter.chain] + 1)
            body += (If(is_here, (over,), note=f"t_max of {meter.chain}"),)
        return body

    def sort(self, name: str, expressions: Sequence[Expression], calls: Sequence[ActionCall], others: Body) -> Body:
        """Sorts packets by the first expression that holds for them."""
        entries = entries_of(expressions)
        if len(entries) == 1:
            verdict = entries[0].verdict
            return others if verdict is None else self.run_call(calls[verdict])
        self.tables.append(_ternary(name, entries, calls))
        if all(entry.verdict is not None for entry in entries):
            return (Apply(name),)
        return (Assign("m.found", 1), Apply(name), If(FieldComparison("m.found", "==", 0), others))

    def steer(self) -> Body:
        """Packets from devices: to their run by their label, or on to another device."""
        routing, graph = self.routing, self.graph
        entries = []
        for nf in sorted(routing.entered):
            before = [graph.nfs[earlier].place for earlier in graph.before[nf]]
            if routing.on_switch(nf):
                entries.append((routing.labels[nf].word, ActionCall("resume", (nf + 1,))))
            elif any(
                place.kind is not DeviceKind.SWITCH and routing.neighbour(place, nf) == SWITCH_PLACE for place in before
            ):
                entries.append((routing.labels[nf].word, ActionCall("relay", (self.port_of(nf),))))
        entries += [(label.word, ActionCall("leave")) for label in routing.exits.values()]
        unlabelled = (SetValid("outer", False), SetValid("nsh", False))
        self.actions += [
            SwitchAction("resume", (*unlabelled, Assign("m.node", "t.node")), {"node": 16}),
            SwitchAction("leave", (*unlabelled, Assign("m.port", WORLD_PORT))),
            SwitchAction("unknown_path", drop(UNKNOWN_PATH)),
        ]
        if len(entries) <= COMPARED_LABELS:
            body = drop(UNKNOWN_PATH)
            for word, call in reversed(entries):
                body = (If(FieldComparison("h.nsh.path", "==", word), self.run_call(call), body),)
            return body
        self.tables.append(
            MatchTable(
                "steer",
                (TableKey("m.path", 32),),
                ("resume", "relay", "leave", "unknown_path"),
                ActionCall("unknown_path"),
                tuple(MatchEntry(((word, 0xFFFFFFFF),), call) for word, call in entries),
                len(entries),
            )
        )
        return (Assign("m.path", "h.nsh.path"), Apply("steer"))

    # NFs

    def block(self, nf: RackNf) -> Block:
        if nf.number not in self.blocks:
            self.blocks[nf.number] = (
                Block((), PLAIN_EDGES) if self.only_steering else BLOCKS[nf.kind](self.instances[nf.number])
            )
            block = self.blocks[nf.number]
            self.tables += block.tables
            self.actions += [action for action in block.actions if action not in self.actions]
        return self.blocks[nf.number]

    def run(self, run: NfRun, first: Block | None = None) -> Body:
        """The NFs of a run, and what becomes of packets behind them; `first` was run for the first NF already."""
        body = self.ways(run.nfs[-1])
        for nf in reversed(run.nfs):
            number = self.functions.index(nf)
            is_done = first is not None and nf is run.nfs[0]
            block = first if first is not None and is_done else self.block(nf)
            sent: Body = (Count("sent", number), *body)
            if _may_drop(block.body) or any(_may_drop(action.body) for action in block.actions):
                sent = (If(FieldComparison("m.drop", "==", 0), sent),)
            body = sent if is_done else (Count("entered", number), *block.body, *sent)
        return (*body, *self.groups(run.children))

    def way(self, nf: RackNf, way: Way) -> ActionCall:
        """What becomes of a packet that takes a way behind an NF; an action of its own counts its packets."""
        call, at = self.next(way.target), nf.ways.index(way)
        if (nf.number, at) not in self.counters:
            return call
        counter = len(self.functions) + list(self.counters).index((nf.number, at))
        name = f"{nf.identifier}_way{at}"
        self.actions.append(
            SwitchAction(name, (Count("entered", counter), Count("sent", counter), *self.run_call(call)))
        )
        return ActionCall(name)

    def ways(self, nf: RackNf) -> Body:
        """Where packets go behind the last NF of a run."""
        if not nf.branches:
            return self.run_call(self.way(nf, nf.ways[0]))
        matched = [way for way in nf.ways if way.match is not None]
        calls = [self.way(nf, way) for way in matched]
        others = self.split(nf, [way for way in nf.ways if way.match is None])
        return self.sort(f"{nf.identifier}_branch", [branch.match for branch in matched if branch.match], calls, others)

    def split(self, nf: RackNf, ways: Sequence[Way]) -> Body:
        """Packets by the hash of their flows."""
        if not ways:
            return drop(UNMATCHED)
        body = self.run_call(self.way(nf, ways[-1]))
        if len(ways) == 1:
            return body
        limits = limits_of([way.share for way in ways])
        for way, limit in reversed(list(zip(ways[:-1], limits[:-1], strict=True))):
            chosen = self.run_call(self.way(nf, way))
            body = (If(FieldComparison("m.hash", "<", limit), chosen, body),)
        return (*hash_flow(nf.split_salt), *body)

    def groups(self, siblings: Sequence[NfRun]) -> Body:
        """Runs side by side: of each group a packet passes at most one."""
        body: Body = ()
        for group in exclusive_groups(self.runs, siblings):
            done: dict[int, Block] = {}
            if self.shares:
                for runs, block in sharing_runs(group, self.instances):
                    done |= {run.first: block for run in runs}
                    body += self.shared(runs, block)
            body += self.one_of(group, done)
        return body

    def shared(self, runs: Sequence[NfRun], block: Block) -> Body:
        """A block for the first NFs of several runs."""
        self.tables += block.tables
        self.actions += [action for action in block.actions if action not in self.actions]
        self.shared_blocks.append((", ".join(run.nfs[0].name for run in runs), block))
        entered: Body = ()
        for run in reversed(runs):
            counted = Count("entered", self.functions.index(run.nfs[0]))
            is_here = FieldComparison("m.node", "==", run.first + 1)
            entered = (If(is_here, (counted, Assign("m.shared", 1)), entered),)
        return (
            Assign("m.shared", 0),
            *entered,
            If(FieldComparison("m.shared", "==", 1), block.body, note=f"one table for {len(runs)} NFs"),
        )

    def one_of(self, group: Sequence[NfRun], done: Mapping[int, Block]) -> Body:
        """The run that `m.node` names; halves, so that many runs take few comparisons.

        `done`: by first NF of the run, the block that was run for it.
        """
        if len(group) <= GROUPED_RUNS:
            body: Body = ()
            for run in reversed(group):
                names = ", ".join(nf.name for nf in run.nfs)
                body = (
                    If(FieldComparison("m.node", "==", run.first + 1), self.run(run, done.get(run.first)), body, names),
                )
            return body
        middle = len(group) // 2
        ordered = sorted(group, key=lambda run: run.first)
        limit = ordered[middle].first + 1
        return (
            If(
                FieldComparison("m.node", "<", limit),
                self.one_of(ordered[:middle], done),
                self.one_of(ordered[middle:], done),
            ),
        )


def compose(
    routing: Routing, instances: Mapping[int, NfInstance], *, shares: bool = False, only_steering: bool = False
) -> SwitchProgram:
    """The program of the switch.

    `shares`: whether NFs of the same kind that no packet passes both share their tables (`sharing.py`).
    `only_steering`: NFs do nothing: what is left is the steering of packets. Raises InputError when NFs cannot share a
    parser.
    """
    composer = _Composer(routing, instances, shares, only_steering)
    classified, steered = composer.classify(), composer.steer()
    nfs = composer.groups(tree_of(composer.runs))
    from_world = If(IsValid("outer"), drop(FORGED), classified)
    from_device = If(IsValid("outer"), steered, drop(WITHOUT_LABEL))
    control: Body = (
        Assign("m.node", 0),
        Assign("m.drop", 0),
        If(
            FieldComparison("m.port", "==", WORLD_PORT),
            (from_world,),
            (from_device,),
            "from the world; else from a device",
        ),
        *nfs,
    )
    actions = (*SWITCH_ACTIONS, *composer.actions, SwitchAction("others", (Assign("m.found", 0),)))
    control = load_where_used(label_packets(control, composer.tables, actions), composer.tables, actions)
    of_own = [nf for nf in composer.functions if nf.number in composer.blocks]
    blocks = [*((nf.name, composer.block(nf)) for nf in of_own), *composer.shared_blocks]
    steering = [("the steering of packets", LABELLED_EDGES + PLAIN_EDGES + TO_PORTS)]
    metadata = {**SWITCH_METADATA, "found": 8, "shared": 8}
    for _, block in blocks:
        metadata |= block.metadata
    rules = max((first + count for _, first, count in composer.rules), default=0)
    counts_rules = any(nf.kind in COUNTED_KINDS for nf in composer.functions)  # an update may bring the first one
    functions = [*(nf.name for nf in composer.functions), *composer.counters.values()]
    program = SwitchProgram(
        headers=tuple(HEADER_TYPES.values()),
        parser=merge_parser([*steering, *((name, block.parser) for name, block in blocks)]),
        metadata=metadata,
        registers=(
            *(Registers(name, max(len(functions), 1)) for name in ("entered", "sent")),
            Registers("reasons", len(DROP_REASONS)),
            *([Registers(RULES_REGISTER, max(rules, ROOM_FOR_RULES))] if counts_rules else []),
            *(register for _, block in blocks for register in block.registers),
        ),
        actions=actions,
        tables=tuple(composer.tables),
        control=control,
        functions=functions,
        reasons=DROP_REASONS,
        rules=composer.rules,
        meters=composer.meters,
        notes=tuple(_notes(routing)),
    )
    return drop_needless(program)


def drop(reason: str) -> Body:
    """A packet goes no further, and is counted."""
    return (Count("reasons", DROP_REASONS.index(reason)), Assign("m.drop", 1))


def _may_drop(body: Body) -> bool:
    return any(
        (isinstance(statement, Assign) and statement.to == "m.drop")
        or (isinstance(statement, If) and (_may_drop(statement.then) or _may_drop(statement.otherwise)))
        for statement in body
    )


def _ternary(name: str, entries: Sequence[Entry[int | None]], calls: Sequence[ActionCall]) -> MatchTable:
    """A table over the fields that entries look at."""
    fields = [field for field in FIELD_WIDTHS if any(field in entry.bits for entry in entries)]
    call: Callable[[int | None], ActionCall] = lambda at: ActionCall("others") if at is None else calls[at]  # noqa: E731
    rows = [
        MatchEntry(tuple(entry.bits.get(key, (0, 0)) for key in fields), call(entry.verdict)) for entry in entries[:-1]
    ]
    default = call(entries[-1].verdict)
    return MatchTable(
        name,
        tuple(TableKey(f"m.{key}", FIELD_WIDTHS[key], MatchKind.TERNARY) for key in fields),
        tuple(dict.fromkeys([*(row.call.action for row in rows), default.action])),
        default,
        tuple(rows),
        len(rows),
    )


def _notes(routing: Routing) -> Iterator[str]:
    for number, path in enumerate(routing.paths, 1):
        nfs = [routing.graph.nfs[nf] for nf in path]
        yield f"path {number}: " + " -> ".join(f"{nf.name} ({nf.kind} on {nf.place.name})" for nf in nfs)


# One parser out of those of standalone NFs: the union of their transitions (Lemur, appendix A.2.1).


def merge_parser(parsers: Iterable[tuple[str, Sequence[ParserEdge]]]) -> tuple[ParserEdge, ...]:
    """All transitions of parsers, each once, in the order in which they come first.

    `parsers`: each with the name of the NF that it belongs to. Raises InputError when two NFs go to different headers
    for the same packets: they cannot be on one switch.
    """
    known: dict[object, tuple[ParserEdge, str]] = {}
    for name, edges in parsers:
        for edge in edges:
            before, other = known.setdefault((edge.source, edge.tests), (edge, name))
            if before.target != edge.target:
                tests = (
                    " and ".join(f"{test.field} is {test.value:#x}" for test in edge.tests) or "nothing else applies"
                )
                message = f"cannot share a parser with {other}: behind {edge.source}, where {tests}, "
                message += f"one finds {edge.target}, the other {before.target}"
                raise InputError.of(name, message, hint="place one of them elsewhere")
    return tuple(edge for edge, _ in known.values())
