"""Whatever is changed in a certificate of a plan of chains: it is refused, or it is still true."""

import copy
import re
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.plan import RackPlan, Status
from placer.rack.strategies.optimal import exact_plan
from profiles import InputError
from tests.effort import examples
from tests.placer.rack import instances
from tests.placer.rack.small import ON_SERVER, ON_SWITCH, Json, chain, rack, server
from tests.placer.verify.altered import altered
from tests.placer.verify.chains.certified import certified, faults_in

Tamper = Callable[[Json], object]
NAMES = ["s0", "s1", "c0", "c1", "switch", "optimal", "feasible", "each"]
CHAINS = {
    "chains": [
        chain("a", "XXXY", t_min_mbps=1000, t_max_mbps=15_000, d_max_us=20),
        chain("b", "XXX", t_min_mbps=1000, t_max_mbps=20_000),
        chain("c", "Z", t_min_mbps=1000, t_max_mbps=60_000),
    ]
}
RACK = rack(
    {"X": ON_SERVER | ON_SWITCH, "Y": {"server": {"cycles": 1700, "replicable": False}}, "Z": ON_SERVER},
    server("s0", cores=6, nic_mbps=60_000),
    switch={"stages": 2, "blocks_per_stage": 2},
)
"""Three X in a row do not fit two stages, Y has one core at most, and the NIC carries little more than Z wants."""


@pytest.fixture(scope="module")
def honest() -> Json:
    """Has splits and a cut."""
    return certified(CHAINS, RACK)


def test_the_certificate_has_what_is_tampered_with(honest: Json) -> None:
    """Prices, splits, several subgroups: an optimum without faults."""
    assert honest["plan"]["status"] == "optimal" and faults_in(honest) == []


def chain_of(claims: Json, number: int = 0) -> Json:
    one: Json = claims["plan"]["chains"][number]
    return one


def leaf(claims: Json) -> Json:
    prices: Json = next(node["prices"] for node in claims["proof"]["tree"] if "prices" in node)
    return prices


def alone(claims: Json, prices: Json) -> None:
    claims["proof"]["tree"] = [{"prices": prices}]


def no_plan(claims: Json) -> None:
    claims["plan"] = {"status": "infeasible", "marginal_mbps": None, "bound_mbps": None, "chains": []}


def bound(claims: Json, mbps: float) -> None:
    claims["plan"]["bound_mbps"] = mbps


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (lambda claims: claims["plan"]["chains"].pop(), "plan: its chains are not those"),
        (lambda claims: chain_of(claims).update(rate_mbps=14_000.0), "plan: the marginal throughput is"),
        (lambda claims: chain_of(claims).update(rate_mbps=999), "plan: a: its rate is 999 Mbps, and t_min is 1000"),
        (lambda claims: chain_of(claims).update(rate_mbps=15_001), "plan: a: its rate is 15001 Mbps, and t_max"),
        (lambda claims: chain_of(claims).update(latency_us=3), "plan: a: its latency is"),
        (lambda claims: claims["chains"]["chains"][0].update(d_max_us=3), "plan: a: its latency is 4 us, and d_max"),
        (lambda claims: chain_of(claims)["placement"].pop("f0"), "plan: a: other NFs are placed than it has"),
        (lambda claims: chain_of(claims)["placement"].update(f3="switch"), "plan: a: f3 cannot run on switch"),
        (lambda claims: chain_of(claims)["placement"].update(f1="s1"), "plan: a: f1 is on s1, which the rack"),
        (lambda claims: chain_of(claims)["subgroups"].pop(), "plan: a: its subgroups are not"),
        (lambda claims: chain_of(claims)["subgroups"][0]["nfs"].append("f9"), "plan: a: the subgroup on s0 is not"),
        (lambda claims: chain_of(claims)["subgroups"][0].update(cores=0), "plan: a: .* has 0 cores"),
        (lambda claims: chain_of(claims)["subgroups"][0].update(cores=2), "plan: a: .* 2 cores, and only one may"),
        (lambda claims: claims["rack"]["servers"][0].update(cores=5), "plan: 6 cores of s0 are used, of 5"),
        (lambda claims: claims["rack"]["switch"].update(stages=0), "plan: 4 tables do not fit 0 stages"),
        (lambda claims: claims["plan"].update(chains=claims["plan"]["chains"] * 2), "plan: its chains are not those"),
        (lambda claims: claims["rack"].update(crossing_us=2), "plan: a: its latency is"),
        (lambda claims: claims["rack"]["nfs"]["X"]["server"].update(cycles=1701), "plan: a: its latency is"),
        (lambda claims: claims["rack"].update(overheads={"subgroup_cycles": 9000}), "plan: b: f1 on s0 carries"),
        (lambda claims: claims["rack"].update(overheads={"replica_cycles": 9000}), "plan: c: f0 on s0 carries"),
        (lambda claims: claims["rack"]["servers"][0].update(reserved_cores=1), "plan: 6 cores of s0 are used, of 5"),
        (lambda claims: claims["rack"]["servers"][0].update(nic_mbps=20_000), "plan: the NIC of s0 carries .* out"),
        (lambda claims: claims["rack"]["switch"].update(blocks_per_stage=0), "plan: 4 tables do not fit 2 stages"),
        (lambda claims: claims["rack"]["switch"].update(reserved_stages=2), "plan: 4 tables do not fit 0 stages"),
        (lambda claims: claims["rack"].update(overheads={"stages": 2}), "plan: 4 tables do not fit 0 stages"),
        (
            lambda claims: claims["rack"]["switch"].update(kind="openflow", table_order=["Y"]),
            "plan: b: its NFs on the switch do not follow the order",
        ),
        (lambda claims: claims["plan"].update(status="unknown"), "plan: the status is unknown, and there is a plan"),
        (no_plan, "bound: that there is no plan is not proven"),
        (lambda claims: bound(claims, claims["plan"]["bound_mbps"] * 0.999), "bound: the prices prove"),
        (lambda claims: bound(claims, claims["plan"]["bound_mbps"] * 1.001), "bound: the status is optimal, and the"),
        (lambda claims: bound(claims, 0), "bound: it is below the marginal throughput"),
        (lambda claims: claims.update(proof=None), "bound: there is no proof of it"),
        (lambda claims: bound(claims, None), "bound: the status is optimal, and there is no bound"),  # type: ignore[arg-type]
        (lambda claims: alone(claims, {"gain": 1}), "bound: the prices prove 89000 Mbps"),
        (lambda claims: alone(claims, {"gain": 0}), "bound: the prices of node 0 do not prove that no plan is left"),
        (lambda claims: alone(claims, {"gain": 0, "cores": {"s0": 1}}), "bound: the prices of node 0 do not prove"),
        (lambda claims: alone(claims, {"gain": 1, "cores": {"s0": -1}}), "bound: a price is negative"),
        (lambda claims: alone(claims, {"gain": 1, "cores": {"s9": 1}}), "bound: a price of s9, which is not one of"),
        (lambda claims: alone(claims, {"gain": 1, "cuts": {"9": 1}}), "bound: node 0 has a price of cut 9"),
        (lambda claims: alone(claims, {"gain": 1, "cuts": {"x": 1}}), "bound: node 0 has a price of cut x"),
        (lambda claims: claims["proof"]["cuts"].append([["a", "f0"]]), "bound: the tables of cut . fit the stages"),
        (lambda claims: claims["proof"]["cuts"].append([["z", "f0"]]), "bound: cut . is about z, which is no chain"),
        (lambda claims: claims["proof"]["cuts"].append([["a", "f9"]]), "bound: a has no NF f9"),
        (lambda claims: claims["proof"]["cuts"].append([]), "bound: cut . is no set of NFs"),
        (lambda claims: claims["proof"].update(servers="together", tree=[{}, {}]), "bound: where equal servers count"),
        (lambda claims: claims["proof"].update(tree=[{}]), "bound: node 0 is neither a leaf nor a split"),
        (lambda claims: claims["proof"].update(tree=[]), "bound: node 0 is not once in the tree"),
        (
            lambda claims: claims["proof"].update(
                tree=[{"split": {"chain": "a", "on": "s0", "at_most": 1}, "parts": [0, 0]}]
            ),
            "bound: node 0 is not once in the tree",
        ),
        (
            lambda claims: claims["proof"].update(
                tree=[
                    {"split": {"chain": "a", "on": "s0", "at_most": 1}, "parts": [1, 1]},
                    {"prices": {"gain": 1}},
                ]
            ),
            "bound: node 1 is not once in the tree",
        ),
        (
            lambda claims: claims["proof"].update(tree=[{"split": {"chain": "a", "on": "s0"}, "parts": [1, 2]}]),
            "bound: a split is by the cores of a device, or by the place of an NF",
        ),
        (
            lambda claims: claims["proof"].update(
                tree=[{"split": {"chain": "a", "on": "x", "at_most": 1}, "parts": [1, 2]}]
            ),
            "bound: a split of a by x, which are not both there",
        ),
    ],
)  # fmt: skip
def test_tampering_is_found(honest: Json, tamper: Tamper, message: str) -> None:
    """Whatever is changed in plan, bound, prices or tree, the check says what is wrong."""
    claims = copy.deepcopy(honest)
    tamper(claims)
    faults = faults_in(claims)
    assert any(re.match(message, fault) for fault in faults), faults


def best_of(chains: Json, on: Json) -> RackPlan:
    """The best plan, which tests/placer/rack/test_best_plan.py compares with an exhaustive search."""
    return exact_plan(chains_of(chains, "chains"), rack_of(on, "rack"))


def untrue(claims: Json) -> list[str]:
    """What is not true in a certificate, by the best plan: a bound, or a plan that is better than possible. That each
    limit of a plan is checked says the table above."""
    best, plan = best_of(claims["chains"], claims["rack"]), claims["plan"]
    planned = plan["status"] in ("optimal", "feasible")
    if not best.chains:
        assert best.status is Status.INFEASIBLE
        return ["a plan where none is possible"] if planned else []
    allowed = 2e-8 * max(1.0, sum(one.rate_mbps for one in best.chains))
    marginal, bound = best.marginal_mbps, plan["bound_mbps"]
    wrong = []
    if plan["status"] == "infeasible" or (bound is not None and bound < marginal - allowed):
        wrong.append(f"{plan['status']} with {bound}, and the best is {marginal}")
    if planned and plan["marginal_mbps"] > marginal + allowed:
        wrong.append(f"{plan['marginal_mbps']}, and the best is {marginal}")
    if plan["status"] == "optimal" and plan["marginal_mbps"] < marginal - 2 * allowed:
        wrong.append(f"optimal with {plan['marginal_mbps']}, and the best is {marginal}")
    return wrong


@cache
def known(generator: instances.Generator, seed: int) -> Json:
    return certified(*generator(seed))


@given(st.sampled_from([instances.everyday, instances.edges]), st.integers(0, 19), st.data())
@settings(max_examples=examples(40))
def test_an_accepted_certificate_is_true(generator: instances.Generator, seed: int, data: st.DataObject) -> None:
    """Whatever was changed, a certificate without faults has a plan within all limits and a bound that holds."""
    claims = copy.deepcopy(known(generator, seed))
    for _ in range(data.draw(st.integers(1, 2))):
        part = data.draw(st.sampled_from(["chains", "rack", "plan", "proof", "proof"]))
        claims[part] = altered(data.draw, claims[part], NAMES)
    try:
        faults = faults_in(claims)
    except InputError:
        return
    assert faults or untrue(claims) == []


@given(
    st.sampled_from([instances.everyday, instances.edges]),
    st.integers(0, 10**6),
    st.sampled_from(["each", "together"]),
    st.lists(st.sampled_from([0, 0, 0.01, 0.3, 1, 1.5, 40, 1000, 7000]), min_size=9, max_size=9),
)
@settings(max_examples=examples(40))
def test_no_prices_prove_less_than_the_best_plan_gains(
    generator: instances.Generator, seed: int, servers: str, prices: list[float]
) -> None:
    """Weak duality, for servers by themselves and together: a bound below the optimum is refused."""
    chains, on = generator(seed)
    best = best_of(chains, on)
    if not best.chains:
        return
    names = [server["name"] for server in on["servers"]]
    first = names[:1] if servers == "together" else names
    devices = [*first, *(server["smartnic"]["name"] for server in on["servers"] if "smartnic" in server)]
    devices = [name for name in devices if servers == "each" or name in (*first, "n0")]
    given = {
        "cores": dict(zip(devices, prices[:4], strict=False)),
        "nic_in": dict(zip(first, prices[4:6], strict=False)),
        "nic_out": dict(zip(first, prices[6:8], strict=False)),
        "blocks": 0 if on["switch"]["stages"] is None else prices[8],
    }
    plan: Json = {"status": "unknown", "marginal_mbps": None, "chains": []}
    bound = best.marginal_mbps - 1e-6 * max(1.0, sum(one.rate_mbps for one in best.chains))
    claims = {"certificate": 1, "kind": "chains", "chains": chains, "rack": on, "plan": plan | {"bound_mbps": bound}}
    claims["proof"] = {"servers": servers, "cuts": [], "tree": [{"prices": {"gain": 1} | given}]}
    assert any("the prices prove" in fault for fault in faults_in(claims))
    claims["plan"] = plan | {"status": "infeasible", "bound_mbps": None}
    claims["proof"] = {"servers": servers, "cuts": [], "tree": [{"prices": {"gain": 0} | given}]}
    assert any("do not prove that no plan is left" in fault for fault in faults_in(claims))
