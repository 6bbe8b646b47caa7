"""`placer verify CERTIFICATE` of a plan of chains."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from placer.verify.chains import ChainCertificate


def verify_chains(certificate: ChainCertificate, chains: Path | None, rack: Path | None) -> None:
    """Check plan and bound, print what is proven; the exit status is 1 if a check fails.

    Parameters
    ----------
    chains, rack
        Files that the certificate must be about; None: those in it are not compared.
    """
    from placer.verify.chains import chain_faults

    faults = [*_other_chains(certificate, chains), *_other_rack(certificate, rack)]
    faults = faults or list(chain_faults(certificate))
    for fault in faults:
        typer.echo(fault, err=True)
    if faults:
        raise typer.Exit(1)
    typer.echo(_proven(certificate))


def _other_chains(certificate: ChainCertificate, file: Path | None) -> Iterator[str]:
    """Chains, by name, that are missing in file or certificate, or differ; compared as JSON has them."""
    from placer.chains.files.chains_file import read_chains_file
    from placer.chains.files.json_twins import chains_of
    from placer.chains.files.written_twins import written_chains

    if file is None:
        return
    read = chains_of(_as_json(written_chains(read_chains_file(file).chains)), str(file))
    given, claimed = {one.name: one for one in read}, {one.name: one for one in certificate.chains}
    for name in [*given, *(name for name in claimed if name not in given)]:
        if name not in given or name not in claimed:
            yield f"chains: {name} is only in {file if name in given else 'the certificate'}"
        elif given[name] != claimed[name]:
            yield f"chains: {name} is another chain in {file}"


def _other_rack(certificate: ChainCertificate, file: Path | None) -> Iterator[str]:
    """Parts of the rack that differ."""
    from placer.chains.files.json_twins import rack_of
    from placer.chains.files.rack_file import read_rack_file
    from placer.chains.files.written_twins import written_rack

    if file is None:
        return
    given, claimed = rack_of(_as_json(written_rack(read_rack_file(file))), str(file)), certificate.rack
    parts = ("switch", "crossing_us", "overheads")
    differing = [part for part in parts if getattr(given, part) != getattr(claimed, part)]
    differing += _differing({one.name: one for one in given.servers}, {one.name: one for one in claimed.servers})
    differing += _differing(given.costs, claimed.costs)
    yield from (f"rack: {part} is another one in {file}" for part in differing)


def _differing(given: Mapping[str, object], claimed: Mapping[str, object]) -> list[str]:
    names = [*given, *(name for name in claimed if name not in given)]
    return [name for name in names if given.get(name) != claimed.get(name)]


def _as_json(written: Mapping[str, object]) -> object:
    return json.loads(json.dumps(written))


def _proven(certificate: ChainCertificate) -> str:
    """One line: what was checked."""
    plan = certificate.plan
    chains = f"{_number(len(certificate.chains), 'chain')} on {_number(len(certificate.rack.servers), 'server')}"
    if plan.status == "infeasible":
        return f"result: no plan of {chains} keeps all SLOs"
    at_most = "" if plan.bound_mbps is None else f"no plan gives more than {float(plan.bound_mbps):,.1f} Mbps"
    if plan.marginal_mbps is None:
        return f"result: the certificate has no plan of {chains}; {at_most or 'nothing is proven'}"
    kept = f"the plan of {chains} keeps all SLOs, with {float(plan.marginal_mbps):,.1f} Mbps beyond the least rates"
    if plan.status == "optimal":
        return f"result: {kept}, and is optimal: no plan gives more"
    return f"result: {kept}; {at_most or 'its bound is not proven'}"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
