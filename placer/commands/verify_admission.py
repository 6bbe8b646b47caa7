"""`placer verify FILE` of an admission to a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from profiles import Fault, InputError

if TYPE_CHECKING:
    from placer.verify.admission import AdmissionCase


def open_admission(file: Path, slos: Path | None, device: Path | None) -> AdmissionCase | None:
    """The admission in a certificate, or in an answer with the files it is about; None for another certificate.

    Raises
    ------
    InputError
        When a file is refused, or an answer comes without SLOs and device.
    """
    from placer.verify.admission import admission_case, is_answer, read_admission, read_json, read_slos

    if (certificate := read_admission(file)) is not None:
        return certificate
    if not is_answer(file):
        return None
    missing = [name for name, given in (("--slos", slos), ("--device", device)) if given is None]
    if slos is None or device is None:
        raise InputError([Fault(name, None, None, f"{file} is an answer alone, and needs it") for name in missing])
    return admission_case(read_json(device), read_slos(slos), read_json(file), str(file))


def verify_admission(case: AdmissionCase, slos: Path | None, device: Path | None) -> None:
    """Check an admission, print what is proven; the exit status is 1 if a check fails.

    Parameters
    ----------
    slos, device
        Files that the admission must be about; None: those in it are not compared.
    """
    from placer.verify.admission import admission_faults

    for fault in (faults := [*_others(case, slos, device), *admission_faults(case)]):
        typer.echo(fault, err=True)
    if faults:
        raise typer.Exit(1)
    typer.echo(_result(case))


def _others(case: AdmissionCase, slos: Path | None, device: Path | None) -> Iterator[str]:
    """SLOs that are missing in file or certificate, or differ; and another device."""
    from placer.verify.admission import device_of, read_json, read_slos, slos_of

    if device is not None and device_of(read_json(device), str(device)) != case.device:
        yield f"device: it is another one in {device}"
    if slos is None:
        return
    given = {one.id: one for one in slos_of(read_slos(slos), str(slos))}
    claimed = {one.id: one for one in case.slos}
    for name in [*given, *(name for name in claimed if name not in given)]:
        if name not in given or name not in claimed:
            yield f"slos: {name} is only in {slos if name in given else 'the certificate'}"
        elif given[name] != claimed[name]:
            yield f"slos: {name} is another SLO in {slos}"


def _result(case: AdmissionCase) -> str:
    """One line: what was checked. The bound has no proof in the file, and is said to be so."""
    answer, bus = case.answer, case.device.arbitration
    kept = f"the {len(answer.admitted):,} admitted of {len(case.slos):,} SLOs keep their latency on a {bus} bus"
    claim = "claimed optimal" if answer.proven else f"at most {answer.bound:,} are claimed possible"
    return f"result: {kept}; {claim}, which is not checked"
