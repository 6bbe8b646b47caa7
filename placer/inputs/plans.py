"""Plan files of `placer run --plan`: the NIC of every instance, read or refused whole (docs/formats/plan.md)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from placer.model.arrival import Arrival
from placer.model.feasibility import fits
from placer.model.fleet import Fleet
from placer.model.nic import number_in
from placer.model.nic_kind import NicKind
from placer.model.plan import Placement, Plan
from profiles import Fault, InputError, Workload
from profiles.description import MOST_CORES
from profiles.files.csv_table import CsvTable, read_csv_table

PLAN_COLUMNS = ("strategy", "predictor", "id", "nic", "nic_model")  # those that are read; a plan file has more
REASON_COLUMN, SPARE_REASON = "reason", "spare"
"""A row without an instance and with this reason is a NIC that stays empty for failures."""
CORES_COLUMN = "cores"  # read where it is there: an instance without a number of cores has that of the plan
GIVEN_PLAN = "planned"  # the strategy whose plan is taken where a file has several

SAME_TRACE = "--arrivals is the trace that the plan was made for"


def read_plan(
    source: str, strategy: str | None, predictor: str, trace: str, arrivals: Sequence[Arrival], fleet: Fleet
) -> Plan:
    """The plan of one strategy for a trace, on NICs that an empty fleet has.

    A file does not say of which kind a NIC is, where several have its model. It is of the cheapest one that has the
    cores for its instances, and NICs that fit fewer kinds come first. `source`: a `.csv` or `.csv.gz` file, or `-` for
    standard input. `strategy`: whose plan; None for `planned`, or the only one of the file. `predictor`: whose plan,
    where the strategy has several. `trace`, `arrivals`: the trace that the plan is for, and its name. `fleet`: the
    fleet, in which no NIC is in use. Raises `InputError` with every fault of the file, and of the trace that cannot be
    taken over."""
    table = read_csv_table(source)
    hint = f"a plan file has the columns {', '.join(PLAN_COLUMNS)}"
    missing = [
        Fault(table.name, 1, name, "column is missing", hint) for name in PLAN_COLUMNS if name not in table.header
    ]
    if missing or not table.rows:
        raise InputError([*missing, *table.faults])
    chosen = _choose_plan(table, strategy, predictor)
    rows = _Rows(table, trace, arrivals, fleet)
    cores, reasons = (
        table.cells(name) if name in table.header else [""] * len(table.lines) for name in (CORES_COLUMN, REASON_COLUMN)
    )
    for line, *by, identity, nic_id, model, given, reason in zip(
        table.lines, *map(table.cells, PLAN_COLUMNS), cores, reasons, strict=True
    ):
        if tuple(by) == chosen and not identity and reason == SPARE_REASON:
            rows.read_spare(line, nic_id, model)
        elif tuple(by) == chosen:
            rows.read(line, identity, nic_id, model, given)
    rows.refuse_missing()
    kinds = rows.assign_kinds()
    if faults := [*_find_departures(trace, arrivals), *rows.faults]:
        raise InputError(faults)
    placed = [(rows.arrivals[arrival.id], rows.nic_of.get(arrival.id)) for arrival in arrivals]
    placements = tuple(Placement(arrival, nic, None if nic is None else kinds[nic]) for arrival, nic in placed)
    return Plan(chosen[0], chosen[1] or None, placements, 0.0)


def _find_departures(trace: str, arrivals: Sequence[Arrival]) -> Iterator[Fault]:
    """Refuse a trace whose instances do not all run at the same time."""
    departing = [arrival.id for arrival in arrivals if arrival.departure is not None]
    if departing:
        message = f"{len(departing)} of {len(arrivals)} instances depart, the first of them is '{departing[0]}'"
        hint = "a fleet begins with instances that run at the same time: plan those of one moment, without departures"
        yield Fault(trace, None, "departure", message, hint)


def _choose_plan(table: CsvTable, strategy: str | None, predictor: str) -> tuple[str, str]:
    """Strategy and predictor of the plan that is wanted."""
    plans = list(dict.fromkeys(zip(table.cells("strategy"), table.cells("predictor"), strict=True)))
    names = list(dict.fromkeys(name for name, _ in plans))
    if strategy is None and GIVEN_PLAN not in names and len(names) > 1:
        hint = "name one: --plan-strategy NAME"
        raise InputError.of(table.name, f"has the plans of several strategies: {', '.join(names)}", hint=hint)
    wanted = strategy or (GIVEN_PLAN if GIVEN_PLAN in names else names[0])
    if wanted not in names:
        hint = f"it has those of {', '.join(names)}"
        raise InputError.of("--plan-strategy", f"{table.name} has no plan of '{wanted}'", hint=hint)
    predictors = [by for name, by in plans if name == wanted]
    if len(predictors) > 1 and predictor not in predictors:
        message = f"has plans of '{wanted}' by {', '.join(predictors)}, and none by {predictor}"
        raise InputError.of(table.name, message, hint="name one of them: --predictor NAME")
    return wanted, predictor if len(predictors) > 1 else predictors[0]


@dataclass
class _PlannedNic:
    """A NIC of a plan: the line that names it first, its model, and what is to run on it."""

    line: int
    model: str
    is_spare: bool = False
    workloads: list[Workload] = field(default_factory=list)


class _Rows:
    """Reads the rows of a plan, and collects what is wrong with them."""

    def __init__(self, table: CsvTable, trace: str, arrivals: Sequence[Arrival], fleet: Fleet) -> None:
        self.faults = table.faults
        self.nic_of: dict[str, str] = {}
        self.arrivals = {arrival.id: arrival for arrival in arrivals}
        self._name = table.name
        self._trace = trace
        self._fleet = fleet
        self._names = {nic.number: nic.id for nic in fleet.all_nics()}
        self._nics: dict[str, _PlannedNic] = {}
        self._lines: dict[str, int] = {}

    def read(self, line: int, identity: str, nic_id: str, model: str, cores: str) -> None:
        """Read a row: an instance, and its NIC or none."""
        arrival = None
        if not identity:
            self._fault(line, "id", "is empty")
        elif identity in self._lines:
            self._fault(line, "id", f"'{identity}' is already on line {self._lines[identity]}")
        else:
            self._lines[identity] = line
            arrival = self.arrivals.get(identity)
            if arrival is None:
                self._fault(line, "id", f"'{identity}' is not in {self._trace}", SAME_TRACE)
        if bool(nic_id) != bool(model):
            self._fault(line, "nic_model" if nic_id else "nic", "is empty")
        elif nic_id:
            nic = self._read_nic(line, nic_id, model)
            if nic.is_spare:
                self._fault(line, "nic", f"'{nic_id}' is a spare NIC on line {nic.line}")
            if arrival is not None:
                self.nic_of[identity] = nic_id
                if cores:
                    arrival = self.arrivals[identity] = self._give_cores(line, arrival, model, cores)
                nic.workloads.append(arrival.workload)

    def read_spare(self, line: int, nic_id: str, model: str) -> None:
        """Read a row of a NIC that stays empty."""
        if not nic_id or not model:
            self._fault(line, "nic_model" if nic_id else "nic", "is empty")
        elif nic_id in self._nics:
            self._fault(line, "nic", f"'{nic_id}' is spare, and on line {self._nics[nic_id].line}, too")
        else:
            self._read_nic(line, nic_id, model).is_spare = True

    def refuse_missing(self) -> None:
        """Every instance of the trace has a row."""
        for identity in self.arrivals:
            if identity not in self._lines:
                self._fault(None, "id", f"'{identity}' of {self._trace} is missing", SAME_TRACE)

    def assign_kinds(self) -> dict[str, NicKind]:
        """The kind of every NIC, by its id."""
        found: dict[str, NicKind] = {}
        left = {kind.index: self._fleet.count_of(kind) - self._fleet.idle(kind) for kind in self._fleet.kinds}
        kinds_of = {nic_id: self._find_kinds(nic_id, nic) for nic_id, nic in self._nics.items()}
        for nic_id, kinds in sorted(kinds_of.items(), key=lambda item: len(item[1])):
            of_fleet = self._fleet.find(nic_id) is not None
            kind = next((kind for kind in kinds if of_fleet or left[kind.index] > 0), None)
            if kind is not None:
                found[nic_id] = kind
                left[kind.index] -= not of_fleet
            elif kinds:
                nic = self._nics[nic_id]
                count = sum(self._fleet.count_of(kind) for kind in self._fleet.kinds if kind.model == nic.model)
                self._fault(nic.line, "nic", f"no {nic.model} is left for '{nic_id}': the fleet has {count:g}")
        return found

    def _give_cores(self, line: int, arrival: Arrival, model: str, cell: str) -> Arrival:
        """The arrival with the cores of the plan, which must be a number that it may be given on that model. Without
        an offered rate an instance has the default number of its NF. A GPU gives it a worker."""
        count = int(cell) if cell.isdecimal() else 0
        if not 1 <= count <= MOST_CORES:
            self._fault(line, CORES_COLUMN, f"'{cell}' is not a number of cores")
            return arrival
        workload = arrival.workload
        hosting = [kind for kind in self._fleet.kinds if kind.model == model and kind.hosts(workload)]
        possible = {kind.cores_for(choice) for kind in hosting for choice in kind.choices(workload)}
        if possible and count not in possible:
            expected = " or ".join(map(str, sorted(possible)))
            self._fault(line, CORES_COLUMN, f"'{arrival.id}' of {self._trace} may have {expected}, not {count}")
        elif not workload.is_saturated and not all(kind.paced for kind in hosting):
            return replace(arrival, workload=replace(workload, cores=count))
        return arrival

    def _read_nic(self, line: int, nic_id: str, model: str) -> _PlannedNic:
        nic = self._nics.get(nic_id)
        if nic is not None:
            if nic.model != model:
                self._fault(line, "nic_model", f"'{nic_id}' is a {nic.model} on line {nic.line}")
            return nic
        models = dict.fromkeys(kind.model for kind in self._fleet.kinds)
        known, number = self._fleet.find(nic_id), number_in(nic_id)
        if model not in models:
            hint = f"it has {', '.join(models)}"
            self._fault(line, "nic_model", f"'{model}' is not a NIC model of the fleet", hint)
        elif known is None and number is None:
            hint = "NICs are nic-1, nic-2, ... or have a name in the fleet"
            self._fault(line, "nic", f"'{nic_id}' is not a NIC of the fleet", hint)
        elif known is None and number in self._names:
            self._fault(line, "nic", f"'{nic_id}' is called '{self._names[number]}' in the fleet", "plan again for it")
        elif known is not None and known.kind.model != model:
            self._fault(line, "nic_model", f"'{nic_id}' is a {known.kind.model} in the fleet")
        self._nics[nic_id] = _PlannedNic(line, model)
        return self._nics[nic_id]

    def _find_kinds(self, nic_id: str, nic: _PlannedNic) -> list[NicKind]:
        """The kinds that the NIC may be of, the cheapest first: those that take its instances."""
        known = self._fleet.find(nic_id)
        possible = [known.kind] if known is not None else self._fleet.kinds if number_in(nic_id) else ()
        kinds = sorted((kind for kind in possible if kind.model == nic.model), key=lambda kind: kind.cost)
        running = [kind for kind in kinds if all(map(kind.hosts, nic.workloads))]
        if kinds and not running:
            nfs = sorted({workload.nf for workload in nic.workloads if not all(kind.hosts(workload) for kind in kinds)})
            self._fault(nic.line, "nic", f"'{nic_id}': {', '.join(nfs)} does not run on a {nic.model}")
        fitting = [kind for kind in running if fits(kind, nic.workloads)]
        if running and not fitting:
            widest = max(running, key=lambda kind: kind.cores)
            taken = f"take {widest.cores_taken(nic.workloads)} cores, and a {nic.model} has {widest.cores}"
            self._fault(nic.line, "nic", f"the instances of '{nic_id}' {taken}")
        return fitting

    def _fault(self, line: int | None, column: str, message: str, hint: str | None = None) -> None:
        self.faults.append(Fault(self._name, line, column, message, hint))
