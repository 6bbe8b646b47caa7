"""The fleet is what the cluster is: nodes that may take pods, and every pod that runs, counted where it runs."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from placer.fleet.service.kubernetes.api import Gone, KubernetesApi
from placer.fleet.service.kubernetes.watch import ENDS_PER_PAUSE, PAUSES_S
from tests.placer.fleet.service.kubernetes.toy_cluster import Cluster, ToyApi, cluster, eventually, node, pod, running
from tests.postgres import Cluster as Database

BARE = {"metadata": {"name": "p1", "namespace": "default", "uid": "uid-p1"}, "spec": {}}


def listed_again(one: Cluster, resource: str = "pods") -> None:
    """All watches were cut, and the next list is followed."""
    lists = one.api.lists[resource]
    one.api.change("nodes", "ADDED", node(f"other-{lists}", None), seen=False)
    eventually(lambda: one.api.lists[resource] > lists)


# Nodes


@pytest.mark.parametrize(
    ("kind", "changed", "reason"),
    [
        ("MODIFIED", node("n1", None), "the node has no label nf-placer.io/nic-model"),
        ("DELETED", node("n1"), "the node is deleted"),
        ("MODIFIED", node("n1", "other"),
            "the node joined as a toy-0, and its label nf-placer.io/nic-model is other now"),
        ("MODIFIED", node("n1", "toy-1"),
            "the node joined as a toy-0, and its label nf-placer.io/nic-model is toy-1 now"),
    ],
    ids=["no label", "deleted", "unknown model", "another model"],
)  # fmt: skip
@pytest.mark.parametrize("seen", [True, False], ids=["watched", "listed"])
@pytest.mark.parametrize("used", [True, False], ids=["used", "idle"])
def test_a_node_that_is_no_such_nic_any_more_takes_no_pods_until_it_is_one_again(
    tmp_path: Path, kind: str, changed: dict[str, Any], reason: str, seen: bool, used: bool
) -> None:
    """Its pods stay; neither filter nor bind gives it another, which the scheduler need not try to make room for."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        first, second = pod("p1"), pod("p2")
        one.add(first, second)
        if used:
            assert one.bind(first, "n1") == ""
        one.api.change("nodes", kind, changed, seen=seen)
        eventually(lambda: one.takes("n1", "n2") == ["n2"])
        assert one.filter(second, "n1")["FailedAndUnresolvableNodes"] == {"n1": reason}
        assert one.bind(second, "n1") == f"n1: {reason}" and one.places() == ({"p1": "n1"} if used else {})
        one.api.change("nodes", "MODIFIED", node("n1"), seen=seen)
        eventually(lambda: one.takes("n1") == ["n1"])
        assert one.bind(second, "n1") == ""


def test_a_node_without_its_label_is_out_of_service_once_its_last_pod_has_left_and_stays_so(tmp_path: Path) -> None:
    """Also after the node is deleted, and after a restart during which it lost its label."""
    api, first = ToyApi(), pod("p1")
    with cluster(tmp_path / "s.db", "n1", api=api) as one:
        one.add(first)
        assert one.bind(first, "n1") == ""
    api.change("nodes", "MODIFIED", node("n1", None), seen=False)
    with cluster(tmp_path / "s.db", api=api) as one:
        assert one.takes("n1") == []
        api.change("pods", "DELETED", first)
        eventually(lambda: one.service.client.get("/v1/nics/n1").json()["service"] == "failed")
        api.change("nodes", "DELETED", node("n1", None))
        eventually(lambda: one.why_not("n1") == "the node is deleted")


def test_a_node_whose_model_the_fleet_lacks_says_so_and_joins_with_one_that_it_has(tmp_path: Path) -> None:
    """Pods that wait for a node see the cause; an ordinary node says that it has no label."""
    with cluster(tmp_path / "s.db") as one:
        one.api.change("nodes", "ADDED", node("n1", "other"))
        one.api.change("nodes", "ADDED", node("web", None))
        eventually(lambda: one.why_not("web") == "the node has no label nf-placer.io/nic-model")
        assert one.why_not("n1") == "'other' is not a NIC model of this fleet; it is one of toy-0, toy-1"
        one.api.change("nodes", "MODIFIED", node("n1", "toy-1"))
        eventually(lambda: one.takes("n1") == ["n1"])


def test_a_node_may_have_the_name_of_a_nic_without_one(tmp_path: Path) -> None:
    """The second that joins is `nic-2`, the third has any other DNS name; a restart has them all."""
    names, api = ["nic-7", "nic-2", "nic-000.rack-3.example"], ToyApi()
    with cluster(tmp_path / "s.db", *names, api=api) as one:
        assert one.takes(*names) == names
        for number, name in enumerate(names):
            one.add(pod(f"p{number}"))
            assert one.bind(pod(f"p{number}"), name) == ""
    with cluster(tmp_path / "s.db", api=api) as one:
        assert one.places() == {f"p{number}": name for number, name in enumerate(names)}
        assert one.takes(*names) == names


def test_a_node_that_joins_while_nodes_are_listed_stays(tmp_path: Path) -> None:
    """Another agent that shares the fleet may have seen it first; the list is older, and does not have it."""
    with cluster(tmp_path / "s.db", "n1") as one:
        one.api.slow.add("nodes")
        listed_again(one, "nodes")
        assert one.service.event(event="join", nic="n2", nic_model="toy-0").json()["status"] == "joined"
        one.api.change("nodes", "ADDED", node("n2"))
        one.api.slow.clear()
        one.api.change("nodes", "ADDED", node("n3"))
        eventually(lambda: one.takes("n1", "n2", "n3") == ["n1", "n2", "n3"])
        assert one.log() == ["join n1", "join n2", "join n3"]


def test_a_cordoned_node_takes_no_pods_and_counts_those_that_run(tmp_path: Path) -> None:
    """Its pods stay, and one that another scheduler has bound there is counted, also where it is the first."""
    cordoned = {"spec": {"unschedulable": True}}
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        first, second, third = pod("p1"), pod("p2"), pod("p3")
        one.add(first, second, third)
        assert one.bind(first, "n1") == ""
        for name in ("n1", "n2"):
            one.api.change("nodes", "MODIFIED", {**node(name), **cordoned})
        eventually(lambda: one.takes("n1", "n2") == [])
        assert one.bind(second, "n1") == "n1: the NIC is cordoned"
        one.api.change("pods", "MODIFIED", running(second, "n1"))
        one.api.change("pods", "MODIFIED", running(third, "n2"))
        eventually(lambda: one.places() == {"p1": "n1", "p2": "n1", "p3": "n2"})
        for name in ("n1", "n2"):
            one.api.change("nodes", "MODIFIED", node(name))
        eventually(lambda: one.takes("n1", "n2") == ["n1", "n2"])


# Pods


@pytest.mark.long
def test_agents_that_share_a_fleet_follow_the_cluster_together(postgres: Database, tmp_path: Path) -> None:
    """Both see all changes: a list that one of them asked for before the other's bind says nothing of that pod."""
    address, api = postgres.database(), ToyApi()
    first, second = pod("p1"), running(pod("p2", "c", "0.01"), "n1")

    def is_so(agent: Cluster, places: dict[str, str], free: list[str]) -> bool:
        return agent.places() == places and agent.takes("n1", "n2") == free

    with cluster(address, "n1", "n2", api=api) as one, cluster(address, api=api) as other:
        api.slow.add("pods")
        listed_again(other)
        one.add(first)
        assert one.bind(first, "n1") == ""
        api.slow.clear()
        api.change("pods", "ADDED", second)
        api.change("nodes", "MODIFIED", node("n2", None))
        for agent in (one, other):
            eventually(partial(is_so, agent, {"p1": "n1", "p2": "n1"}, []))
        api.change("pods", "DELETED", first)
        api.change("nodes", "MODIFIED", node("n2"))
        for agent in (one, other):
            eventually(partial(is_so, agent, {"p2": "n1"}, ["n2"]))
        assert [line for line in one.log() if "p" in line.split()[1]] == ["arrive p1", "arrive p2", "depart p1"]


@pytest.mark.parametrize("resource", ["pods", "nodes"])
def test_a_pod_that_is_bound_while_a_list_is_on_its_way_stays_placed(tmp_path: Path, resource: str) -> None:
    """The list does not have it, as it came later; one that is deleted meanwhile leaves."""
    with cluster(tmp_path / "s.db", "n1") as one:
        kept, gone = pod("kept"), pod("gone")
        one.api.slow.add(resource)
        listed_again(one, resource)
        one.add(kept, gone)
        assert one.bind(kept, "n1") == one.bind(gone, "n1") == ""
        one.api.change("pods", "DELETED", gone)
        one.api.slow.clear()
        eventually(lambda: one.places() == {"kept": "n1"})
        listed_again(one)
        listed_again(one)
        assert one.log() == ["join n1", "arrive kept", "arrive gone", "depart gone"]


def test_a_pod_that_runs_is_counted_whatever_the_models_say_of_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`c` loses 6 % beside `d` and is to lose less: both run there, nothing comes to them, and the log says why."""
    with cluster(tmp_path / "s.db", "n1") as one:
        first = pod("p1")
        one.add(first)
        assert one.bind(first, "n1") == ""
        one.api.change("pods", "ADDED", running(pod("p2", "c", "0.01"), "n1"))
        eventually(lambda: one.places() == {"p1": "n1", "p2": "n1"})
        assert one.takes("n1") == [] and one.uncounted() == 0
        (row,) = [row for row in one.service.log() if "kind" in row["event"]]
        assert row["event"]["nic"] == "n1"
    assert "a pod runs where it would not be placed" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (pod("p3"), "n1: too few free cores"),
        (pod("p3", "x"), "nf: 'x' is not profiled"),
        (pod("p3", flow="7"), "nf-placer.io/flow is unknown"),
    ],
    ids=["cores", "unknown NF", "unreadable"],
)
@pytest.mark.parametrize("seen", [True, False], ids=["watched", "listed"])
def test_a_node_with_a_pod_that_cannot_be_counted_takes_no_other_until_the_pod_is_gone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], refused: dict[str, Any], reason: str, seen: bool
) -> None:
    """Reason, metric and log name it; the log does once, however often pods are listed."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        for number in (1, 2):
            one.add(pod(f"p{number}"))
            assert one.bind(pod(f"p{number}"), "n1") == ""
        waiting = pod("p4", "a")
        one.add(waiting)
        assert one.takes("n1") == ["n1"]
        one.api.change("pods", "ADDED", running(refused, "n1"), seen=seen)
        eventually(lambda: one.uncounted() == 1)
        found = one.filter(waiting, "n1", "n2")
        assert found["NodeNames"] == ["n2"]
        assert found["FailedNodes"]["n1"].startswith(f"default/p3 runs there and cannot be counted: {reason}")
        assert "default/p3" in one.bind(waiting, "n1")
        listed_again(one)
        listed_again(one)
        one.api.change("pods", "DELETED", refused, seen=seen)
        eventually(lambda: one.takes("n1") == ["n1"])
        assert one.uncounted() == 0 and one.bind(waiting, "n1") == ""
    assert capfd.readouterr().err.count("a pod that runs cannot be counted") == 1


def test_a_pod_without_room_is_counted_as_soon_as_another_has_left(tmp_path: Path) -> None:
    """Three `d` of three cores run on eight; a pod that has ended makes room as one that is deleted does."""
    with cluster(tmp_path / "s.db", "n1") as one:
        for number in range(3):
            one.api.change("pods", "ADDED", running(pod(f"p{number}"), "n1"))
        eventually(lambda: one.uncounted() == 1)
        one.api.change("pods", "MODIFIED", running(pod("p0"), "n1", "Failed"))
        eventually(lambda: one.uncounted() == 0)
        assert one.places() == {"p1": "n1", "p2": "n1"}


def test_a_pod_is_counted_once_another_takes_less_and_in_nobodys_way_once_it_is_no_nf(tmp_path: Path) -> None:
    """The next list, minutes later, is not waited for; nor a restart."""
    with cluster(tmp_path / "s.db", "n1") as one:
        for number in range(3):
            one.add(running(pod(f"p{number}"), "n1"))
        eventually(lambda: one.uncounted() == 1)
        one.api.change("pods", "MODIFIED", running(pod("p0", "a"), "n1"))
        eventually(lambda: one.uncounted() == 0 and len(one.places()) == 3)
        one.add(running(pod("p3", "x"), "n1"))
        eventually(lambda: one.uncounted() == 1)
        one.api.change("pods", "MODIFIED", {**BARE, "metadata": {**BARE["metadata"], "name": "p3", "uid": "uid-p3"}})
        eventually(lambda: one.uncounted() == 0)


@pytest.mark.parametrize(
    "before", [[], [node("n1", None)], [node("n1", "other")]], ids=["no node", "no label", "model"]
)
def test_a_pod_on_a_node_that_is_no_nic_yet_waits_until_it_joins(tmp_path: Path, before: list[dict[str, Any]]) -> None:
    """Events of pods may come first, as they are watched apart from nodes."""
    with cluster(tmp_path / "s.db") as one:
        for found in before:
            one.api.change("nodes", "ADDED", found)
        one.api.change("pods", "ADDED", running(pod("p1"), "n1"))
        eventually(lambda: one.uncounted() == 1)
        one.api.change("nodes", "ADDED", node("n1"))
        eventually(lambda: one.uncounted() == 0)
        assert one.places() == {"p1": "n1"}


def test_a_pod_that_another_scheduler_has_bound_elsewhere_is_counted_there(tmp_path: Path) -> None:
    """The bind of ours was not answered; a place that the fleet gave without asking the cluster is taken back, too."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        first = pod("p1")
        one.add(first)
        assert one.service.event(event="arrive", id="pod/default/p1/uid-p1", nf="d", sla_drop=0.9, nic="n1").json()[
            "ok"
        ]
        one.api.change("pods", "MODIFIED", running(first, "n2"))
        eventually(lambda: one.places() == {"p1": "n2"})
        assert one.service.event(event="fail", nic="n2").json()["moves"][0]["to"] == "n1"
        one.api.change("nodes", "MODIFIED", node("n2"))
        listed_again(one)
        eventually(lambda: one.places() == {"p1": "n2"})


def test_a_pod_that_a_failed_nic_leaves_in_the_queue_is_counted_again_or_gone(tmp_path: Path) -> None:
    """A fleet with one node has no other place for both; one of them was deleted meanwhile."""
    with cluster(tmp_path / "s.db", "n1") as one:
        for number in (1, 2):
            one.add(pod(f"p{number}"))
            assert one.bind(pod(f"p{number}"), "n1") == ""
        one.api.slow |= {"nodes", "pods"}
        listed_again(one)
        assert len(one.service.event(event="fail", nic="n1").json()["queued"]) == 2
        one.api.change("pods", "DELETED", pod("p2"), seen=False)
        one.api.slow.clear()
        eventually(lambda: one.places() == {"p1": "n1"})
        assert not one.service.engine.waiting


@pytest.mark.parametrize(
    ("kind", "changed", "stays"),
    [
        ("MODIFIED", running(pod("p1"), "n1", "Succeeded"), False),
        ("MODIFIED", running(pod("p1"), "n1", "Failed"), False),
        ("MODIFIED", running(pod("p1"), "n1", "Unknown"), True),
        ("MODIFIED", {**BARE, "spec": {"nodeName": "n1"}}, True),
        ("DELETED", BARE, False),
    ],
    ids=["succeeded", "failed", "unknown", "without annotations", "deleted without annotations"],
)
def test_a_place_is_free_when_the_pod_has_ended_and_not_before(
    tmp_path: Path, kind: str, changed: dict[str, Any], stays: bool
) -> None:
    """A pod that is being deleted runs until it is gone; annotations that were removed change nothing."""
    with cluster(tmp_path / "s.db", "n1") as one:
        first, second = pod("p1"), pod("p2")
        one.add(first, second)
        assert one.bind(first, "n1") == one.bind(second, "n1") == ""
        leaving = running(first, "n1")
        leaving["metadata"] = {**first["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}
        one.api.change("pods", "MODIFIED", leaving)
        one.api.change("pods", kind, changed)
        one.api.change("pods", "DELETED", second)
        eventually(lambda: "p2" not in one.places())
        assert one.places() == ({"p1": "n1"} if stays else {})


def test_a_pod_that_is_made_again_is_another(tmp_path: Path) -> None:
    """It has the name of the first and another uid: what happens to one does not touch the other."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        first, again = pod("p1"), pod("p1", uid="again")
        one.add(first)
        assert one.bind(first, "n1") == ""
        one.api.change("pods", "DELETED", first, seen=False)
        one.add(again)
        eventually(lambda: one.places() == {})
        assert one.bind(first, "n2") == "there is no such pod any more" and one.bind(again, "n2") == ""
        one.api.change("pods", "DELETED", first, version=1)
        listed_again(one)
        assert one.places() == {"p1": "n2"}


def test_what_comes_after_a_newer_change_of_the_same_object_is_not_followed(tmp_path: Path) -> None:
    """A pod that was deleted does not come back, and a node that lost its label is no NIC again."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        first = pod("p1")
        one.add(first)
        assert one.bind(first, "n1") == ""
        one.api.change("nodes", "MODIFIED", node("n2", None))
        one.api.change("nodes", "MODIFIED", node("n2"), version=1)
        one.api.change("pods", "DELETED", first)
        one.api.change("pods", "MODIFIED", running(first, "n1"), version=2)
        one.api.change("nodes", "ADDED", node("n3"))
        one.api.change("pods", "ADDED", running(pod("p2"), "n3"))
        eventually(lambda: one.places() == {"p2": "n3"})
        assert one.takes("n1", "n2", "n3") == ["n1", "n3"]


def test_what_cannot_be_read_does_not_end_the_watch(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is logged, and the next list is followed."""
    with cluster(tmp_path / "s.db", "n1") as one:
        one.api.history.append(("nodes", "MODIFIED", {"metadata": None}))
        eventually(lambda: one.api.lists["nodes"] >= 3)
        one.api.change("nodes", "ADDED", node("n2"))
        eventually(lambda: one.takes("n2") == ["n2"])
    assert "the cluster cannot be followed" in capfd.readouterr().err


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "ended"])
def test_watches_that_end_at_once_are_not_begun_again_at_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], gone: bool
) -> None:
    """Lists of a whole cluster one after the other would be a load for the API server; the log says that they fail."""

    class CutApi(ToyApi):
        async def changes(self, resource: str, version: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
            await asyncio.sleep(0)
            if gone:
                raise Gone
            for change in ():
                yield change

    with cluster(tmp_path / "s.db", "n1", api=CutApi()) as one:
        time.sleep((ENDS_PER_PAUSE + 1) * PAUSES_S[0])
        one.api.change("nodes", "ADDED", node("n2"))
        eventually(lambda: one.takes("n2") == ["n2"])
        assert max(one.api.lists.values()) < 2 * ENDS_PER_PAUSE
    assert "the cluster cannot be followed" in capfd.readouterr().err


@pytest.mark.anyio
async def test_a_line_of_a_watch_ends_where_json_lines_do() -> None:
    """A pod of anybody may have other line breaks of Unicode in its annotations, which Go writes as they are."""
    lines = [{"type": "ADDED", "object": {"a": text}} for text in ("x\x85y", "\u2028", "z")]
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines) + '{"type": "ADD'
    api = KubernetesApi("http://127.0.0.1")
    api._client = httpx.AsyncClient(
        base_url="http://127.0.0.1",
        transport=httpx.MockTransport(lambda _: httpx.Response(200, content=text.encode())),
    )
    assert [line async for line in api.changes("pods", "1")] == [(line["type"], line["object"]) for line in lines]


def labelled(name: str, pool: str = "", domain: str = "", zone: str = "") -> dict[str, Any]:
    """A node in a pool, a domain and a zone."""
    given = {"nf-placer.io/pool": pool, "nf-placer.io/domain": domain, "topology.kubernetes.io/zone": zone}
    found = node(name)
    found["metadata"]["labels"] |= {label: value for label, value in given.items() if value}
    return found


def test_labels_of_nodes_are_pools_and_domains_and_annotations_of_pods_are_constraints(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The label of ours comes before the zone; both hold after a restart, and change on a node without pods. That one
    with pods keeps its own is logged once."""
    api = ToyApi()
    for of in (labelled("n1", "edge", "r1", "z1"), labelled("n2", "edge", "", "z1"), labelled("n3", "", "r1")):
        api.change("nodes", "ADDED", of)
    pods = [pod(f"p{number}", pool="edge", apart="web") for number in (1, 2, 3)]
    with cluster(tmp_path / "s.db", api=api) as one:
        one.add(*pods)
        assert one.filter(pods[0], "n1", "n2", "n3")["NodeNames"] == ["n1", "n2"]
        assert one.bind(pods[0], "n1") == one.bind(pods[1], "n2") == ""
    with cluster(tmp_path / "s.db", api=api) as one:
        found = one.filter(pods[2], "n1", "n2", "n3")
        text = "apart: no two of the group in one domain; it would meet pod/default/"
        assert found["FailedNodes"] == {"n1": f"{text}p1/uid-p1", "n2": f"{text}p2/uid-p2"}
        assert [*found["FailedAndUnresolvableNodes"]] == ["n3"]
        assert one.bind(pods[2], "n3").startswith("n3: pool: only on NICs of one of these pools")
        api.change("nodes", "MODIFIED", labelled("n3", "edge", "r2"))
        eventually(lambda: one.filter(pods[2], "n3")["NodeNames"] == ["n3"])
        for _ in range(3):
            api.change("nodes", "MODIFIED", labelled("n1", "edge", "r9"))
        api.change("nodes", "ADDED", labelled("n4", "edge", "r4"))
        eventually(lambda: one.filter(pods[2], "n4")["NodeNames"] == ["n4"])
        assert one.bind(pods[2], "n3") == ""
        kept = one.service.engine.fleet.find("n1")
        assert kept is not None and kept.kind.domain == "r1"
    assert capfd.readouterr().err.count("a node keeps its former pool and domain") == 1
