"""The JSON twins of `.chains` and `rack.toml`, which programs write (docs/formats/chains.md and rack.md)."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from placer.rack import rack
from placer.rack.chain import UNBOUNDED_MBPS, Chain, ChainEdge, ChainNf, Slo
from profiles import Fault, InputError
from profiles.chain import NfStage
from profiles.faults import suggestion
from profiles.validation import word_fault

Name = Annotated[str, Field(min_length=1, max_length=200)]
Most = Annotated[int, Field(ge=0, le=1_000_000)]
AtLeastOne = Annotated[int, Field(ge=1, le=1_000_000)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


class MemoryTwin(_Part):
    """The blocks of one kind of memory in a stage."""

    blocks: Most
    bits: AtLeastOne
    entries: AtLeastOne

    def memory(self) -> rack.StageMemory:
        """What it stands for."""
        return rack.StageMemory(self.blocks, self.bits, self.entries)


class TableTwin(_Part):
    """A table of an NF."""

    name: Name
    key: dict[Name, Annotated[int, Field(ge=1, le=100_000)]] = {}
    match: Literal["exact", "ternary", "lpm"] = "exact"
    entries: Annotated[int, Field(ge=1, le=10**9)] = 1
    writes: list[Name] = []

    def table(self) -> rack.SwitchTable:
        """What it stands for."""
        return rack.SwitchTable(self.name, self.key, rack.MatchKind(self.match), self.entries, tuple(self.writes))


def _names_differ(tables: Sequence[TableTwin]) -> Sequence[TableTwin]:
    names = [table.name for table in tables]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"duplicate name {name!r}")
    return tables


TableTwins = Annotated[list[TableTwin], Field(max_length=100), AfterValidator(_names_differ)]


LARGEST_FILE = 100_000_000
LARGEST_NUMBER = 10**12
SWITCH_NAME = "switch"
SHARE_TOLERANCE = Fraction(1, 10**9)
"""By which shares that leave an NF may miss 1: a third cannot be written as a decimal number."""


def _exact(value: object) -> object:
    """The fraction that a number, or a text such as "1/3", stands for; a decimal number is taken as it is written."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number")
    try:
        exact = Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{value!r} is not a number") from None
    if abs(exact) > LARGEST_NUMBER:
        raise ValueError(f"{value!r} is too large")
    return exact


def _number(value: object) -> object:
    if isinstance(value, str):
        raise ValueError(f"{value!r} is not a number")
    return _exact(value)


Share = Annotated[Fraction, BeforeValidator(_exact), Field(gt=0, le=1)]
Positive = Annotated[Fraction, BeforeValidator(_number), Field(gt=0)]
NotNegative = Annotated[Fraction, BeforeValidator(_number), Field(ge=0)]
Whole = Annotated[int, Field(ge=0, le=1_000_000)]


def _parameter(value: object) -> object:
    """A number, or own data: a text or a list of rules."""
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is neither a number nor a text nor a list of rules")
    for rule in value:
        if not isinstance(rule, dict) or not all(isinstance(of, str | int) for of in rule.values()):
            raise ValueError(f"{rule!r} is no rule: its values are texts, whole numbers, true and false")
    return tuple(value)


class _Nf(_Part):
    id: Name
    nf: Name
    parameters: dict[str, Annotated[Any, BeforeValidator(_parameter)]] = {}
    sizes: dict[str, Annotated[int, Field(ge=0)]] = {}

    def chain_nf(self) -> ChainNf:
        """What it stands for."""
        numbers = {name: value for name, value in self.parameters.items() if isinstance(value, float)}
        data = {name: value for name, value in self.parameters.items() if not isinstance(value, float)}
        sizes = {name: float(size) for name, size in self.sizes.items() if name in data}
        return ChainNf(self.id, self.nf, numbers | sizes, data)


class _Chain(_Part):
    name: Name
    packet_size: Annotated[int, Field(ge=1, le=65_535)] = 1500
    t_min_mbps: NotNegative
    t_max_mbps: Positive | None
    d_max_us: Positive | None = None
    aggregates: list[str] = []
    nfs: list[_Nf] = Field(min_length=1, max_length=200)
    edges: list[list[Any]] = []


class _Chains(_Part):
    chains: list[_Chain] = Field(min_length=1, max_length=100_000)


class _Switch(_Part):
    stages: Whole | None = None
    reserved_stages: Whole = 0
    blocks_per_stage: Whole = 1
    kind: str = rack.SwitchKind.PISA.value
    table_order: list[str] = []
    tcam: MemoryTwin = MemoryTwin(**vars(rack.TCAM_MEMORY))
    sram: MemoryTwin = MemoryTwin(**vars(rack.SRAM_MEMORY))


class _SmartNic(_Part):
    name: Name
    cores: Whole
    clock_mhz: Positive


class _Socket(_Part):
    cores: Whole
    reserved_cores: Whole = 0


class _Nic(_Part):
    name: Name
    mbps: NotNegative
    socket: Whole = 0


IN_PLACE_OF = {"sockets": ("cores", "reserved_cores"), "nics": ("nic_mbps",)}
"""Keys of servers, and those that they replace."""


class _TooMuch(list[str]):
    """Keys that are given beside the one that replaces them."""


def _alone(value: object) -> object:
    if isinstance(value, _TooMuch):
        raise ValueError(f"goes without {' and '.join(value)}")
    return value


class _Server(_Part):
    name: Name
    cores: Whole
    reserved_cores: Whole = 0
    clock_mhz: Positive
    nic_mbps: NotNegative
    smartnic: _SmartNic | None = None
    sockets: Annotated[Annotated[list[_Socket], Field(min_length=1, max_length=16)] | None, BeforeValidator(_alone)] = (
        None
    )
    nics: Annotated[Annotated[list[_Nic], Field(min_length=1, max_length=16)] | None, BeforeValidator(_alone)] = None
    cross_socket_cycles: NotNegative = Fraction(0)
    shared_cores: bool = False

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: object) -> object:
        """Numbers that sockets and NICs replace are those of all; they are added up when all is read."""
        if not isinstance(given, dict):
            return given
        filled = dict(given)
        for several, single in IN_PLACE_OF.items():
            if given.get(several) is not None:
                filled |= dict.fromkeys(single, 0)
                if beside := [key for key in single if key in given]:
                    filled[several] = _TooMuch(beside)
        return filled

    def server(self) -> rack.Server:
        """What it stands for."""
        nic, nics, sockets = self.smartnic, self.nics or (), self.sockets or ()
        return rack.Server(
            self.name,
            sum(socket.cores for socket in sockets) if sockets else self.cores,
            self.clock_mhz,
            sum((nic.mbps for nic in nics), Fraction(0)) if nics else self.nic_mbps,
            sum(socket.reserved_cores for socket in sockets) if sockets else self.reserved_cores,
            rack.SmartNic(nic.name, nic.cores, nic.clock_mhz) if nic else None,
            tuple(rack.ServerSocket(socket.cores, socket.reserved_cores) for socket in sockets),
            tuple(rack.ServerNic(nic.name, nic.mbps, nic.socket) for nic in nics),
            self.cross_socket_cycles,
            self.shared_cores,
        )

    def faults(self, place: str, file: str) -> list[Fault]:
        """NICs that do not go with one another, with sockets or with the SmartNIC."""
        nics, sockets = self.nics or [], len(self.sockets or [()])
        found = _repeat((nic.name for nic in nics), f"{place}.nics", file)
        for at, nic in enumerate(nics):
            if nic.socket >= sockets:
                message = f"there is no socket {nic.socket}: they are numbered from 0 to {sockets - 1}"
                found.append(Fault(file, None, f"{place}.nics.{at}.socket", message))
        if self.smartnic and len(nics) > 1:
            found.append(Fault(file, None, f"{place}.nics", "a server with a SmartNIC has no other NIC"))
        return found


CYCLES_BY_NUMBERS = {
    "rules": "rule",
    "routes": "route",
    "urls": "url",
    "backends": "backend",
    "flows": "flow",
    "packet_size": "byte",
}
"""Numbers that cycles may follow, and what one of them is called."""


def cycles_by_keys(name: str) -> tuple[str, str, str]:
    """The keys of a cost that say how cycles follow a number: where they hold, for each one more, and points."""
    return name, f"cycles_per_{CYCLES_BY_NUMBERS[name]}", f"cycles_by_{name}"


_Point = Annotated[list[NotNegative], Field(min_length=2, max_length=2)]


class _CyclesBy(_Part):
    at: NotNegative
    per: Annotated[Fraction, BeforeValidator(_number)] = Fraction(0)
    points: Annotated[list[_Point], Field(min_length=2, max_length=1000)] | None = None

    def stands_for(self) -> rack.CyclesBy:
        """How cycles follow the number."""
        line = ((Fraction(0), Fraction(0)), (Fraction(1), self.per))
        return rack.CyclesBy(
            self.at, tuple((number, cycles) for number, cycles in self.points) if self.points else line
        )


class _CoreCost(_Part):
    cycles: NotNegative
    replicable: bool = True
    testbed_nf: Name | None = None
    testbed_parameters: dict[str, float] = {}
    by: dict[str, _CyclesBy] = {}

    @model_validator(mode="before")
    @classmethod
    def _collect(cls, given: object) -> object:
        """Numbers that cycles follow stand beside `cycles`."""
        if not isinstance(given, dict):
            return given
        if "by" in given:
            raise ValueError("by: unknown key")
        left, found = dict(given), {}
        for name in CYCLES_BY_NUMBERS:
            at, per, points = cycles_by_keys(name)
            if not {at, per, points} & given.keys():
                continue
            if at not in given or (given.get(per) is None) == (given.get(points) is None):
                raise ValueError(f"{name} goes with {per} or {points}, and either with {name}")
            listed = given[points] if isinstance(given.get(points), list) else []
            numbers = [point[0] for point in listed if isinstance(point, list) and point]
            if any(not isinstance(number, int | float) for number in numbers) or sorted(set(numbers)) != numbers:
                raise ValueError(f"{points} is a list of [{name}, cycles], with ascending {name}")
            keys = {at: "at", per: "per", points: "points"}
            found[name] = {keys[key]: left.pop(key) for key in keys if key in given}
        return {**left, "by": found} if found else left


class _OnSwitch(_Part):
    blocks: Whole
    tables: TableTwins | None = None


class _Costs(_Part):
    server: _CoreCost | None = None
    switch: _OnSwitch | None = None
    smartnic: _CoreCost | None = None


class _Overheads(_Part):
    subgroup_cycles: NotNegative = Fraction(0)
    replica_cycles: NotNegative = Fraction(0)
    stages: Whole = 0


class _Testbed(_Part):
    spec: Name | None = None
    flows: Annotated[float, Field(gt=0)] | None = None
    mtbr: Annotated[float, Field(ge=0)] | None = None


class _Rack(_Part):
    switch: _Switch = _Switch()
    crossing_us: NotNegative = Fraction(0)
    servers: list[_Server] = Field(max_length=10_000)
    nfs: dict[str, _Costs]
    overheads: _Overheads = _Overheads()
    testbed: _Testbed = _Testbed()


Message = TypeVar("Message", bound=BaseModel)


def chains_of(content: object, file: str) -> tuple[Chain, ...]:
    """Chains from parsed JSON; faults name `file`."""
    parsed = validate(_Chains, content, file).chains
    faults = _repeat((chain.name for chain in parsed), "chains", file)
    readings = [_ChainReading(one, f"chains.{at}", file) for at, one in enumerate(parsed)]
    chains = [reading.chain() for reading in readings]
    faults += [fault for reading in readings for fault in reading.faults]
    if faults:
        raise InputError(faults)
    return tuple(chain for chain in chains if chain)


def rack_of(content: object, file: str) -> rack.Rack:
    """A rack from parsed JSON; faults name `file`."""
    parsed = validate(_Rack, content, file)
    names = [name for server in parsed.servers for name in server.server().names]
    faults = _repeat(names, "servers", file)
    faults += [fault for at, server in enumerate(parsed.servers) for fault in server.faults(f"servers.{at}", file)]
    if SWITCH_NAME in names:
        faults.append(Fault(file, None, "servers", f"{SWITCH_NAME!r} is how plans name the switch, and no device"))
    kinds = [kind.value for kind in rack.SwitchKind]
    if parsed.switch.kind not in kinds:
        message = f"{parsed.switch.kind!r} is not one of {', '.join(kinds)}"
        faults.append(Fault(file, None, "switch.kind", message))
    faults += _repeat(parsed.switch.table_order, "switch.table_order", file)
    for nf in parsed.switch.table_order:
        if nf not in parsed.nfs:
            faults.append(Fault(file, None, "switch.table_order", f"{nf!r} is no NF of the rack"))
    if faults:
        raise InputError(faults)
    return _rack(parsed)


def parse_json(text: str, file: str) -> object:
    """The content of a JSON file; faults name `file`."""
    try:
        return json.loads(text, parse_constant=_not_finite)
    except RecursionError:
        raise InputError.of(file, "is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise InputError.of(file, f"is not JSON: {error.msg}", line=error.lineno) from None
    except ValueError as error:
        raise InputError.of(file, str(error)) from None


def _not_finite(name: str) -> float:
    raise ValueError(f"{name} is not a finite number")


def validate(model: type[Message], content: object, file: str, hint: str | None = None) -> Message:
    """What parsed JSON says; faults name `file` and have the hint."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        found = [(".".join(map(str, fault["loc"])), word_fault(fault)) for fault in error.errors(include_url=False)]
        raise InputError([Fault(file, None, place or None, message, hint) for place, message in found]) from None


def _repeat(names: Iterable[str], place: str, file: str) -> list[Fault]:
    names = list(names)
    repeated = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    return [Fault(file, None, place, f"duplicate name {name!r}") for name in sorted(repeated)]


@dataclass
class _ChainReading:
    """Turns one parsed chain into a Chain, and collects what is wrong with it."""

    parsed: _Chain
    place: str
    file: str

    def __post_init__(self) -> None:
        self.faults: list[Fault] = []

    def chain(self) -> Chain | None:
        parsed = self.parsed
        ids = [nf.id for nf in parsed.nfs]
        self.faults += _repeat(ids, f"{self.place}.nfs", self.file)
        largest = max(UNBOUNDED_MBPS, parsed.t_min_mbps) if parsed.t_max_mbps is None else parsed.t_max_mbps
        if parsed.t_min_mbps > largest:
            self._fault("t_min_mbps", f"{float(parsed.t_min_mbps):g} is above t_max_mbps")
        edges = [self._edge(at, edge, ids) for at, edge in enumerate(parsed.edges)]
        if self.faults:
            return None
        chain = Chain(
            parsed.name,
            parsed.packet_size,
            Slo(parsed.t_min_mbps, largest, parsed.d_max_us),
            tuple(nf.chain_nf() for nf in parsed.nfs),
            tuple(edge for edge in edges if edge),
            tuple(parsed.aggregates),
        )
        self._check_graph(chain)
        return None if self.faults else chain

    def _edge(self, at: int, edge: list[Any], ids: list[str]) -> ChainEdge | None:
        where = f"edges.{at}"
        if len(edge) not in (2, 3, 4) or not all(isinstance(end, str) for end in edge[:2]):
            self._fault(where, "an edge is [from, to], [from, to, share] or [from, to, share, match]")
            return None
        for end in edge[:2]:
            if end not in ids:
                self._fault(where, f"there is no NF {end!r}", suggestion(end, ids))
                return None
        try:
            share = Fraction(1) if len(edge) == 2 else _exact(edge[2])
        except ValueError as error:
            self._fault(where, str(error))
            return None
        assert isinstance(share, Fraction)
        if not 0 < share <= 1:
            self._fault(where, f"the share {edge[2]} is not above 0 and at most 1")
            return None
        return ChainEdge(ids.index(edge[0]), ids.index(edge[1]), share, str(edge[3]) if len(edge) == 4 else "")

    def _check_graph(self, chain: Chain) -> None:
        entries = [nf.id for at, nf in enumerate(chain.nfs) if not chain.edges_into(at)]
        pairs = [(edge.tail, edge.head, edge.match) for edge in chain.edges]
        for tail, head, match in sorted({pair for pair in pairs if pairs.count(pair) > 1}):
            same = f" with the match {match!r}" if match else ""
            self._fault("edges", f"there are parallel edges from {chain.nfs[tail].id} to {chain.nfs[head].id}{same}")
        if len(chain.order) < len(chain.nfs):
            left = [nf.id for at, nf in enumerate(chain.nfs) if at not in chain.order]
            self._fault("edges", f"there is a cycle: {', '.join(left)}")
        elif len(entries) > 1:
            self._fault("edges", f"a chain has one entry, not {len(entries)}: {', '.join(entries)}")
        for at, nf in enumerate(chain.nfs):
            total = sum((edge.share for edge in chain.edges_from(at)), Fraction(0))
            if chain.edges_from(at) and abs(total - 1) > SHARE_TOLERANCE:
                self._fault("edges", f"the shares that leave {nf.id} add up to {float(total):g}, not to 1")

    def _fault(self, column: str, message: str, hint: str | None = None) -> None:
        self.faults.append(Fault(self.file, None, f"{self.place}.{column}", message, hint))


def _rack(parsed: _Rack) -> rack.Rack:
    switch = parsed.switch
    return rack.Rack(
        rack.Switch(
            switch.stages,
            switch.reserved_stages,
            switch.blocks_per_stage,
            rack.SwitchKind(switch.kind),
            tuple(switch.table_order),
            switch.tcam.memory(),
            switch.sram.memory(),
        ),
        tuple(server.server() for server in parsed.servers),
        parsed.crossing_us,
        {name: _costs(name, one, parsed.testbed.flows) for name, one in parsed.nfs.items()},
        rack.Overheads(**dict(parsed.overheads)),
        rack.RackTestbed(**dict(parsed.testbed)),
    )


def _costs(name: str, parsed: _Costs, rack_flows: float | None) -> rack.NfCosts:
    def core(cost: _CoreCost | None) -> rack.CoreCost | None:
        if cost is None:
            return None
        named = cost.testbed_nf or cost.testbed_parameters
        testbed_nf = NfStage.of(cost.testbed_nf or name, cost.testbed_parameters) if named else None
        by = {name: one.stands_for() for name, one in cost.by.items()}
        flows = by.pop("flows", None)  # of the whole rack
        more = flows.beyond(Fraction(rack_flows)) if flows and rack_flows is not None else Fraction(0)
        return rack.CoreCost(max(cost.cycles + more, Fraction(0)), cost.replicable, testbed_nf, by)

    if parsed.switch is None:
        return rack.NfCosts(core(parsed.server), core(parsed.smartnic))
    tables = None if parsed.switch.tables is None else tuple(table.table() for table in parsed.switch.tables)
    return rack.NfCosts(core(parsed.server), core(parsed.smartnic), parsed.switch.blocks, tables)
