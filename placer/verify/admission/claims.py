"""A device, SLOs and the answer of an admission, read from files or JSON documents."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from placer.verify.numbers import LARGEST_FILE, Exact, Index
from profiles import Fault, InputError
from profiles.text import read_text
from profiles.validation import word_fault

ADMISSION_KIND = "admission"
CERTIFICATE_KEYS = ("certificate", "kind", "device", "slos", "answer")

AtLeastZero = Annotated[Exact, Field(ge=0)]
AboveZero = Annotated[Exact, Field(gt=0)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Line = Annotated[list[AtLeastZero], Field(min_length=2, max_length=2)]  # slope and fixed part
One = TypeVar("One", bound="_Claim")


class _Claim(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True, frozen=True)


class ClaimedNf(_Claim):
    """An NF's class of transfer, its time on the CPU and its kernel: us per executor, us fixed."""

    transfer_class: str = Field(alias="class")
    pre_post_us: AtLeastZero
    kernel_us: Line


class ClaimedDevice(_Claim):
    """The model of a GPU and its bus; times in us."""

    sms: Count
    executors_per_sm: Count
    packets_per_executor: Count
    workers: Index
    arbitration: Literal["one-shot", "sporadic"]
    transfer_us: dict[str, Line]
    nfs: dict[str, ClaimedNf]
    sharing_us: dict[str, dict[str, AtLeastZero]] = {}

    def executors(self, packets: int) -> int:
        """Executors that a minibatch occupies."""
        return -(-packets // self.packets_per_executor)

    def transfer(self, nf: str, batch: int) -> Fraction:
        """Time of a batch on the bus, us."""
        slope, fixed = self.transfer_us[self.nfs[nf].transfer_class]
        return slope * batch + fixed


class ClaimedSlo(_Claim):
    """A request: packets of a rate, each to be done within a latency; with a batch that is fixed, or any."""

    id: str
    nf: str
    rate_kpps: AboveZero
    latency_us: Exact
    batch: Count | None = None

    def period_us(self, batch: int) -> Fraction:
        """Time between two batches."""
        return 1000 * batch / self.rate_kpps


class _Answered(_Claim):
    """Keys that the contract does not have are allowed, and not looked at."""

    model_config = ConfigDict(extra="ignore")


class ClaimedMinibatch(_Answered):
    """A part of a batch, and the SM that processes it."""

    sm: int
    packets: int


class ClaimedAdmitted(_Answered):
    id: str
    batch: int
    order: int
    minibatches: list[ClaimedMinibatch]


class ClaimedRejected(_Answered):
    """A rejected SLO, and the resource for which it is rejected."""

    id: str
    cause: Literal["batching", "pcie", "executors", "kernel", "workers"]


class ClaimedAnswer(_Answered):
    """Who is admitted, and a bound on how many can be."""

    admitted: list[ClaimedAdmitted]
    rejected: list[ClaimedRejected]
    bound: Index
    proven: bool
    seconds: AtLeastZero


class AdmissionCase(NamedTuple):
    """What was asked, and the answer."""

    device: ClaimedDevice
    slos: tuple[ClaimedSlo, ...]
    answer: ClaimedAnswer


def admission_case(device: object, slos: Sequence[object], answer: object, file: str = "admission") -> AdmissionCase:
    """A case from parsed JSON documents; `file` names them in messages. Raises InputError with every fault of a
    document."""
    claimed, requests = device_of(device, file), slos_of(slos, file)
    _refuse(
        Fault(file, None, f"slos.{number}.nf", f"the device has no NF {slo.nf!r}")
        for number, slo in enumerate(requests)
        if slo.nf not in claimed.nfs
    )
    return AdmissionCase(claimed, requests, _read_claim(ClaimedAnswer, answer, file, "answer"))


def device_of(document: object, file: str) -> ClaimedDevice:
    """The device in a parsed JSON document. Raises InputError with every fault."""
    device = _read_claim(ClaimedDevice, document, file, "device")
    _refuse(
        Fault(file, None, f"device.nfs.{nf}.class", f"{claimed.transfer_class!r} has no transfer_us")
        for nf, claimed in device.nfs.items()
        if claimed.transfer_class not in device.transfer_us
    )
    return device


def slos_of(documents: Sequence[object], file: str) -> tuple[ClaimedSlo, ...]:
    """The SLOs in parsed JSON documents. Raises InputError with every fault of one; or for ids given twice."""
    slos = tuple(_read_claim(ClaimedSlo, slo, file, f"slos.{number}") for number, slo in enumerate(documents))
    times = Counter(slo.id for slo in slos)
    _refuse(Fault(file, None, "slos", f"id {name!r} is given {many} times") for name, many in times.items() if many > 1)
    return slos


def read_admission(path: Path) -> AdmissionCase | None:
    """The case in a certificate of `placer admit`; None for a file that is none. Raises InputError with every fault of
    one that is."""
    document = _document(path)
    if not isinstance(document, Mapping) or document.get("kind") != ADMISSION_KIND:
        return None
    file = str(path)
    _refuse(Fault(file, None, key, "is missing") for key in CERTIFICATE_KEYS if key not in document)
    _refuse(Fault(file, None, key, "unknown key") for key in document if key not in CERTIFICATE_KEYS)
    if document["certificate"] != 1:
        raise InputError.of(file, f"is of version {document['certificate']!r}, not 1", column="certificate")
    if not isinstance(document["slos"], list):
        raise InputError.of(file, "is not a list", column="slos")
    return admission_case(document["device"], document["slos"], document["answer"], file)


def is_answer(path: Path) -> bool:
    """Whether a file has an answer of `placer admit --format json`, without device and SLOs."""
    document = _document(path)
    return isinstance(document, Mapping) and {"admitted", "rejected"} <= document.keys()


def read_json(path: Path) -> object:
    """The parsed JSON of a DEVICE or an ANSWER."""
    try:
        return json.loads(read_text(path, LARGEST_FILE))
    except (ValueError, RecursionError) as error:
        raise InputError.of(str(path), f"is not JSON: {error}") from error


def read_slos(path: Path) -> list[object]:
    """The parsed lines of an SLO file."""
    return list(_lines(path))


def _lines(path: Path) -> Iterator[object]:
    for number, line in enumerate(read_text(path, LARGEST_FILE).splitlines(), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError.of(str(path), f"is not JSON: {error}", line=number) from error


def _document(path: Path) -> Any:
    try:
        return json.loads(read_text(path, LARGEST_FILE))
    except (ValueError, RecursionError):
        return None


def _read_claim(kind: type[One], document: object, file: str, place: str) -> One:
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        found = [
            (".".join(map(str, (place, *fault["loc"]))), word_fault(fault)) for fault in error.errors(include_url=False)
        ]
        raise InputError([Fault(file, None, column, message) for column, message in found]) from None


def _refuse(faults: Iterator[Fault]) -> None:
    if found := list(faults):
        raise InputError(found)
