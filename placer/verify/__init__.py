"""The verifier: checks a certificate of an optimum, or of a plan within a budget, and shares no code with the search.

    certificate file -> claims -> faults of fleet and trace -> faults of plan and bound -> whether the plan is complete

The plan is checked by querying the throughput of every co-location in it, the bound by weak duality. A plan is optimal
if its cost equals the bound and it is complete: no plan places more tenants. Plans that keep a budget of SLA violations
are checked by the error models of predictors (`budget.py`).
"""

from collections.abc import Iterator

from placer.verify.bound import bound_faults
from placer.verify.budget import budget_faults, places_most
from placer.verify.certificate_file import Budget, Certificate, TenantClass, read_certificate
from placer.verify.plan import Completeness, completeness_of, fleet_faults, plan_faults, trace_faults
from placer.verify.source import Query, ThroughputSource

__all__ = [
    "Budget",
    "Certificate",
    "Completeness",
    "Query",
    "TenantClass",
    "ThroughputSource",
    "budget_faults",
    "completeness_of",
    "faults_of",
    "fleet_faults",
    "places_most",
    "read_certificate",
    "trace_faults",
]


def faults_of(certificate: Certificate, query: Query) -> Iterator[str]:
    """Everything that is wrong with plan and bound, a sentence each."""
    yield from plan_faults(certificate, query)
    yield from bound_faults(certificate, query)
