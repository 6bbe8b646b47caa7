"""Servers with several sockets and NICs, and subgroups that take turns on a core."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.directory import routing_document
from placer.rack.compiler.within_limits import MOST_CORES, cap_cores
from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.files.plan_file import read_plan
from placer.rack.files.written_twins import plan_document, write_rack
from placer.rack.plan import SWITCH_SITE, Layout, Limit
from placer.rack.reasons.explain import LayoutQuestions
from placer.rack.reasons.infeasible import explain_infeasible
from placer.rack.replanning.replan import replan
from placer.rack.strategies import run_strategy
from placer.rack.strategies.optimal import best_plan
from placer.report.rack.page import page_of_rack_plan
from placer.report.rack.plan import rack_report
from profiles import InputError
from tests.placer.rack import instances
from tests.placer.rack.exhaustive import best_rates_within
from tests.placer.rack.small import ON_SERVER, ON_SWITCH, Json, chain, rack
from tests.placer.rack.test_best_plan import answered, marginal
from tests.placer.verify.chains.certified import certified, faults_in, wrong_with

NFS = {"X": ON_SERVER, "P": ON_SWITCH}


def several(*cores: int, **changes: Any) -> Json:
    """A server with a socket for each number of cores; a core carries 12,000 Mbps."""
    sockets = [{"cores": number} for number in cores]
    return {"name": "s0", "sockets": sockets, "clock_mhz": 1700, "nic_mbps": 40_000} | changes


def with_nics(server: Json, *sockets: int, mbps: int = 1000) -> Json:
    """The server with NICs at these sockets."""
    nics = [{"name": f"p{at}", "mbps": mbps, "socket": socket} for at, socket in enumerate(sockets)]
    return {key: value for key, value in server.items() if key != "nic_mbps"} | {"nics": nics}


def test_the_nic_of_another_socket_costs_cycles() -> None:
    """Beyond it, 1,700 cycles become 3,400; with a NIC at each socket, no chain needs the other one's."""
    two = [chain("a", "X"), chain("b", "X")]
    far = several(1, 1, cross_socket_cycles=1700)
    assert marginal(rack(NFS, far), *two) == pytest.approx(18_000)
    assert marginal(rack(NFS, several(1, 1)), *two) == pytest.approx(24_000)
    assert marginal(rack(NFS, with_nics(far, 0, 1, mbps=40_000)), *two) == pytest.approx(24_000)


def test_connected_nfs_are_at_one_socket_and_one_nic() -> None:
    """Two NFs share the cores of one socket though another one idles, unless packets leave the server in between."""
    on = rack(NFS, several(1, 1))
    assert marginal(on, chain("a", "XX")) == pytest.approx(6000)
    assert marginal(on, chain("a", "XPX")) == pytest.approx(12_000)
    nics = rack(NFS, with_nics(several(2), 0, 0))
    assert marginal(nics, chain("a", "X")) == pytest.approx(1000)
    assert marginal(nics, chain("a", "X"), chain("b", "X")) == pytest.approx(2000)


def shares(*n: int, cores: int = 1) -> tuple[Json, Json]:
    """Chains that need one of n turns on a core each; a rack with so many cores."""
    chains = [chain(f"c{at}", "X", t_min_mbps=12_000 / of) for at, of in enumerate(n)]
    return {"chains": chains}, rack(NFS, several(cores, shared_cores=True))


@pytest.mark.parametrize("nfs", [4, 6, 9])
@pytest.mark.long
def test_shared_cores_keep_the_time_limit(nfs: int) -> None:
    """There is a plan in time where turns on cores have too many options to compare, and where layouts are too many."""
    costs = {
        kind: {"server": {"cycles": 500 + 337 * at}, "switch": {"blocks": 1}} for at, kind in enumerate("ABCDEFGHI")
    }
    servers = [with_nics(several(8, 8, shared_cores=True), 0, 1, mbps=40_000) | {"name": name} for name in ("s0", "s1")]
    chains = {"chains": [chain(f"c{at}", "ABCDEFGHI"[:nfs], t_min_mbps=500 + 100 * at) for at in range(2)]}
    for number, server in enumerate(servers):
        server["nics"] = [nic | {"name": f"{nic['name']}{number}"} for nic in server["nics"]]
    on = rack(costs, *servers, switch={"stages": 12, "blocks_per_stage": 2})
    begin = time.process_time()
    plan = best_plan(chains_of(chains, "chains"), rack_of(on, "rack"), time_limit=1)
    assert plan.chains and time.process_time() - begin < 5


def test_subgroups_take_turns() -> None:
    """Three have a third of a core each, and the answer says which core."""
    chains, on = shares(3, 4, 5)
    assert marginal(on, *chains["chains"]) == pytest.approx(12_000 - 4000 - 3000 - 2400)
    groups = [placed["subgroups"][0] for placed in answered(chains, on)["chains"]]
    assert groups == [{"on": "s0", "nfs": ["f0"], "cores": "1/3", "socket": 0, "on_cores": [0]}] * 3


def test_turns_are_equal() -> None:
    """1/2, 1/3 and 1/7 add up to less than 1, but of three turns each is a third; the certificate proves it."""
    chains, on = shares(2, 3, 7)
    assert marginal(on, *chains["chains"]) is None
    assert wrong_with(chains, on) == []
    assert any("overfull" in node for node in certified(chains, on)["proof"]["tree"])
    more, wide = shares(2, 3, 7, cores=2)
    assert marginal(wide, *more["chains"]) is not None
    assert wrong_with(more, wide) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"on_cores": [1]}, "c1: f0 on s0 has 1/3 cores, which are not [1] of s0 socket 0"),
        ({"on_cores": None}, "c1: f0 on s0 has 1/3 cores, which are not []"),
        ({"cores": "1/2"}, "3 subgroups take turns on core 0 of s0, and they have 1/3, 1/2, 1/3 of it"),
        ({"cores": "2/3"}, "c1: f0 on s0 has 2/3 cores"),
        ({"cores": "0/3"}, "c1: f0 on s0 has 0 cores"),
        ({"cores": "1/4"}, "c1: f0 on s0 carries 3000 Mbps, not 4000"),
        ({"socket": 1}, "c1: the subgroup on s0 is not at one socket and one NIC"),
    ],
)
def test_a_plan_with_other_turns_is_refused(change: Json, fault: str) -> None:
    claims = certified(*shares(3, 3, 3))
    assert faults_in(claims) == []
    claims["plan"]["chains"][1]["subgroups"][0].update(change)
    found = faults_in(claims)
    assert any(message.removeprefix("plan: ").startswith(fault) for message in found), found


def test_cores_alone_say_which_socket() -> None:
    """Programs that write plans may leave out the socket where the numbers of the cores name it."""
    claims = certified({"chains": [chain("a", "X", t_min_mbps=20_000)]}, rack(NFS, several(1, 2)))
    assert claims["plan"]["chains"][0]["subgroups"][0].pop("socket") == 1
    assert faults_in(claims) == []


def test_room_that_is_there_is_no_proof() -> None:
    claims = certified(*shares(2, 3, 7, cores=2))
    claims["plan"] = {"status": "infeasible", "marginal_mbps": None, "bound_mbps": None, "chains": []}
    for name in ("s0 socket 0", "s9"):
        claims["proof"]["tree"] = [{"overfull": name}]
        assert faults_in(claims) == ["bound: the cores of node 0 may have room for all turns there"]


@pytest.mark.long
def test_changes_name_the_socket_and_the_nic() -> None:
    chains = {"chains": [chain("a", "X", t_min_mbps=13_000), chain("b", "X", t_min_mbps=500)]}
    read, on = chains_of(chains, "x"), rack_of(rack(NFS, with_nics(several(1, 1), 0, 1, mbps=14_000)), "x")
    found = explain_infeasible(best_plan(read, on), read)
    sufficient = {(change.limit, change.to) for change in found.changes if change.limit.kind == "cores"}
    assert sufficient == {(Limit("cores", "s0 socket 0"), 2), (Limit("cores", "s0 socket 1"), 2)}
    slow = rack_of(rack(NFS, with_nics(several(2, 2), 0, 1, mbps=12_000)), "x")
    widened = explain_infeasible(best_plan(read, slow), read).changes
    assert {change.limit.of for change in widened if change.limit.kind == "nic_mbps"} == {"s0 p0", "s0 p1"}


def test_a_plan_is_read_as_it_was_written_and_shown(tmp_path: Path) -> None:
    """The table and the page name sockets and NICs."""
    chains, on = shares(2, 2)
    read = chains_of(chains, "x")
    placed = best_plan(read, rack_of(on | {"servers": [with_nics(on["servers"][0], 0, 0, mbps=20_000)]}, "x"))
    assert rack_of(write_rack(placed.rack), "x") == placed.rack
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_document(placed, read)), encoding="utf-8")
    (group,) = read_plan(path).subgroups["c0"]
    assert (str(group.cores), group.on_cores, group.nic) == ("1/2", (0,), "p0")
    assert group.site(placed.rack) == placed.chains[0].layout.subgroups[0].device
    assert replace(group, on_cores=(9,)).site(placed.rack) is None
    text = rack_report(placed, "optimal", "table")
    assert "s0 socket 0 p0: f0 (1/2 core)" in text and "s0 p1" in text
    assert page_of_rack_plan(placed, "optimal", "x").sections


def refusal_of_compiling(chains: Json, on: Json, folder: Path) -> str:
    read = chains_of(chains, "x")
    path = folder / "plan.json"
    path.write_text(json.dumps(plan_document(best_plan(read, rack_of(on, "x")), read)), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        compile_rack(read_plan(path), "plan.json")
    return str(refused.value)


def test_programs_take_no_turns(tmp_path: Path) -> None:
    assert "f0 takes turns on a core of s0, and generated programs take none" in refusal_of_compiling(
        *shares(2, 2), tmp_path
    )


def test_a_compiled_rack_says_which_cores_and_nics(tmp_path: Path) -> None:
    """Cores of the second socket follow the three of the first one, of which one is reserved."""
    nfs = {"Monitor": ON_SERVER, "Match": ON_SWITCH}
    sockets = [{"cores": 3, "reserved_cores": 1}, {"cores": 2}]
    server = with_nics(several(cross_socket_cycles=9000), 1, mbps=40_000) | {"sockets": sockets}
    one = chain("a", "M", t_min_mbps=24_000) | {"nfs": [{"id": "f0", "nf": "Monitor"}]}
    read = chains_of({"chains": [one]}, "x")
    path = tmp_path / "plan.json"
    placed = best_plan(read, rack_of(rack(nfs, server), "x"))
    path.write_text(json.dumps(plan_document(placed, read)), encoding="utf-8")
    (compiled,) = routing_document(compile_rack(read_plan(path), "plan.json"))["servers"].values()  # type: ignore[attr-defined]
    assert (compiled["cores"], compiled["on_cores"], compiled["nics"]) == (2, [3, 4], ["p0", "p0"])


def test_compiled_servers_use_few_cores_of_all_sockets() -> None:
    capped = cap_cores(rack_of(rack(NFS, several(MOST_CORES - 2, 9)), "x"))
    assert [socket.usable_cores for socket in capped.servers[0].sockets] == [MOST_CORES - 2, 2]
    assert capped.pools[1].first_core == MOST_CORES - 2


@pytest.mark.long
def test_verdicts_on_layouts_agree_with_an_exhaustive_search() -> None:
    """Of the layouts on the same devices, at whatever sockets and NICs, the best one is as good as it says."""
    compared = 0
    for seed in (0, 1, 4, 5, 6, 8, 10, 11):
        chains, on = instances.sockets(seed)
        plan = best_plan(chains_of(chains, "chains"), rack_of(on, "rack"))
        for number, one in enumerate(plan.chains):
            found: dict[tuple[str, ...], float | None] = {places_of(one.layout): plan.marginal_mbps}
            for verdict in LayoutQuestions(plan, 60.0).explanation(number, 60).verdicts:
                assert verdict.proven
                before = found.get(places_of(verdict.layout))
                marginals = [rate for rate in (before, verdict.marginal_mbps) if rate is not None]
                found[places_of(verdict.layout)] = max(marginals, default=None)
            for places, marginal_mbps in found.items():
                forced = dict(zip((nf.id for nf in one.chain.nfs), places, strict=True))
                best = best_rates_within(chains, on, {one.chain.name: forced}, 0)
                assert (best is None) == (marginal_mbps is None), (seed, forced)
                assert best is None or marginal_mbps == pytest.approx(float(best.marginal), rel=1e-7, abs=1e-6)
                compared += 1
    assert compared > 30


def places_of(layout: Layout) -> tuple[str, ...]:
    """By NF the device, without its socket."""
    devices = layout.rack.devices
    return tuple("switch" if site == SWITCH_SITE else devices[site].name for site in layout.sites)


def test_who_cannot_plan_such_servers_says_so() -> None:
    chains, on = chains_of({"chains": [chain("a", "X")]}, "x"), rack_of(rack(NFS, several(1, 1)), "x")
    three = replace(on, servers=tuple(replace(on.servers[0], name=f"s{at}") for at in range(3)))
    for ask in (
        lambda: run_strategy("lemur", chains, on),
        lambda: replan(chains, on, {}),
        lambda: LayoutQuestions(best_plan(chains, three), 1),
    ):
        with pytest.raises(InputError, match="takes no server with several sockets or NICs, or with shared cores"):
            ask()
    one = replace(on.servers[0], sockets=on.servers[0].sockets[:1], cores=1)
    assert run_strategy("lemur", chains, replace(on, servers=(one,))).chains
