"""What `placer admit` reads: latency SLOs as JSON Lines, and a GPU as JSON (docs/formats/admission.md). Each file is
refused whole, with every fault in it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, TextIO

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from placer.gpu.device import Arbitration, GpuDevice, GpuNf
from placer.gpu.plan import LatencySlo
from profiles import Fault, InputError
from profiles.faults import suggestion
from profiles.files.json import Place, fault_at, lines_of, parse_json
from profiles.files.lines import LineLimit, open_lines
from profiles.text import read_text
from profiles.validation import word_fault

MOST_SLOS = 1_000_000
MOST_FAULTS = 10_000  # reading stops after this many faults; the first of them are shown, and how many more were found
LARGEST_FILE = 10_000_000
LARGEST_NUMBER = 1e12
SMALLEST_NUMBER = 1e-6
MOST_PACKETS = 10**9
SLO_EXAMPLE = '{"id": "web", "nf": "ACL", "rate_kpps": 400, "latency_us": 300}'


def _printable(name: str) -> str:
    if not name.strip():
        raise ValueError("is empty")
    if not name.isprintable():
        raise ValueError(f"{name!r} has a line break or another control character")
    return name


Name = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_printable)]
Above0 = Annotated[float, Field(ge=SMALLEST_NUMBER, le=LARGEST_NUMBER, allow_inf_nan=False)]
Microseconds = Annotated[float, Field(ge=0, le=LARGEST_NUMBER, allow_inf_nan=False)]
Line = Annotated[list[Microseconds], Field(min_length=2, max_length=2)]  # slope and intercept


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Slo(_Part):
    id: Name
    nf: Name
    rate_kpps: Above0
    latency_us: Above0
    batch: Annotated[int, Field(ge=1, le=MOST_PACKETS)] | None = None


class _Nf(_Part):
    transfer_class: Annotated[Name, Field(alias="class")]
    pre_post_us: Microseconds
    kernel_us: Line


class _Device(_Part):
    sms: Annotated[int, Field(ge=1, le=10_000)]
    executors_per_sm: Annotated[int, Field(ge=1, le=10_000)]
    packets_per_executor: Annotated[int, Field(ge=1, le=MOST_PACKETS)]
    workers: Annotated[int, Field(ge=0, le=MOST_PACKETS)]
    arbitration: Name
    transfer_us: dict[str, Line]
    nfs: Annotated[dict[str, _Nf], Field(min_length=1)]
    sharing_us: dict[str, dict[str, Microseconds]] = {}


def read_slos(source: str | TextIO, nfs: Collection[str] | None = None) -> list[LatencySlo]:
    """The SLOs of a file, in its order. `source`: a path of a file of JSON Lines, plain or gzipped, `-` for standard
    input, or an open text file. Blank lines are skipped. `nfs`: those of the device; None: they are not compared.
    Raises `InputError` with every fault of the file."""
    with ExitStack() as stack:
        name, lines = open_lines(source, stack, LineLimit(MOST_SLOS, "SLOs"))
        reading = _Reading(name, nfs)
        slos = [slo for number, line in enumerate(lines, 1) if line.strip() and (slo := reading.read(number, line))]
    if reading.faults:
        raise InputError(reading.faults)
    if not slos:
        raise InputError.of(name, "holds no SLO", hint=f"one a line, as in {SLO_EXAMPLE}")
    return slos


class _Reading:
    """Reads line after line, and collects every fault."""

    def __init__(self, file: str, nfs: Collection[str] | None) -> None:
        self.file = file
        self.nfs = nfs
        self.faults: list[Fault] = []
        self._lines: dict[str, int] = {}

    def read(self, number: int, line: str) -> LatencySlo | None:
        """The SLO of a line; None with its faults."""
        if len(self.faults) >= MOST_FAULTS:
            raise InputError(self.faults)
        try:
            content = parse_json(line.strip(), self.file, number)
        except InputError as error:
            self.faults += error.faults
            return None
        try:
            slo = _Slo.model_validate(content)
        except ValidationError as error:
            self.faults += [
                Fault(self.file, number, ".".join(map(str, place)) or None, message, hint or _slo_hint(place))
                for place, message, hint in _find(error, _Slo.model_fields)
            ]
            return None
        if (first := self._lines.setdefault(slo.id, number)) != number:
            self.faults.append(Fault(self.file, number, "id", f"'{slo.id}' is also the id of line {first}"))
        if self.nfs is not None and slo.nf not in self.nfs:
            message = f"the device has no NF '{slo.nf}'"
            self.faults.append(Fault(self.file, number, "nf", message, suggestion(slo.nf, self.nfs)))
        return LatencySlo(slo.id, slo.nf, float(slo.rate_kpps), float(slo.latency_us), slo.batch)


def _slo_hint(place: Place) -> str | None:
    return None if place else f"one object a line, as in {SLO_EXAMPLE}"


def _find(error: ValidationError, keys: Iterable[str]) -> Iterator[tuple[Place, str, str | None]]:
    """Place, message and hint of each fault; the keys are those of the outermost object."""
    known = list(keys)
    for fault in error.errors(include_url=False):
        place: Place = fault["loc"]
        unknown = fault["type"] == "extra_forbidden" and len(place) == 1
        yield place, word_fault(fault), suggestion(str(place[0]), known) if unknown else None


def read_device(path: Path) -> GpuDevice:
    """The GPU that a file describes. Raises `InputError` with every fault of the file."""
    text = read_text(path, LARGEST_FILE)
    if not text.strip():
        raise InputError.of(str(path), "is empty", hint=f"an object with {', '.join(_Device.model_fields)}")
    return device_of(parse_json(text, str(path)), str(path), lines_of(text))


def device_of(content: Any, file: str, lines: dict[Place, int] | None = None) -> GpuDevice:
    """The GPU that parsed JSON describes. `file`: named by faults. `lines`: the line of each value, where the content
    is of a file. Raises `InputError` with every fault."""
    at = lines or {}
    try:
        parsed = _Device.model_validate(content)
    except ValidationError as error:
        found = _find(error, _Device.model_fields)
        raise InputError([fault_at(file, at, place, message, hint) for place, message, hint in found]) from None
    if faults := [fault_at(file, at, place, message, hint) for place, message, hint in _unknown_names(parsed)]:
        raise InputError(faults)
    return GpuDevice(
        parsed.sms,
        parsed.executors_per_sm,
        parsed.packets_per_executor,
        parsed.workers,
        Arbitration(parsed.arbitration),
        {name: (line[0], line[1]) for name, line in parsed.transfer_us.items()},
        {
            name: GpuNf(nf.transfer_class, nf.pre_post_us, (nf.kernel_us[0], nf.kernel_us[1]))
            for name, nf in parsed.nfs.items()
        },
        parsed.sharing_us,
    )


def _unknown_names(parsed: _Device) -> Iterator[tuple[Place, str, str]]:
    """Names that the device itself does not define: place, message, hint."""
    arbitrations = [arbitration.value for arbitration in Arbitration]
    if parsed.arbitration not in arbitrations:
        hint = f"it is one of {', '.join(arbitrations)}"
        yield ("arbitration",), f"'{parsed.arbitration}' is not understood", hint
    for name, nf in parsed.nfs.items():
        if nf.transfer_class not in parsed.transfer_us:
            hint = suggestion(nf.transfer_class, parsed.transfer_us) if parsed.transfer_us else "transfer_us is empty"
            yield ("nfs", name, "class"), f"transfer_us has no class '{nf.transfer_class}'", hint
    for name, others in parsed.sharing_us.items():
        if name not in parsed.nfs:
            yield ("sharing_us", name), f"nfs has no '{name}'", suggestion(name, parsed.nfs)
        for other in others:
            if other not in parsed.nfs:
                yield ("sharing_us", name, other), f"nfs has no '{other}'", suggestion(other, parsed.nfs)


# A GPU, SLOs and what is admitted as JSON, for `placer verify` (docs/formats/admission.md).


CERTIFICATE_VERSION = 1
CERTIFICATE_KIND = "admission"


def admission_certificate(
    device: GpuDevice, slos: Sequence[LatencySlo], answer: Mapping[str, object]
) -> dict[str, object]:
    """What a checker needs that shares no code with the methods: the GPU, the SLOs, and the answer with its bound.
    `answer`: as `placer admit --format json` prints it."""
    return {
        "certificate": CERTIFICATE_VERSION,
        "kind": CERTIFICATE_KIND,
        "device": write_device(device),
        "slos": [write_slo(slo) for slo in slos],
        "answer": dict(answer),
    }


def write_device(device: GpuDevice) -> dict[str, Any]:
    """DEVICE."""
    return {
        "sms": device.sms,
        "executors_per_sm": device.executors_per_sm,
        "packets_per_executor": device.packets_per_executor,
        "workers": device.workers,
        "arbitration": device.arbitration.value,
        "transfer_us": {name: list(line) for name, line in device.transfer_us.items()},
        "nfs": {
            name: {"class": nf.transfer_class, "pre_post_us": nf.pre_post_us, "kernel_us": list(nf.kernel_us)}
            for name, nf in device.nfs.items()
        },
        "sharing_us": {name: dict(others) for name, others in device.sharing_us.items()},
    }


def write_slo(slo: LatencySlo) -> dict[str, Any]:
    """SLO."""
    written: dict[str, Any] = {"id": slo.id, "nf": slo.nf, "rate_kpps": slo.rate_kpps, "latency_us": slo.latency_us}
    return written if slo.batch is None else written | {"batch": slo.batch}
