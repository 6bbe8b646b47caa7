"""The verifier: checks a certificate of an optimum, and shares no code with the optimum's search.

    certificate file -> claims -> faults of fleet and trace -> faults of plan and bound -> whether the plan is complete

The plan is checked by querying the throughput of every co-location in it, the bound by weak duality. A plan is optimal
if its cost equals the bound and it is complete: no plan places more tenants.
"""

from __future__ import annotations

from collections.abc import Iterator

from placer.verify.bound import bound_faults
from placer.verify.certificate_file import Certificate, TenantClass, read_certificate
from placer.verify.completeness import Completeness, completeness_of
from placer.verify.plan import fleet_faults, plan_faults, trace_faults
from placer.verify.query import Query
from placer.verify.source import ThroughputSource

__all__ = [
    "Certificate",
    "Completeness",
    "Query",
    "TenantClass",
    "ThroughputSource",
    "completeness_of",
    "faults_of",
    "fleet_faults",
    "read_certificate",
    "trace_faults",
]


def faults_of(certificate: Certificate, query: Query) -> Iterator[str]:
    """Everything that is wrong with plan and bound, a sentence each."""
    yield from plan_faults(certificate, query)
    yield from bound_faults(certificate, query)
