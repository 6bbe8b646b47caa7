"""Certificates of plans of chains for tests: written, read and checked in this process."""

import json
from typing import Any

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.proofs.certificate import certificate_of
from placer.rack.strategies.optimal import best_plan
from placer.verify.chains import chain_certificate_of, chain_faults

Json = dict[str, Any]


def certified(chains: Json, rack: Json) -> Json:
    """The certificate of the best plan, as another program reads it."""
    read, on = chains_of(chains, "chains"), rack_of(rack, "rack")
    claims: Json = json.loads(json.dumps(certificate_of(best_plan(read, on), read)))
    return claims


def faults_in(claims: Json) -> list[str]:
    return list(chain_faults(chain_certificate_of(claims, "certificate")))


def wrong_with(chains: Json, rack: Json) -> list[str]:
    """What is wrong with the certificate of an instance: faults, or a bound that is not proven to be reached."""
    claims = certified(chains, rack)
    status = claims["plan"]["status"]
    return [*faults_in(claims), *([] if status in ("optimal", "infeasible") else [f"the status is {status}"])]
