"""Certificates: what an optimum writes is accepted, and every kind of tampering is found."""

import copy
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.inputs.catalogue import Cards
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.groups import Constraints
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, TestbedOracle
from placer.model.sla import Sla
from placer.optimal import Optimum
from placer.optimal.certificate import CERTIFIED_CONSTRAINTS, certificate, refuse_uncertifiable
from placer.optimal.trace_optimum import find_optimum
from placer.progress import Progress
from placer.run import RunRequest, run
from placer.verify import Completeness, Query, completeness_of, faults_of, read_certificate
from profiler.testbeds import open_testbed
from profiles import InputError, TrafficProfile, Workload
from tests.effort import examples
from tests.placer.commands.conftest import Ended, run_placer
from tests.placer.optimal.exhaustive import exhaustive_plan
from tests.placer.optimal.instances import CrowdingOracle, ErraticOracle, TableOracle, workload
from tests.placer.optimal.instances import faults_of as plan_faults_of
from tests.placer.verify.altered import altered
from tests.properties.test_optimal import Instance, instances
from tests.properties.test_plans import draw_fleet, draw_trace

CORES_OF = {"acl": 2, "nat": 2, "nids": 4}
KIND = NicKind(0, "bluefield-2", 8, CORES_OF)
PAIRS = TableOracle({"acl acl": [90, 90], "acl acl acl": [70] * 3, "acl acl acl acl": [60] * 4})
Tamper = Callable[[dict[str, Any]], object]


def arrivals_of(*promised: tuple[str, float]) -> list[Arrival]:
    """Arrivals of these NFs with these drops, one a second."""
    return [Arrival(str(i), float(i), workload(nf), Sla(max_drop=drop)) for i, (nf, drop) in enumerate(promised)]


FOUR = arrivals_of(("acl", 0.2), ("acl", 0.05), ("acl", 0.1), ("acl", 0.0))


def certified(arrivals: Sequence[Arrival], kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> dict[str, Any]:
    catalogue = Catalogue(tuple(kinds), (), (), specs=("simulated",) * len(kinds))
    return certificate(arrivals, catalogue, find_optimum(arrivals, catalogue, oracles, time_limit=5))


def faults_in(claims: dict[str, Any], folder: Path, oracles: Sequence[Oracle]) -> list[str]:
    """The faults that the verifier finds in a certificate file; kinds of NICs beyond the last one begin anew."""
    file = folder / "certificate.json"
    file.write_text(json.dumps(claims), encoding="utf-8")
    query: Query = lambda number, co_locations: oracles[number % len(oracles)].throughput(co_locations)  # noqa: E731
    return list(faults_of(read_certificate(file), query))


def test_an_honest_certificate_is_accepted(tmp_path: Path) -> None:
    """Two of four ACLs share a NIC, the prices prove that three NICs are needed, and nothing is wrong with it."""
    claims = certified(FOUR, [KIND], [PAIRS])
    assert (claims["plan"]["cost"], claims["bound"]["lower_bound"], claims["bound"]["over"]) == (3, 3, "co-locations")
    assert faults_in(claims, tmp_path, [PAIRS]) == []


@given(instances())
@settings(max_examples=examples(60))
def test_the_certificate_of_any_optimum_has_no_faults(
    tmp_path_factory: pytest.TempPathFactory, given: Instance
) -> None:
    """Limited and expensive NICs, random oracles, tenants left out: an honest certificate has no fault."""
    tenants, kinds, oracles = given
    arrivals = [Arrival(tenant.id, float(i), tenant.workload, tenant.sla) for i, tenant in enumerate(tenants)]
    assert faults_in(certified(arrivals, kinds, oracles), tmp_path_factory.mktemp("c"), oracles) == []


def share(claims: dict[str, Any]) -> None:
    """Moves the tenant of the last NIC to the first."""
    claims["plan"]["nics"][0]["tenants"] += claims["plan"]["nics"].pop()["tenants"]
    claims["plan"]["cost"] -= 1


def double_prices(claims: dict[str, Any]) -> None:
    for one in claims["bound"]["prices"]:
        one["price"] *= 2
    claims["bound"]["lower_bound"] *= 2


def cheaper_kind(claims: dict[str, Any]) -> None:
    """Offers the same NIC at a tenth of the cost, and leaves plan and bound as they are."""
    claims["fleet"].append({**claims["fleet"][0], "cost": 0.1})
    claims["bound"]["nic_prices"].append(0)


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (share, "plan: . gets"),  # an SLA is violated
        (lambda claims: claims["plan"]["nics"][0]["tenants"].pop(), "plan: . is placed 0 times"),
        (lambda claims: claims["plan"]["nics"][0]["tenants"].append("1"), "plan: 1 is placed 2 times"),
        (lambda claims: claims["plan"]["nics"][0]["tenants"].append("x"), "plan: x is placed 1 times"),
        (lambda claims: claims["plan"]["left_out"].append("1"), "plan: 1 is placed 2 times"),
        (lambda claims: claims["plan"].update(cost=2), "plan: its NICs cost 3, not 2"),
        (lambda claims: claims["plan"]["nics"][0].update(kind=1), "plan: there is no NIC kind 1"),
        (lambda claims: claims["fleet"][0].update(count=1), "plan: 3 NICs of kind 0 are used, there are 1"),
        (lambda claims: claims["fleet"][0].update(cores=2), "plan: acl . acl take more than 2 cores"),
        (lambda claims: claims["bound"].update(lower_bound=4), "bound: the prices prove 3, not 4"),
        (lambda claims: claims["bound"].update(lower_bound=3.1), "bound: 3.1 is above the cost"),
        (double_prices, "bound: .* are worth"),
        (lambda claims: claims["bound"].update(over="cores"), "bound: tenants worth"),
        (lambda claims: claims["bound"].update(over="faith"), "bound: 'faith' is neither"),
        (lambda claims: claims["bound"]["prices"].pop(), "bound: 1 classes of tenants have no price"),
        (lambda claims: claims["bound"].update(nic_prices=[0.5]), "bound: NIC kind 0 is not limited"),
        (lambda claims: claims["bound"].update(nic_prices=[-1]), "bound: every NIC kind needs one price"),
        (lambda claims: claims["tenants"][0].update(sla_drop=0.01), "bound: 1 classes of tenants have no price"),
        (lambda claims: claims["plan"]["nics"].append({"kind": 0, "tenants": []}), "plan: a NIC has no tenants"),
        (lambda claims: claims["plan"]["nics"].append({"kind": 0, "tenants": ["x"]}), "plan: x is placed 1 times"),
        (lambda claims: claims["tenants"].append({**claims["tenants"][0], "id": "x"}), "plan: x is placed 0 times"),
        (lambda claims: claims["fleet"][0].update(cost=0.5), "plan: its NICs cost 1.5, not 3"),
        (lambda claims: claims["fleet"].append({**claims["fleet"][0], "cost": 0.1}), "bound: every NIC kind needs one"),
        (cheaper_kind, "bound: .* are worth .*, NIC kind 1 costs 0.1"),
    ],
)  # fmt: skip
def test_tampering_is_found(tmp_path: Path, tamper: Tamper, message: str) -> None:
    """Whatever is changed in plan, bound, prices or SLAs, the verifier reports what is wrong."""
    claims = certified(FOUR, [KIND], [PAIRS])
    tamper(claims)
    faults = faults_in(claims, tmp_path, [PAIRS, PAIRS])
    assert any(re.match(message, fault) for fault in faults), faults


def test_the_bound_from_cores_is_checked_by_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not all co-locations can be queried, the prices hold for all tenants that fit the cores."""
    monkeypatch.setattr("placer.optimal.MOST_CO_LOCATIONS", 0)
    oracle = ErraticOracle(1)
    arrivals = arrivals_of(*[("acl", 0.1), ("nat", 0.2), ("nids", 0.3)] * 3)
    catalogue = Catalogue((KIND,), (), (), specs=("simulated",))
    claims = certificate(arrivals, catalogue, find_optimum(arrivals, catalogue, [oracle], time_limit=0.3))
    assert (claims["bound"]["over"], claims["bound"]["lower_bound"]) == ("cores", 3)
    assert faults_in(claims, tmp_path, [oracle]) == []
    claims["bound"]["prices"][0]["price"] += 0.1
    assert any("fit NIC kind 0" in fault for fault in faults_in(claims, tmp_path, [oracle]))


@pytest.mark.parametrize(
    ("part", "claims"),
    [
        (("plan", "cost"), "3"),
        (("plan", "cost"), True),
        (("plan", "cost"), None),
        (("plan", "cost"), float("nan")),
        (("plan", "cost"), float("inf")),
        (("plan", "nics", 0, "kind"), 0.5),
        (("plan", "nics", 0, "kind"), -1),
        (("plan", "nics", 0, "tenants"), "02"),  # text is a sequence, too
        (("plan", "nics", 0, "tenants", 0), 0),
        (("plan", "left_out"), {}),
        (("bound", "lower_bound"), float("nan")),
        (("bound", "prices", 0, "price"), float("-inf")),
        (("bound", "nic_prices", 0), "0"),
        (("fleet", 0, "count"), -0.5),
        (("fleet", 0, "cores"), 8.5),
        (("fleet", 0, "cores_of", "acl"), 0.9),
        (("fleet", 0, "cost"), -1),
        (("tenants", 0, "id"), ["0"]),
        (("tenants", 0, "id"), "1"),  # which another tenant has
        (("tenants", 0, "sla_drop"), 1.0),
        (("tenants", 0, "sla_drop"), float("nan")),
        (("tenants", 0, "sla_min_kpps"), 0.1),  # in addition to a drop
        (("tenants", 0, "traffic", "flows"), None),
        (("bound", "prices", 1, "sla_drop"), 0.2),  # whose price is in another entry
    ],
)
def test_values_without_meaning_are_rejected(tmp_path: Path, part: tuple[str | int, ...], claims: object) -> None:
    """Wrong types, fractions of NICs, NaN, and entries given twice: bad input, and no traceback."""
    whole = certified(FOUR, [KIND], [PAIRS])
    place: Any = whole
    for key in part[:-1]:
        place = place[key]
    place[part[-1]] = claims
    with pytest.raises(InputError, match=r"is not a certificate"):
        faults_in(whole, tmp_path, [PAIRS])


def completeness_in(claims: dict[str, Any], folder: Path, oracles: Sequence[Oracle]) -> Completeness:
    """What the verifier finds about tenants that a certificate leaves out."""
    file = folder / "certificate.json"
    file.write_text(json.dumps(claims), encoding="utf-8")
    return completeness_of(
        read_certificate(file), lambda number, co_locations: oracles[number].throughput(co_locations)
    )


@pytest.mark.parametrize(
    ("kpps", "count", "completeness"),
    [
        ([90, 90, 90], None, Completeness.ALL_PLACED),
        ([90, 90, 101], None, Completeness.PROVEN),  # no NF gets more than 100 kpps
        ([100, 100, 100], 2, Completeness.UNKNOWN),  # one NIC more would be enough
    ],
)
def test_completeness_of_a_plan_that_leaves_out_tenants(
    tmp_path: Path, kpps: list[float], count: int | None, completeness: Completeness
) -> None:
    """A plan is complete where all tenants are placed, or no NIC meets the SLA of those left out."""
    arrivals = [Arrival(str(i), 0.0, workload("acl"), Sla(min_kpps=one)) for i, one in enumerate(kpps)]
    claims = certified(arrivals, [replace(KIND, count=count)], [PAIRS])
    assert faults_in(claims, tmp_path, [PAIRS]) == []
    assert completeness_in(claims, tmp_path, [PAIRS]) is completeness


@given(instances())
@settings(max_examples=examples(60))
def test_a_complete_plan_places_the_most_tenants(tmp_path_factory: pytest.TempPathFactory, given: Instance) -> None:
    """Whatever tenants a plan leaves out, it is called complete only if exhaustive search places no more."""
    tenants, kinds, oracles = given
    arrivals = [Arrival(tenant.id, float(i), tenant.workload, tenant.sla) for i, tenant in enumerate(tenants)]
    claims = certified(arrivals, kinds, oracles)
    if claims["plan"]["nics"]:
        claims["plan"]["left_out"] += claims["plan"]["nics"].pop()["tenants"]
    known = completeness_in(claims, tmp_path_factory.mktemp("c"), oracles)
    fewest = len(exhaustive_plan(tenants, kinds, oracles).unplaced)
    if known.complete:
        assert len(claims["plan"]["left_out"]) == fewest
    if known is Completeness.REFUTED:
        assert len(claims["plan"]["left_out"]) > fewest


def test_an_older_certificate_is_accepted(tmp_path: Path) -> None:
    """Older certificates have the value `companies` where newer ones have `co-locations`."""
    claims = certified(FOUR, [KIND], [PAIRS])
    claims["bound"]["over"] = "companies"
    assert faults_in(claims, tmp_path, [PAIRS]) == []


@pytest.mark.long
@given(instances() | instances(CrowdingOracle), st.data())
@settings(max_examples=examples(150))
def test_an_accepted_certificate_is_true(
    tmp_path_factory: pytest.TempPathFactory, given: Instance, data: st.DataObject
) -> None:
    """Whatever was changed, a certificate without faults has a valid plan and a bound not above the optimum."""
    _, kinds, oracles = given
    arrivals = [Arrival(tenant.id, float(i), tenant.workload, tenant.sla) for i, tenant in enumerate(given[0])]
    claims: Any = certified(arrivals, kinds, oracles)
    for _ in range(data.draw(st.integers(1, 3))):
        claims = altered(data.draw, claims, ["t0", "t1", "nat"])
    folder = tmp_path_factory.mktemp("c")
    try:
        if faults_in(claims, folder, oracles):
            return
    except InputError:
        return
    claimed = [
        NicKind(i, "x", int(one["cores"]), one["cores_of"], one["count"] if one["count"] is None else int(one["count"]),
                float(one["cost"])) for i, one in enumerate(claims["fleet"])
    ]  # fmt: skip
    tenants = {
        one["id"]: Tenant(one["id"], Workload(one["nf"], TrafficProfile.from_mapping(one["traffic"])),
                          Sla(one.get("sla_drop"), one.get("sla_min_kpps"))) for one in claims["tenants"]
    }  # fmt: skip
    optimum = Optimum(
        nics=[
            (claimed[int(nic["kind"])], tuple(tenants[one] for one in nic["tenants"])) for nic in claims["plan"]["nics"]
        ],
        unplaced=[tenants[one] for one in claims["plan"]["left_out"]],
        cost=claims["plan"]["cost"],
        lower_bound=claims["bound"]["lower_bound"],
        nics_lower_bound=0,
        proven=False,
    )
    claimed_oracles = [oracles[i % len(oracles)] for i in range(len(claimed))]
    assert plan_faults_of(optimum, list(tenants.values()), claimed, claimed_oracles) == []
    best = exhaustive_plan(list(tenants.values()), claimed, claimed_oracles)
    if len(best.unplaced) == len(optimum.unplaced):
        assert optimum.lower_bound <= best.cost + 1e-9


def test_costs_need_not_be_round(tmp_path: Path) -> None:
    """Seven NICs at a third each, and a plan of three at a tenth each: sums are compared as floats."""
    thirds = replace(KIND, cost=1 / 3)
    assert faults_in(certified(arrivals_of(*[("acl", 0.0)] * 7), [thirds], [PAIRS]), tmp_path, [PAIRS]) == []
    tenths = replace(KIND, cost=0.1)
    catalogue = Catalogue((tenths,), (), (), specs=("simulated",))
    found = find_optimum(FOUR, catalogue, [PAIRS], time_limit=5)
    worse = replace(found, cost=0.4, proven=False)
    assert faults_in(certificate(FOUR, catalogue, worse.choose_better(found.plan, [tenths])), tmp_path, [PAIRS]) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"certificate": 2}',
        '{"certificate": NaN}',
        "[" * 100_000,
        '{"certificate": 1, "certificate": 1}',
    ],
)
def test_a_file_that_is_no_certificate_is_rejected(tmp_path: Path, text: str) -> None:
    """A file that is none, or of another version, is bad input."""
    file = tmp_path / "c.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"c\.json"):
        read_certificate(file)


def constrained_certificate(seed: int) -> tuple[dict[str, Any], Sequence[Oracle]]:
    """The certificate of a small trace with groups and pools, and no priorities or departures."""
    draw = random.Random(seed)
    fleet = draw_fleet(draw)
    trace = [replace(arrival, departure=None, priority=0) for arrival in draw_trace(draw, fleet)]
    return certified(trace, fleet.kinds, fleet.truth()), fleet.truth()


@given(st.integers(0, 10_000))
@settings(max_examples=examples(60))
def test_the_certificate_of_a_trace_with_groups_and_pools_has_no_faults(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    claims, oracles = constrained_certificate(seed)
    assert faults_in(claims, tmp_path_factory.mktemp("c"), oracles) == []


def test_a_pool_costs_a_whole_number_of_nics(tmp_path: Path) -> None:
    """One ACL in each of two pools: the prices of each prove a NIC, which is half of one for both together."""
    kinds = [replace(KIND, index=at, pool=pool) for at, pool in enumerate(("p1", "p2"))]
    pools = (Constraints((("pool", pool),)) for pool in ("p1", "p2"))
    pair = [replace(one, constraints=of) for one, of in zip(FOUR[:2], pools, strict=True)]
    claims = certified(pair, kinds, [PAIRS, PAIRS])
    assert claims["bound"]["lower_bound"] == claims["plan"]["cost"] == 2
    assert faults_in(claims, tmp_path, [PAIRS, PAIRS]) == []


@pytest.mark.parametrize("column", CERTIFIED_CONSTRAINTS)
def test_a_constraint_that_the_plan_violates_is_found(tmp_path: Path, column: str) -> None:
    """Two ACLs share a NIC, the others have one each; then two of them are said to be in a group, or in a pool, or one
    of the two to be of an owner whose NIC it is alone."""
    claims = certified(FOUR, [KIND], [PAIRS])
    shared = next(nic["tenants"] for nic in claims["plan"]["nics"] if len(nic["tenants"]) == 2)
    other = next(nic["tenants"] for nic in claims["plan"]["nics"] if len(nic["tenants"]) == 1)
    met = {"together": [shared[0], other[0]], "pool": shared[:1], "exclusive": shared[:1]}.get(column, shared)
    value = "1 g" if column.startswith("most") else "g"
    for tenant in claims["tenants"]:
        if tenant["id"] in met:
            tenant[column] = value
    if column == "pool":
        claims["bound"]["prices"].append({**claims["tenants"][int(met[0])], "price": 0.0})
    found = faults_in(claims, tmp_path, [PAIRS])
    expected = {
        "pool": f"{met[0]} is on a NIC of no pool",
        "exclusive": f"{', '.join(shared)} of several owners violate 'exclusive'",
    }.get(column, f"of group {value} violate '{column}'")
    assert any(expected in fault for fault in found), found


def test_a_limit_that_the_plan_keeps_is_no_fault_and_one_without_a_number_is_refused(tmp_path: Path) -> None:
    claims = certified(FOUR, [KIND], [PAIRS])
    for tenant in claims["tenants"]:
        tenant |= {"most_per_nic": "2 g", "most_per_domain": "2 g", "exclusive": "alice"}
    assert faults_in(claims, tmp_path, [PAIRS]) == []
    claims["tenants"][0]["most_per_nic"] = "g"
    with pytest.raises(InputError, match="most_per_nic 'g' does not begin with a number"):
        faults_in(claims, tmp_path, [PAIRS])


def test_a_trace_with_departures_has_no_certificate() -> None:
    """A trace with departures is refused before anything is placed."""
    with pytest.raises(InputError, match="departures"):
        refuse_uncertifiable([replace(FOUR[0], departure=9.0)])


def verify(claims: dict[str, Any], folder: Path, *arguments: object) -> Ended:
    """What comes of `placer verify` of a certificate with further arguments."""
    file = folder / "certificate.json"
    file.write_text(json.dumps(claims), encoding="utf-8")
    return run_placer("verify", file, *arguments)


@pytest.fixture(scope="module")
def simulated() -> dict[str, Any]:
    """The certificate of a dozen NFs on the simulated card."""
    with open_testbed("simulated") as testbed:
        described = testbed.describe()
        kind = NicKind(0, described.nic.model, described.nic.cores, {nf.name: nf.cores for nf in described.nfs})
        arrivals = [
            Arrival(f"{nf}-{i}", 0.0, Workload(nf, described.traffic), Sla(max_drop=0.1))
            for nf in ("ACL", "NAT", "NIDS")
            for i in range(4)
        ]
        return certified(arrivals, [kind], [TestbedOracle(testbed)])


def test_the_command_queries_the_testbed(simulated: dict[str, Any], tmp_path: Path) -> None:
    """On the simulated card an honest certificate ends with 0 and one that shaves a core off an NF with 1."""
    status, printed, _ = verify(simulated, tmp_path)
    assert status == 0 and "result: the plan is optimal" in printed
    assert "fleet: any number of bluefield-2 with 8 cores, at a cost of 1 each" in printed
    shaved = copy.deepcopy(simulated)
    shaved["fleet"][0]["cores_of"]["ACL"] -= 1
    status, _, faults = verify(shaved, tmp_path)
    assert status == 1 and "fleet: ACL takes" in faults


def test_a_plan_that_leaves_out_tenants_is_not_called_optimal(simulated: dict[str, Any], tmp_path: Path) -> None:
    """All tenants left out at a cost of 0, which is the bound of such plans: true, and not optimal."""
    empty = copy.deepcopy(simulated)
    empty["plan"] = {"cost": 0.0, "nics": [], "left_out": [tenant["id"] for tenant in simulated["tenants"]]}
    empty["bound"]["lower_bound"] = 0.0
    status, printed, _ = verify(empty, tmp_path)
    assert status == 0 and printed.splitlines()[-2:] == [
        "left out: 12 of 12 tenants; a tenant that is left out meets its SLA alone on a NIC that the plan does not use",
        "result: not proven optimal, more tenants may be placed",
    ]


def test_the_nic_model_is_compared_with_the_testbed(simulated: dict[str, Any], tmp_path: Path) -> None:
    """A certificate about another NIC model than the testbed's is refused."""
    other = copy.deepcopy(simulated)
    other["fleet"][0]["model"] = "bluefield-3"
    status, _, faults = verify(other, tmp_path)
    assert status == 1 and "fleet: NIC kind 0 is a bluefield-3, the NIC of the testbed" in faults


def test_a_certificate_starts_no_program(simulated: dict[str, Any], tmp_path: Path) -> None:
    """A file may name a command as its testbed, which is not run unless the user gives it, too."""
    meant = copy.deepcopy(simulated)
    meant["fleet"][0]["testbed"] = f"exec:touch {tmp_path / 'run'}"
    status, _, refused = verify(meant, tmp_path)
    assert status == 2 and "if you trust it: --testbed 'exec:touch" in refused
    assert not (tmp_path / "run").exists() and verify(meant, tmp_path, "--testbed", "simulated").status == 0
    assert verify(meant, tmp_path, *["--testbed", "simulated"] * 3).status == 2


def test_the_tenants_are_compared_with_the_trace(simulated: dict[str, Any], tmp_path: Path) -> None:
    """A certificate with fewer tenants or looser SLAs than the trace is rejected."""
    trace = tmp_path / "arrivals.csv"
    rows = [f"{nf}-{i},0,{nf},0.1" for nf in ("ACL", "NAT", "NIDS") for i in range(4)]
    trace.write_text("\n".join(["id,time,nf,sla_drop", *rows]))
    assert verify(simulated, tmp_path, "--arrivals", trace).status == 0
    trace.write_text("\n".join(["id,time,nf,sla_drop", "x,0,ACL,0.1", "ACL-0,0,ACL,0.05", *rows[2:]]))
    status, _, faults = verify(simulated, tmp_path, "--arrivals", trace)
    assert status == 1 and faults.splitlines() == [
        "trace: ACL-0 has another workload or another SLA there",
        "trace: ACL-1 is only in the certificate",
        "trace: x is only in the trace",
    ]


@pytest.mark.long
def test_a_predicted_optimum_is_checked_by_its_predictor(tmp_path: Path) -> None:
    """Without a testbed the models are queried; an unknown NF or a missing predictor is rejected."""
    trace = tmp_path / "arrivals.csv"
    trace.write_text(
        "\n".join(["id,time,nf,sla_drop", *(f"{nf}{i},0,{nf},0.1" for nf in ("ACL", "NAT") for i in (1, 2))])
    )
    request = RunRequest(str(trace), strategies=("optimal",), cards=Cards(testbed="none"), certificate="optimal")
    claims = json.loads(run(request, Progress(quiet=True)).certificate())
    assert (claims["predictor"], claims["fleet"][0]["testbed"]) == ("tomur", "none")
    for arguments in (["--arrivals", trace], ["--testbed", "simulated"]):
        status, printed, _ = verify(claims, tmp_path, *arguments)
        assert status == 0 and "by the throughputs of the predictor tomur" in printed
    status, _, faults = verify(claims, tmp_path, "--testbed", "simulated:contended")
    assert status == 1 and "the NIC of the predictor tomur" in faults
    claims["plan"]["nics"].append({"kind": 0, "tenants": [claims["plan"]["nics"][0]["tenants"].pop()]})
    assert verify(claims, tmp_path).status == 1
    claims["predictor"] = "oracle of Delphi"
    assert verify(claims, tmp_path).status == 2
