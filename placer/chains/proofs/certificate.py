"""The certificate of a plan of chains, as JSON (docs/formats.md), which `placer verify` checks without this code."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from placer.chains.chain import Chain
from placer.chains.files.written_twins import written_chains, written_rack
from placer.chains.place import FEW_LAYOUTS, FEW_SERVERS, layouts_in_all
from placer.chains.plan import RackPlan, Status, answer
from placer.chains.proofs.proof_by_classes import proof_by_classes
from placer.chains.proofs.proof_by_splits import proof_by_splits
from placer.chains.proofs.shared_limits import BoundProof

VERSION = 1
KIND = "chains"
ENOUGH = 2e-9
"""Relative to the sum of rates: by how much a proof may miss a bound."""
KEYS = ("status", "marginal_mbps", "bound_mbps", "chains")


def certificate_of(plan: RackPlan, chains: Sequence[Chain], *, seconds: float = 60.0) -> Mapping[str, object]:
    """The certificate of a plan: its bound, or the one that can be proven.

    Parameters
    ----------
    seconds
        For the proof. After them, the bound may be weaker and the status less than those of the plan.
    """
    proof = _proof(plan, chains, seconds)
    claims: dict[str, object] = {key: value for key, value in answer(plan).items() if key in KEYS}
    claims.update(_claimed(plan, chains, proof))
    return {
        "certificate": VERSION,
        "kind": KIND,
        "chains": written_chains(chains),
        "rack": written_rack(plan.rack),
        "plan": claims,
        "proof": None if proof is None else proof.document,
    }


def weaker_claim(plan: RackPlan, certificate: Mapping[str, object]) -> str | None:
    """A sentence, where a certificate claims less than the plan; None where it claims as much."""
    claims = certificate["plan"]
    assert isinstance(claims, Mapping)
    status, bound = claims["status"], claims["bound_mbps"]
    if status == plan.status.value and bound in (None, plan.bound_mbps):
        return None
    proven = "no bound" if bound is None else f"a bound of {bound:,.1f} Mbps"
    return f"note: the certificate says {status}, and proves {proven}"


def _claimed(plan: RackPlan, chains: Sequence[Chain], proof: BoundProof | None) -> Mapping[str, object]:
    """Status and bound, as far as they are proven."""
    planned = Status.FEASIBLE if plan.chains else Status.UNKNOWN
    if proof is None:
        return {"status": planned.value, "bound_mbps": None}
    if proof.bound is None:
        return {"status": Status.INFEASIBLE.value, "bound_mbps": None}
    if plan.bound_mbps is not None and proof.bound <= plan.bound_mbps + _allowed(plan.bound_mbps, chains):
        return {"status": plan.status.value, "bound_mbps": plan.bound_mbps}
    return {"status": planned.value, "bound_mbps": proof.bound}


def _allowed(bound: float, chains: Sequence[Chain]) -> float:
    return ENOUGH * max(bound + sum(float(chain.slo.t_min_mbps) for chain in chains), 1.0)


def _proof(plan: RackPlan, chains: Sequence[Chain], seconds: float) -> BoundProof | None:
    """The best proof that was found in time; None without any."""
    enough = None
    if plan.status is not Status.INFEASIBLE:
        bound = plan.marginal_mbps if plan.bound_mbps is None else plan.bound_mbps
        enough = bound + _allowed(bound, chains)
    until = time.monotonic() + seconds
    found: list[BoundProof] = []
    few = len(plan.rack.servers) <= FEW_SERVERS
    try:
        if not few:
            found.append(proof_by_classes(chains, plan.rack, enough))
            if found[0].bound is None or (enough is not None and found[0].bound <= enough):
                return found[0]
        if few or layouts_in_all(chains, plan.rack) <= FEW_LAYOUTS:
            found.append(proof_by_splits(chains, plan.rack, enough, until - time.monotonic()))
    except (ArithmeticError, TimeoutError):
        pass  # the certificate claims what was proven until then, and the command says that it is less
    return min(found, key=lambda one: float("-inf") if one.bound is None else one.bound, default=None)
