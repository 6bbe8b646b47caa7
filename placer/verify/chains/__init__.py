"""Certificates of plans of chains, checked without the code that places chains.

    claims -> facts of each chain and the rack -> faults of the plan -> ways of each chain -> faults of the bound

The plan is checked against the model in exact fractions, the bound by weak duality.
"""

from collections.abc import Iterator

from placer.verify.chains.bound import bound_faults
from placer.verify.chains.claims import ChainCertificate, chain_certificate_of, read_chain_certificate
from placer.verify.chains.plan import plan_faults

__all__ = ["ChainCertificate", "chain_certificate_of", "chain_faults", "read_chain_certificate"]


def chain_faults(certificate: ChainCertificate) -> Iterator[str]:
    """Everything that is wrong with a plan and its bound, a sentence each."""
    yield from plan_faults(certificate)
    yield from bound_faults(certificate)
