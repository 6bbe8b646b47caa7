"""The verifier: checks a certificate of an optimum, and shares no code with what found it."""

from __future__ import annotations

from collections.abc import Iterator

from placer.verify.asking import Ask
from placer.verify.bound import bound_faults
from placer.verify.claims import Certificate, Class, read_certificate
from placer.verify.plan import fleet_faults, plan_faults, trace_faults
from placer.verify.witness import Witness

__all__ = [
    "Ask",
    "Certificate",
    "Class",
    "Company",
    "Witness",
    "faults_of",
    "fleet_faults",
    "read_certificate",
    "trace_faults",
]


def faults_of(certificate: Certificate, ask: Ask) -> Iterator[str]:
    """All that is wrong with the certificate, a sentence each."""
    yield from plan_faults(certificate, ask)
    yield from bound_faults(certificate, ask)
