"""The claims of a certificate, read from its file; numbers keep the exact value of their decimals."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from profiles import Fault, InputError, TrafficProfile, Workload
from profiles.text import read_text

Key = TypeVar("Key")
Value = TypeVar("Value")

CERTIFICATE_VERSION = 1
RELATIVE_SLACK = 1e-9  # a throughput this share below the SLA still meets it

LARGEST_EXPONENT = 100
"""Numbers of more digits than this, before or after the decimal point, are no costs, prices or throughputs."""

OPTIMAL, PLANNED = "optimal", "planned"  # what a certificate is of
LIKELIEST_VIOLATION = 0.5  # no tenant of a plan with a budget may have a larger probability of a violation

CO_LOCATIONS = "co-locations"
CORES_KEY = "cores"
LIMIT_KEYS = ("most_per_nic", "most_per_domain")  # groups whose value is a number and a name
GROUP_KEYS = ("spread", "apart", "together", *LIMIT_KEYS, "exclusive")
OLDER_KEYS = {"companies": CO_LOCATIONS}
LARGEST_FILE = 1_000_000_000


class TenantClass(NamedTuple):
    """Tenants with the same workload, the same SLA (a largest drop, or a smallest throughput in kpps) and the same
    pools, between bars; empty for none."""

    workload: Workload
    drop: float | None
    kpps: float | None
    pools: str = ""

    def least_kpps(self, solo: float) -> float:
        """The least throughput (kpps) that meets the SLA where running alone gives `solo`."""
        least = self.kpps if self.kpps is not None else (1.0 - (self.drop or 0.0)) * solo
        return least * (1.0 - RELATIVE_SLACK)

    def is_met(self, throughput: float, solo: float) -> bool:
        """Whether the throughput (kpps) meets the SLA where running alone gives `solo`."""
        return throughput >= self.least_kpps(solo)


class Kind(NamedTuple):
    model: str
    cores: int
    cores_of: Mapping[str, int]
    limit: int | None
    cost: Fraction
    pool: str = ""
    domain: str = ""

    def takes(self, tenant: TenantClass) -> bool:
        """Whether the pool of these NICs is one of the tenant's; a NIC without a pool takes tenants without."""
        return self.pool in tenant.pools.split("|")

    def count_cores(self, co_location: Sequence[Workload]) -> int:
        """Cores that the co-location takes; more than there are where an NF is unknown."""
        return sum(self.cores_of.get(workload.nf, self.cores + 1) for workload in co_location)


class Budget(NamedTuple):
    """What a plan that keeps a budget of SLA violations claims beyond others; of 100 tenants placed, or of one tenant.
    `limit` is the largest probability of a violation that a tenant may have; `times` are those of arrivals (s)."""

    pct: Fraction
    limit: float
    times: dict[str, float]
    expected_pct: float
    reserve_pct: float
    violation_price: Fraction


class Certificate(NamedTuple):
    """The claims of a certificate, by the throughputs of testbeds, or of a predictor at a risk.

    `groups`: by tenant, its group of each of `GROUP_KEYS` that it has.
    """

    kinds: list[Kind]
    testbeds: list[str]
    tenants: dict[str, TenantClass]
    groups: dict[str, dict[str, str]]
    cost: Fraction
    nics: list[tuple[int, list[str]]]
    left_out: list[str]
    lower_bound: Fraction
    over: str
    prices: dict[TenantClass, Fraction]
    nic_prices: list[Fraction]
    predictor: str | None
    risk: float | None
    budget: Budget | None = None


def read_certificate(path: Path) -> Certificate:
    """The certificate in a file. Raises InputError when the file is no certificate: something is missing, of the wrong
    type, given twice, or no number."""
    try:
        document = json.loads(
            read_text(path, LARGEST_FILE), parse_float=Decimal, parse_constant=_no_number, object_pairs_hook=_unique
        )
        if document["certificate"] != CERTIFICATE_VERSION:
            raise InputError.of(
                str(path), f"is of version {document['certificate']}, not {CERTIFICATE_VERSION}", column="certificate"
            )
        return _certificate(document)
    except json.JSONDecodeError as error:
        raise InputError([Fault(str(path), error.lineno, None, f"is not JSON: {error.msg}", None)]) from error
    except KeyError as error:
        raise InputError.of(str(path), f"is not a certificate: key {error} is missing") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError.of(str(path), f"is not a certificate: {error}") from error


def _certificate(document: Mapping[str, Any]) -> Certificate:
    plan, bound = document["plan"], document["bound"]
    over = _text(bound["over"])
    if (of := document.get("of", OPTIMAL)) not in (OPTIMAL, PLANNED):
        raise ValueError(f"it is of {of!r}, neither {OPTIMAL} nor {PLANNED}")
    risk = None if document.get("risk") is None else float(_number(document["risk"]))
    return Certificate(
        kinds=[_kind(kind) for kind in document["fleet"]],
        testbeds=[_text(kind["testbed"]) for kind in document["fleet"]],
        tenants=_unique([(_text(tenant["id"]), _class(tenant)) for tenant in document["tenants"]]),
        groups={tenant["id"]: _groups(tenant) for tenant in document["tenants"]},
        cost=_number(plan["cost"]),
        nics=[(_whole(nic["kind"]), _texts(nic["tenants"])) for nic in plan["nics"]],
        left_out=_texts(plan["left_out"]),
        lower_bound=_number(bound["lower_bound"]),
        over=OLDER_KEYS.get(over, over),
        prices=_unique([(_class(price), _number(price["price"])) for price in bound["prices"]]),
        nic_prices=[_number(price) for price in bound["nic_prices"]],
        predictor=None if document.get("predictor") is None else _text(document["predictor"]),
        risk=risk,
        budget=_budget(document, risk) if of == PLANNED else None,
    )


def _budget(document: Mapping[str, Any], risk: float | None) -> Budget:
    given, plan = document["budget_pct"], document["plan"]
    _text(document["predictor"])
    pct = Fraction(100) if given is None else _number(given)
    if not 0 < pct <= 100:
        raise ValueError("a budget is above 0 and at most 100")
    return Budget(
        pct,
        LIKELIEST_VIOLATION if given is not None or risk is None else risk,
        {_text(tenant["id"]): float(_number(tenant["time"])) for tenant in document["tenants"]},
        float(_number(plan["expected_violations_pct"])),
        float(_number(plan["reserve_pct"])),
        _number(document["bound"]["violation_price"]),
    )


def _kind(entry: Mapping[str, Any]) -> Kind:
    cost, count = _number(entry["cost"]), entry["count"]
    if cost < 0:
        raise ValueError("a cost is negative")
    cores_of = {nf: _whole(cores) for nf, cores in entry["cores_of"].items()}
    limit, places = None if count is None else _whole(count), [_text(entry.get(key, "")) for key in ("pool", "domain")]
    return Kind(_text(entry["model"]), _whole(entry["cores"]), cores_of, limit, cost, *places)


def _groups(tenant: Mapping[str, Any]) -> dict[str, str]:
    groups = {key: _text(tenant[key]) for key in GROUP_KEYS if key in tenant}
    for key in LIMIT_KEYS:
        if key in groups and not groups[key].partition(" ")[0].isdecimal():
            raise ValueError(f"{key} {groups[key]!r} does not begin with a number")
    return groups


def _class(entry: Mapping[str, Any]) -> TenantClass:
    traffic = {name: float(_number(value)) for name, value in entry["traffic"].items()}
    drop, kpps = (
        None if entry.get(key) is None else float(_number(entry[key])) for key in ("sla_drop", "sla_min_kpps")
    )
    if (drop is None) == (kpps is None):
        raise ValueError("an SLA is a drop or a throughput")
    if (drop is not None and not 0 <= drop < 1) or (kpps is not None and kpps <= 0):
        raise ValueError("an SLA is a drop of 0 or more, below 1, or a throughput above 0")
    workload = Workload(_text(entry["nf"]), TrafficProfile.from_mapping(traffic))
    return TenantClass(workload, drop, kpps, _text(entry.get("pool", "")))


def _number(value: object) -> Fraction:
    """The exact value of a number's decimals."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError(f"{value!r} is no number")
    if value and abs(Decimal(value).adjusted()) > LARGEST_EXPONENT:
        raise ValueError("a number is too large or too small")
    return Fraction(value)


def _whole(value: object) -> int:
    number = _number(value)
    if number < 0 or number.denominator != 1:
        raise ValueError(f"{value} is no whole number from 0")
    return int(number)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _texts(value: object) -> list[str]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return [_text(item) for item in value]


def _unique(pairs: Sequence[tuple[Key, Value]]) -> dict[Key, Value]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        raise ValueError(f"{twice} is given twice")
    return found


def _no_number(value: str) -> Decimal:
    raise ValueError(f"{value} is no number")
