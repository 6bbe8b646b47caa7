"""Statements of a switch program as instructions of a DPDK pipeline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from placer.rack.compiler.routing import MOST_BACK_US
from placer.rack.compiler.switch import program

ARRIVAL_HEADER, ARRIVAL_FIELDS = "arrival", {"time_us": 64, "bytes": 32}  # in front of packets (`nfs/rack/switch.h`)
METER_FIELDS = {"ahead": 64, "then": 64, "gone": 64, "cost": 64}  # metadata that meters need
AHEAD_REGISTER, TIMES_REGISTER = "meter_ahead", "meter_times"
LONG_US = 1 << 36  # 19 hours, behind which every packet passes
LEAST_PER_BYTE = 1 << 12  # parts of a us that a byte takes, so that the rate is right to a part of 8,192
SUMMANDS_FIELD = "summands"  # a header that no packet has: DPDK adds only fields of headers to checksums


@dataclass
class SpecCode:
    """Instructions with labels; labels at the same place become one."""

    names: Mapping[str, str]  # fields that are elsewhere than the program says
    meters: Sequence[program.ChainMeter] = ()
    lines: list[tuple[str, str]] = field(default_factory=list)
    labels: int = 0

    def new_label(self, name: str) -> str:
        self.labels += 1
        return f"{name}_{self.labels}"

    def put(self, label: str) -> None:
        """The label stands before the next instruction."""
        self.lines.append(("label", label))

    def instruction(self, text: str) -> None:
        self.lines.append(("instruction", " ".join(self.names.get(word, word) for word in text.split())))

    def text(self) -> str:
        """All instructions, one in a line; jumps to the next instruction are left out."""
        lines = with_fewer_jumps(self.lines)
        first: dict[str, str] = {}
        standing: str | None = None
        for kind, text in lines:
            standing = (standing or text) if kind == "label" else None
            if kind == "label" and standing:
                first[text] = standing
        used = {first[word] for kind, text in lines if kind == "instruction" for word in text.split() if word in first}
        shown = []
        label = ""
        for kind, text in lines:
            if kind == "label":
                label = f"{first[text]} : " if first[text] in used else label
                continue
            shown.append(f"\t{label}{' '.join(first.get(word, word) for word in text.split())}\n")
            label = ""
        return "".join(shown)

    def body(self, body: program.Body) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, statement: program.Statement) -> None:
        match statement:
            case program.If():
                self.case(statement)
            case program.UpdateChecksum():
                self.update(statement)
            case _:
                for text in _instructions(statement):
                    self.instruction(text)

    def update(self, one: program.UpdateChecksum) -> None:
        """What DPDK computes is never 0, where RFC 1624 has 0 but for sums that cannot be here."""
        self.instruction(f"cksub {one.checksum} {self.summand(one.before, 'before')}")
        self.instruction(f"ckadd {one.checksum} {self.summand(one.after, 'after')}")
        if not one.never_zero:
            end = self.new_label("SUM")
            self.instruction(f"jmpneq {end} {one.checksum} 0xffff")
            self.instruction(f"mov {one.checksum} 0x0")
            self.put(end)

    def summand(self, value: str, place: str) -> str:
        """A field of a header with this value."""
        if not self.names.get(value, value).startswith("m."):
            return value
        self.instruction(f"mov h.{SUMMANDS_FIELD}.{place} {value}")
        return f"h.{SUMMANDS_FIELD}.{place}"

    def case(self, case: program.If) -> None:
        """Jumps over what is not to run."""
        then, otherwise = case.then, case.otherwise
        other, end = self.new_label("ELSE"), self.new_label("END")
        self.skip(case.condition, other)
        self.body(then)
        if otherwise:
            self.instruction(f"jmp {end}")
        self.put(other)
        self.body(otherwise)
        self.put(end)

    def skip(self, condition: program.Condition, to: str) -> None:
        """A jump where a condition does not hold."""
        match condition:
            case program.IsOverRate(number):
                self.admit(number, self.meters[number], to)
            case program.IsValid(header):
                self.instruction(f"jmpnv {to} h.{header}")
            case program.FieldComparison(left, "==", right):
                self.instruction(f"jmpneq {to} {left} {right}")
            case program.FieldComparison(left, "!=", right):
                self.instruction(f"jmpeq {to} {left} {right}")
            case program.FieldComparison(left, "<", int(right)):
                self.instruction(f"jmpgt {to} {left} {right - 1}" if right else f"jmp {to}")
            case program.FieldComparison(left, ">", int(right)):
                self.instruction(f"jmplt {to} {left} {right + 1}")
            case _:
                raise AssertionError(condition)

    def admit(self, number: int, meter: program.ChainMeter, to: str) -> None:
        """A jump where a meter admits the packet, which counts there then.

        DPDK's meters read the clock of the CPU, and a pipeline knows no length of a packet: both stand in the header
        `arrival`, which nf-switch puts in front. Registers keep how far packets are ahead of the rate, as the time that
        is left until the rate catches up, and when that was: in parts of a us so small that a byte takes thousands.
        """
        shift, per_byte = _shifted_us(8 / meter.mbps)
        back, long, over = (self.new_label(name) for name in ("EARLIER", "LONG_AGO", "OVER"))
        self.instruction(f"regrd m.ahead {AHEAD_REGISTER} {number}")
        self.instruction(f"regrd m.then {TIMES_REGISTER} {number}")
        self.instruction(f"mov m.gone h.{ARRIVAL_HEADER}.time_us")
        self.instruction("sub m.gone m.then")
        self.instruction(f"jmpgt {back} m.gone {2**64 - MOST_BACK_US:#x}")  # time went back; by far it begins anew
        self.instruction(f"regwr {TIMES_REGISTER} {number} h.{ARRIVAL_HEADER}.time_us")
        self.instruction(f"jmpgt {long} m.gone {LONG_US:#x}")
        self.instruction(f"shl m.gone {shift:#x}")
        self.instruction(f"jmpgt {long} m.gone m.ahead")
        self.instruction("sub m.ahead m.gone")
        self.instruction(f"jmp {back}")
        self.put(long)
        self.instruction("mov m.ahead 0x0")
        self.put(back)
        self.instruction(f"jmpgt {over} m.ahead {meter.burst_us << shift:#x}")
        for bit in range(per_byte.bit_length()):
            if per_byte >> bit & 1:
                self.instruction(f"mov m.cost h.{ARRIVAL_HEADER}.bytes")
                self.instruction(f"shl m.cost {bit:#x}")
                self.instruction("add m.ahead m.cost")
        self.instruction(f"regwr {AHEAD_REGISTER} {number} m.ahead")
        self.instruction(f"jmp {to}")
        self.put(over)
        self.instruction(f"regwr {AHEAD_REGISTER} {number} m.ahead")

    def jump_unless(self, test: program.FieldTest, to: str) -> None:
        self.instruction(f"jmpneq {to} {self.masked(test)} {test.value:#x}")

    def jump_if(self, test: program.FieldTest, to: str) -> None:
        self.instruction(f"jmpeq {to} {self.masked(test)} {test.value:#x}")

    def masked(self, test: program.FieldTest) -> str:
        """Where the value to compare is."""
        if test.mask is None:
            return test.field
        self.instruction(f"mov m.test {test.field}")
        self.instruction(f"and m.test {test.mask:#x}")
        return "m.test"


def _shifted_us(us: Fraction) -> tuple[int, int]:
    """A time in parts of a us, at least LEAST_PER_BYTE if it is not too short; by how many bits a us has more."""
    shift = 0
    while round(us * 2**shift) < LEAST_PER_BYTE and LONG_US << shift + 1 < 2**63:
        shift += 1
    return shift, max(round(us * 2**shift), 1)


def _instructions(statement: program.Statement) -> Iterator[str]:
    match statement:
        case program.Assign(to, value):
            yield f"mov {to} {value if isinstance(value, str) else hex(value)}"
        case program.Compute(operation, to, value):
            yield f"{operation.value} {to} {value if isinstance(value, str) else hex(value)}"
        case program.SetValid(header, valid):
            yield f"{'validate' if valid else 'invalidate'} h.{header}"
        case program.Count(registers, index):
            yield f"regadd {registers} {index} 0x1"
        case program.TakeNumber(registers, index, to):
            yield f"regrd {to} {registers} {index}"
            yield f"regadd {registers} {index} 0x1"
        case program.Learn(action, arguments):
            yield "mov m.timeout 0x0"
            yield f"learn {action}{''.join(f' {argument}' for argument in arguments[:1])} m.timeout"
        case program.Apply(table):
            yield f"table {table}"
        case program.If():
            raise AssertionError(statement)


# Fewer jumps in the instructions of a pipeline: jumps that lead to jumps, over jumps, or nowhere.
#
# Lines are pairs: ("label", NAME), or ("instruction", TEXT). All jumps lead forward.


Line = tuple[str, str]

OPPOSITE_JUMPS = {"jmpeq": "jmpneq", "jmpneq": "jmpeq", "jmpv": "jmpnv", "jmpnv": "jmpv"}
IS_EQUAL, IS_DIFFERENT = "==", "!="
JUMP_FACTS = {"jmpeq": IS_EQUAL, "jmpv": IS_EQUAL, "jmpneq": IS_DIFFERENT, "jmpnv": IS_DIFFERENT}
"""What holds where a jump is taken."""
VALID = "valid"
FORGETTING_INSTRUCTIONS = {"table", "learn", "rx", "extract", "lookahead"}
"""Instructions behind which nothing is known of what was before."""
Facts = dict[str, tuple[str, str]]  # by field or header: whether it equals a value, or does not


def with_fewer_jumps(lines: Sequence[Line]) -> list[Line]:
    """The same instructions with fewer jumps on the way of a packet."""
    found = list(lines)
    while True:
        shorter = _without_needless(_invert(_thread_jumps(found)))
        if shorter == found:
            return found
        found = shorter


def _thread_jumps(lines: list[Line]) -> list[Line]:
    """Jumps lead where the tests behind their targets lead them, if it is known how these turn out."""
    lines = _only_used_labels(lines)
    places = {text: at for at, (kind, text) in enumerate(lines) if kind == "label"}
    new: dict[int, str] = {}
    found = list(lines)
    for at, (kind, text) in enumerate(lines):
        word, *operands = text.split()
        if kind != "instruction" or not word.startswith("jmp"):
            continue
        facts = _facts_before(lines, at) | _learnt(word, operands, taken=True)
        target = places[operands[0]]
        while (behind := _behind(lines, target, places, facts)) is not None:
            target = behind
        if target != places[operands[0]]:
            label = _label_at(lines, target, new)
            found[at] = ("instruction", " ".join([word, label, *operands[1:]]))
    for at in sorted(new, reverse=True):
        found.insert(at, ("label", new[at]))
    return found


def _label_at(lines: Sequence[Line], at: int, new: dict[int, str]) -> str:
    """A label of the instruction at a place."""
    if at < len(lines) and lines[at][0] == "label":
        return lines[at][1]
    known = {text for kind, text in lines if kind == "label"} | set(new.values())
    number = len(new)
    while f"PAST_{number}" in known:
        number += 1
    return new.setdefault(at, f"PAST_{number}")


def _behind(lines: Sequence[Line], at: int, places: dict[str, int], facts: Facts) -> int | None:
    """Where a packet goes from a jump at the place, or one behind its labels; None if there is none, or unknown."""
    while at < len(lines) and lines[at][0] == "label":
        at += 1
    if at == len(lines):
        return None
    word, *operands = lines[at][1].split()
    if word == "jmp":
        return places[operands[0]]
    if word not in OPPOSITE_JUMPS:
        return None
    turns = _turns_out(word, operands, facts)
    if turns is None:
        return None
    return places[operands[0]] if turns else at + 1


def _turns_out(word: str, operands: Sequence[str], facts: Facts) -> bool | None:
    """Whether a jump is taken, if that is known."""
    ((name, (relation, value)),) = _learnt(word, operands, taken=True).items()
    if name not in facts:
        return None
    known, known_value = facts[name]
    if known == IS_EQUAL:
        return (known_value == value) == (relation == IS_EQUAL)
    return relation == IS_DIFFERENT if known_value == value else None


def _learnt(word: str, operands: Sequence[str], *, taken: bool) -> Facts:
    """What a jump says of a field or header where it is taken, or is not."""
    if word not in JUMP_FACTS:
        return {}
    relation = JUMP_FACTS[word if taken else OPPOSITE_JUMPS[word]]
    if word in ("jmpv", "jmpnv"):
        return {operands[1]: (relation, VALID)}
    if not operands[2][0].isdigit():
        return {operands[1]: (IS_DIFFERENT, "nothing")}
    return {operands[1]: (relation, str(int(operands[2], 0)))}


def _facts_before(lines: Sequence[Line], at: int) -> Facts:
    """What the instructions in front of a jump say, up to where other packets join."""
    facts: Facts = {}
    written: set[str] = set()
    for before in range(at - 1, -1, -1):
        kind, text = lines[before]
        word, *operands = text.split()
        if kind == "label" or word in FORGETTING_INSTRUCTIONS or word in ("jmp", "tx", "drop"):
            break
        if word in JUMP_FACTS:
            for name, fact in _learnt(word, operands, taken=False).items():
                if name not in written:
                    facts.setdefault(name, fact)
        elif word in ("validate", "invalidate"):
            relation = IS_EQUAL if word == "validate" else IS_DIFFERENT
            if operands[0] not in written:
                facts.setdefault(operands[0], (relation, VALID))
            written.add(operands[0])
        elif operands:
            if word == "mov" and operands[0] not in written and operands[1][0].isdigit():
                facts.setdefault(operands[0], (IS_EQUAL, str(int(operands[1], 0))))
            written.add(operands[0])
    return facts


def _only_used_labels(lines: Sequence[Line]) -> list[Line]:
    used = {text.split()[1] for kind, text in lines if kind == "instruction" and text.startswith("jmp")}
    return [(kind, text) for kind, text in lines if kind == "instruction" or text in used]


def _invert(lines: Sequence[Line]) -> list[Line]:
    """Jumps over jumps become one."""
    found: list[Line] = []
    for at, line in enumerate(lines):
        word, *operands = line[1].split()
        if found and found[-1][0] == "instruction" and line[0] == "instruction" and word == "jmp":
            before, *rest = found[-1][1].split()
            if before in OPPOSITE_JUMPS and rest[0] in _labels_behind(lines, at):
                found[-1] = ("instruction", " ".join([OPPOSITE_JUMPS[before], operands[0], *rest[1:]]))
                continue
        found.append(line)
    return found


def _without_needless(lines: Sequence[Line]) -> list[Line]:
    """Without jumps to the next instruction, and what stands behind a jump and is never reached."""
    found: list[Line] = []
    reached = True
    for at, (kind, text) in enumerate(lines):
        reached = reached or kind == "label"
        if not reached or (text.startswith("jmp ") and text.split()[1] in _labels_behind(lines, at)):
            continue
        found.append((kind, text))
        reached = kind == "label" or text.split()[0] not in ("jmp", "tx", "drop", "return")
    return _only_used_labels(found)


def _labels_behind(lines: Sequence[Line], at: int) -> set[str]:
    """The labels of the next instruction."""
    found = set()
    for following in range(at + 1, len(lines)):
        kind, text = lines[following]
        if kind != "label":
            break
        found.add(text)
    return found
