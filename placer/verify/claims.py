"""What a certificate claims, read from its file; numbers keep the exact value of their decimals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from profiles import InputError, TrafficProfile, Workload

VERSION = 1
RELATIVE_SLACK = 1e-9
"""An SLA is kept by a throughput this share below it."""


class Class(NamedTuple):
    """Tenants who run the same and were promised the same: a largest drop, or a least throughput (kpps)."""

    workload: Workload
    drop: float | None
    kpps: float | None

    def content(self, throughput: float, alone: float) -> bool:
        """Whether the throughput (kpps) is enough where alone there is `alone`."""
        least = self.kpps if self.kpps is not None else (1.0 - (self.drop or 0.0)) * alone
        return throughput >= least * (1.0 - RELATIVE_SLACK)


class Kind(NamedTuple):
    """A kind of NIC."""

    cores: int
    cores_of: Mapping[str, int]
    limit: int | None
    cost: Fraction

    def taken(self, company: Sequence[Workload]) -> int:
        """Cores that the company takes; more than there are where an NF is unknown."""
        return sum(self.cores_of.get(workload.nf, self.cores + 1) for workload in company)


class Certificate(NamedTuple):
    """What a certificate claims."""

    kinds: list[Kind]
    testbeds: list[str]
    tenants: dict[str, Class]
    cost: Fraction
    nics: list[tuple[int, list[str]]]
    left_out: list[str]
    lower_bound: Fraction
    over: str
    prices: dict[Class, Fraction]
    nic_prices: list[Fraction]


def read_certificate(path: Path) -> Certificate:
    """The certificate in a file.

    Raises
    ------
    InputError
        When the file is no certificate.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"), parse_float=_Number, parse_int=_Number)
        if told["certificate"] != VERSION:
            raise InputError.of(str(path), f"is of version {told['certificate']}, not {VERSION}", column="certificate")
        plan, bound = told["plan"], told["bound"]
        tenants = {tenant["id"]: _class(tenant) for tenant in told["tenants"]}
        if len(tenants) != len(told["tenants"]):
            raise InputError.of(str(path), "two tenants have one id", column="tenants")
        return Certificate(
            kinds=[_kind(kind) for kind in told["fleet"]],
            testbeds=[str(kind["testbed"]) for kind in told["fleet"]],
            tenants=tenants,
            cost=plan["cost"].exact,
            nics=[(int(nic["kind"]), list(nic["tenants"])) for nic in plan["nics"]],
            left_out=list(plan["left_out"]),
            lower_bound=bound["lower_bound"].exact,
            over=bound["over"],
            prices={_class(one): one["price"].exact for one in bound["prices"]},
            nic_prices=[price.exact for price in bound["nic_prices"]],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError.of(str(path), f"is no certificate ({type(error).__name__}: {error})") from error


class _Number(float):
    """A number with the exact value of its decimals."""

    def __new__(cls, text: str) -> _Number:
        number = super().__new__(cls, text)
        number.exact = Fraction(text)
        return number

    exact: Fraction


def _class(told: Mapping[str, Any]) -> Class:
    traffic = {name: float(value) for name, value in told["traffic"].items()}
    drop, kpps = told.get("sla_drop"), told.get("sla_min_kpps")
    if (drop is None) == (kpps is None):
        raise ValueError("an SLA is a drop or a throughput")
    return Class(
        Workload(told["nf"], TrafficProfile.from_mapping(traffic)),
        None if drop is None else float(drop),
        None if kpps is None else float(kpps),
    )


def _kind(told: Mapping[str, Any]) -> Kind:
    cost = told["cost"].exact
    count = told["count"]
    if cost < 0 or (count is not None and count < 0):
        raise ValueError("a cost or count is negative")
    cores_of = {nf: int(cores) for nf, cores in told["cores_of"].items()}
    return Kind(int(told["cores"]), cores_of, None if count is None else int(count), cost)
