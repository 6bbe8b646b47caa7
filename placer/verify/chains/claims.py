"""The claims of a certificate of a plan of chains, read from its file; numbers keep the value of their decimals."""

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from placer.rack.chain import Chain
from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.rack import Rack
from placer.verify.chains.table_fit import blocks_by_tables
from placer.verify.numbers import LARGEST_FILE, Exact, Index
from profiles import Fault, InputError
from profiles.text import read_text
from profiles.validation import word_fault

CHAINS_KIND = "chains"
MOST_NODES = 1_000_000
PLANNED_STATUSES = ("optimal", "feasible")


NfName = Annotated[list[str], Field(min_length=2, max_length=2)]  # of a chain, of its NF


class _Claim(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True, frozen=True)


def _share(value: object) -> object:
    """Whole cores, or parts of them as text."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**9:
        return Fraction(value)
    if isinstance(value, str) and re.fullmatch("[0-9]{1,9}/[1-9][0-9]{0,8}", value):
        return Fraction(value)
    raise ValueError(f"{value!r} is neither a whole number nor a fraction as text")


CoreShare = Annotated[Fraction, BeforeValidator(_share)]


class ClaimedSubgroup(_Claim):
    """Connected NFs on a device, with their cores; where a server has several, its socket, its NIC, and which cores."""

    on: str
    nfs: list[str]
    cores: CoreShare
    socket: Index | None = None
    nic: str | None = None
    on_cores: list[Index] | None = None


class ClaimedChain(_Claim):
    """Where a chain runs, and how fast."""

    name: str
    rate_mbps: Exact
    latency_us: Exact
    placement: dict[str, str]
    subgroups: list[ClaimedSubgroup]


TableRows = Annotated[tuple[Index, Index], BeforeValidator(lambda value: tuple(value))]


class ClaimedPlan(_Claim):
    """A plan, and what is claimed of it: no plan has a larger marginal throughput than `bound_mbps`.

    `packing`: where stages hold tables, by table its stages, and how many of its rows each holds.
    """

    status: Literal["optimal", "feasible", "infeasible", "unknown"]
    marginal_mbps: Exact | None
    bound_mbps: Exact | None
    chains: list[ClaimedChain]
    packing: dict[str, Annotated[list[TableRows], Field(min_length=1)]] | None = None


class LeafPrices(_Claim):
    """Mbps for a core, a Mbps through a NIC, a block of table memory; and for each NF of a cut on the switch. `gain` is
    1 where they bound the marginal throughput, 0 where they prove that a part of the plans is empty."""

    gain: Literal[0, 1]
    cores: dict[str, Exact] = {}
    nic_in: dict[str, Exact] = {}
    nic_out: dict[str, Exact] = {}
    blocks: Exact = Fraction(0)
    cuts: dict[str, Exact] = {}


class Split(_Claim):
    """Two parts of plans: a chain has at most so many cores on a device, or more; an NF is on a device, or is not."""

    chain: str
    on: str
    at_most: CoreShare | None = None
    nf: str | None = None


class Node(_Claim):
    """A node of the tree: prices, or a split and the numbers of its two parts; or the cores that are too few for the
    turns of all subgroups, whatever way each chain takes."""

    prices: LeafPrices | None = None
    overfull: str | None = None
    split: Split | None = None
    parts: Annotated[list[Index], Field(min_length=2, max_length=2)] | None = None


class Proof(_Claim):
    """The proof of the bound: NFs that do not fit the switch together, and a tree that begins with its root. `servers`
    is `each` where every server has prices of its own; `together` where equal servers count as one machine."""

    servers: Literal["each", "together"]
    cuts: list[list[NfName]] = []
    tree: list[Node] = Field(max_length=MOST_NODES)


class _Certificate(_Claim):
    certificate: Literal[1]
    kind: Literal["chains"]
    chains: object
    rack: object
    plan: ClaimedPlan
    proof: Proof | None
    stages: Literal["blocks", "tables"] = "blocks"


class ChainCertificate(NamedTuple):
    """The claims of a certificate: about chains and a rack, a plan, and the proof of its bound."""

    chains: tuple[Chain, ...]
    rack: Rack
    plan: ClaimedPlan
    proof: Proof | None


def read_chain_certificate(path: Path) -> ChainCertificate | None:
    """The certificate in a file; None for one that does not say that it is about chains. Raises InputError with every
    fault of one that does."""
    try:
        document = json.loads(read_text(path, LARGEST_FILE))
    except (ValueError, RecursionError):
        return None
    about_chains = isinstance(document, Mapping) and document.get("kind") == CHAINS_KIND
    return chain_certificate_of(document, str(path)) if about_chains else None


def chain_certificate_of(document: object, file: str) -> ChainCertificate:
    """The certificate in a parsed JSON document. Raises InputError with every fault, when the document is no such
    certificate."""
    try:
        claims = _Certificate.model_validate(document)
    except ValidationError as error:
        found = [(".".join(map(str, fault["loc"])), word_fault(fault)) for fault in error.errors(include_url=False)]
        raise InputError([Fault(file, None, place or None, message) for place, message in found]) from None
    chains, rack = chains_of(claims.chains, file), rack_of(claims.rack, file)
    used = sorted({nf.nf for chain in chains for nf in chain.nfs})
    if unknown := [nf for nf in used if nf not in rack.costs]:
        raise InputError.of(file, f"the rack has no NF {unknown[0]}", column="rack.nfs")
    if claims.stages == "tables":
        for nf in used:
            if rack.costs[nf].switch_blocks is not None and rack.costs[nf].switch_tables is None:
                raise InputError.of(file, f"the tables of {nf} on the switch are not listed", column="rack.nfs")
        rack = blocks_by_tables(rack)
    return ChainCertificate(chains, rack, claims.plan, claims.proof)
