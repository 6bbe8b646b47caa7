"""What a certificate claims, read from its file; numbers keep the exact value of their decimals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from profiles import InputError, TrafficProfile, Workload

Key = TypeVar("Key")
Value = TypeVar("Value")

VERSION = 1
RELATIVE_SLACK = 1e-9
"""An SLA is kept by a throughput this share below it."""

LARGEST_EXPONENT = 100
"""Numbers of more digits than this, before or behind the point, are no costs, prices or throughputs."""


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

    model: str
    cores: int
    cores_of: Mapping[str, int]
    limit: int | None
    cost: Fraction

    def taken(self, co_location: Sequence[Workload]) -> int:
        """Cores that the company takes; more than there are where an NF is unknown."""
        return sum(self.cores_of.get(workload.nf, self.cores + 1) for workload in co_location)


class Certificate(NamedTuple):
    """What a certificate claims, and by whose throughputs: the testbeds', or those of a predictor at a risk."""

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
    predictor: str | None
    risk: float | None


def read_certificate(path: Path) -> Certificate:
    """The certificate in a file.

    Raises
    ------
    InputError
        When the file is no certificate: something is missing, of the wrong type, told twice, or no number.
    """
    try:
        told = json.loads(
            path.read_text(encoding="utf-8"),
            parse_float=Decimal,
            parse_constant=_no_number,
            object_pairs_hook=_told_once,
        )
        if told["certificate"] != VERSION:
            raise InputError.of(str(path), f"is of version {told['certificate']}, not {VERSION}", column="certificate")
        return _certificate(told)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError.of(str(path), f"is no certificate ({type(error).__name__}: {error})") from error


def _certificate(told: Mapping[str, Any]) -> Certificate:
    plan, bound = told["plan"], told["bound"]
    return Certificate(
        kinds=[_kind(kind) for kind in told["fleet"]],
        testbeds=[_text(kind["testbed"]) for kind in told["fleet"]],
        tenants=_told_once([(_text(tenant["id"]), _class(tenant)) for tenant in told["tenants"]]),
        cost=_number(plan["cost"]),
        nics=[(_whole(nic["kind"]), _texts(nic["tenants"])) for nic in plan["nics"]],
        left_out=_texts(plan["left_out"]),
        lower_bound=_number(bound["lower_bound"]),
        over=_text(bound["over"]),
        prices=_told_once([(_class(one), _number(one["price"])) for one in bound["prices"]]),
        nic_prices=[_number(price) for price in bound["nic_prices"]],
        predictor=None if told.get("predictor") is None else _text(told["predictor"]),
        risk=None if told.get("risk") is None else float(_number(told["risk"])),
    )


def _kind(told: Mapping[str, Any]) -> Kind:
    cost, count = _number(told["cost"]), told["count"]
    if cost < 0:
        raise ValueError("a cost is negative")
    cores_of = {nf: _whole(cores) for nf, cores in told["cores_of"].items()}
    return Kind(_text(told["model"]), _whole(told["cores"]), cores_of, None if count is None else _whole(count), cost)


def _class(told: Mapping[str, Any]) -> Class:
    traffic = {name: float(_number(value)) for name, value in told["traffic"].items()}
    drop, kpps = (None if told.get(key) is None else float(_number(told[key])) for key in ("sla_drop", "sla_min_kpps"))
    if (drop is None) == (kpps is None):
        raise ValueError("an SLA is a drop or a throughput")
    if (drop is not None and not 0 <= drop < 1) or (kpps is not None and kpps <= 0):
        raise ValueError("an SLA is a drop of 0 or more, below 1, or a throughput above 0")
    return Class(Workload(_text(told["nf"]), TrafficProfile.from_mapping(traffic)), drop, kpps)


def _number(told: object) -> Fraction:
    """The exact value of a number's decimals."""
    if isinstance(told, bool) or not isinstance(told, int | Decimal):
        raise TypeError(f"{told!r} is no number")
    if told and abs(Decimal(told).adjusted()) > LARGEST_EXPONENT:
        raise ValueError("a number is too large or too small")
    return Fraction(told)


def _whole(told: object) -> int:
    number = _number(told)
    if number < 0 or number.denominator != 1:
        raise ValueError(f"{told} is no whole number from 0")
    return int(number)


def _text(told: object) -> str:
    if not isinstance(told, str):
        raise TypeError(f"{told!r} is no text")
    return told


def _texts(told: object) -> list[str]:
    if not isinstance(told, list):
        raise TypeError(f"{told!r} is no list")
    return [_text(one) for one in told]


def _told_once(pairs: Sequence[tuple[Key, Value]]) -> dict[Key, Value]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ValueError(f"{twice} is told twice")
    return found


def _no_number(told: str) -> Decimal:
    raise ValueError(f"{told} is no number")
