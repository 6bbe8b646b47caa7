"""The extender answers kube-scheduler in its types, decides on bind, and follows the cluster."""

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from placer.fleet.service.http.tokens import new_token, read_tokens
from placer.fleet.service.kubernetes.watch import CATCH_UP_EVERY_S
from tests.placer.fleet.service.kubernetes.toy_cluster import ToyApi, cluster, eventually, node, pod, running


def test_filter_says_which_nodes_take_a_pod_and_why_others_do_not(tmp_path: Path) -> None:
    """Two `d` fill a node but for two cores; an unknown node takes nothing."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        first, second = pod("p1"), pod("p2")
        one.add(first, second)
        assert one.filter(first, "n1", "n2") == {
            "Nodes": None, "NodeNames": ["n1", "n2"], "FailedNodes": {}, "FailedAndUnresolvableNodes": {}, "Error": "",
        }  # fmt: skip
        assert one.bind(first, "n1") == one.bind(second, "n1") == ""
        found = one.filter(pod("p3"), "n1", "n2", "n9")
        assert found["NodeNames"] == ["n2"] and found["FailedNodes"] == {"n1": "too few free cores"}
        assert found["FailedAndUnresolvableNodes"] == {"n9": "the NIC is not in the fleet"}
        strict = one.filter(pod("p4", "a", drop="0.01"), "n1")
        assert strict["FailedNodes"]["n1"].startswith("a would violate its SLA beside the NFs there")


def test_a_scheduler_that_sends_nodes_gets_nodes(tmp_path: Path) -> None:
    """As it sent them, for a pod that is an NF and for one that is not; names are for `nodeCacheCapable: true`."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        nodes = [{**node(name), "status": {"capacity": {"cpu": name}}} for name in ("n1", "n9", "n2")]
        found = one.call("filter", Pod=pod("p1"), Nodes={"metadata": {}, "items": nodes}, NodeNames=None)
        assert found["Nodes"]["items"] == [nodes[0], nodes[2]] and found["NodeNames"] is None
        assert [*found["FailedAndUnresolvableNodes"]] == ["n9"]
        web = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": {}}
        assert one.call("filter", Pod=web, Nodes={"items": nodes})["Nodes"]["items"] == nodes
        assert [row["Host"] for row in one.call("prioritize", Pod=web, Nodes={"items": nodes})] == ["n1", "n9", "n2"]


def test_what_can_never_fit_is_told_from_what_may_fit_later(tmp_path: Path) -> None:
    """Making room does not help a pod whose SLA fails even alone, on a NIC with pods or without."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        for number in (1, 2):
            one.add(pod(f"p{number}"))
            assert one.bind(pod(f"p{number}"), "n1") == ""
        found = one.filter(pod("p3", drop="", sla_min_kpps="100000"), "n1", "n2")
        assert (found["NodeNames"], found["FailedNodes"]) == ([], {})
        reasons = found["FailedAndUnresolvableNodes"]
        assert [*reasons] == ["n1", "n2"]
        assert all(reason.startswith("d would violate its SLA even alone") for reason in reasons.values())
        assert one.filter(pod("p4"), "n1", "n2")["FailedNodes"] == {"n1": "too few free cores"}


def test_a_pod_that_has_its_place_fits_there(tmp_path: Path) -> None:
    """The scheduler asks again where the answer to its bind was lost; a bound pod fits nowhere else."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        pods = [pod(f"p{number}") for number in (1, 2)]
        one.add(*pods)
        assert one.bind(pods[0], "n1") == one.bind(pods[1], "n1") == ""
        assert one.filter(pods[0], "n1", "n2")["NodeNames"] == ["n1", "n2"]
        found = one.filter(running(pods[0], "n1"), "n1", "n2")
        assert (found["NodeNames"], found["FailedAndUnresolvableNodes"]) == (["n1"], {"n2": "the pod is on n1"})


def test_a_pod_may_have_the_longest_name(tmp_path: Path) -> None:
    """253 characters in a namespace of 63: it is placed, found again after a restart, and leaves."""
    api, long = ToyApi(), pod("x" * 253, uid="0" * 36)
    long["metadata"]["namespace"] = "n" * 63
    with cluster(tmp_path / "s.db", "n1", api=api) as one:
        assert one.filter(long, "n1")["NodeNames"] == ["n1"]
        one.add(long)
        assert one.bind(long, "n1") == ""
    with cluster(tmp_path / "s.db", api=api) as one:
        assert [*one.places()] == ["x" * 253]
        api.change("pods", "DELETED", long)
        eventually(lambda: one.places() == {})


def test_prioritize_scores_from_0_to_10_and_prefers_nics_in_use(tmp_path: Path) -> None:
    """A node without pods has 0, as long as one with pods takes the pod."""
    with cluster(tmp_path / "s.db", "n1", "n2", "n3") as one:
        first = pod("p1")
        one.add(first)
        assert one.bind(first, "n2") == ""
        found = one.call("prioritize", Pod=pod("p2", "a"), NodeNames=["n1", "n2", "n3"])
        assert found == [{"Host": "n1", "Score": 0}, {"Host": "n2", "Score": 10}, {"Host": "n3", "Score": 0}]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nf": "x"}, "'x' is not profiled"),
        ({"drop": "lots"}, "nf-placer.io/sla-drop: 'lots' is not a number"),
        ({"drop": ""}, "no SLA"),
        ({"flow": "7"}, "nf-placer.io/flow is unknown"),
        ({"sla_latency_us": "7"}, "sla_latency_us: latency depends on the rate"),
        ({"flow": "7", "cores": "two"}, "nf-placer.io/cores: 'two' is not a number"),
        ({"cores": "1.5", "rate_kpps": "-1"}, "rate_kpps: -1.0 is below 1e-06; cores: 1.5 is not a whole number"),
    ],
)
def test_a_pod_that_cannot_be_read_stays_pending_with_the_reason(
    tmp_path: Path, wrong: dict[str, str], message: str
) -> None:
    """Every node fails for good, with the annotation that is wrong."""
    with cluster(tmp_path / "s.db", "n1") as one:
        found = one.filter(pod("p1", **wrong), "n1")
        assert found["NodeNames"] == [] and message in found["FailedAndUnresolvableNodes"]["n1"]


def test_a_pod_with_a_rate_needs_no_sla_and_keeps_the_cores_that_it_names(tmp_path: Path) -> None:
    """A toy NF has one number of cores. A change of the rate alone leaves them, although nothing else would do."""
    with cluster(tmp_path / "s.db", "n1") as one:
        first = pod("p1", drop="", rate_kpps="70", cores="3")
        one.add(first)
        assert one.filter(first, "n1")["NodeNames"] == ["n1"] and one.bind(first, "n1") == ""
        (shown,) = one.service.client.get("/v1/nics/n1").json()["tenants"]
        assert (shown["rate_kpps"], shown["cores"], shown["sla_drop"]) == (70.0, 3, 0.0)
        changed = one.service.event(event="change", id=shown["id"], rate_kpps=5_000)
        assert (changed.json()["status"], changed.json()["cores"]) == ("at-risk", 3)


def test_a_pod_that_is_no_nf_is_passed_through(tmp_path: Path) -> None:
    """All nodes take it, none is preferred, and bind only binds."""
    other = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": {}}
    with cluster(tmp_path / "s.db", "n1") as one:
        one.add(other)
        assert one.filter(other, "n1", "x")["NodeNames"] == ["n1", "x"]
        assert one.call("prioritize", Pod=other, NodeNames=["n1"]) == [{"Host": "n1", "Score": 0}]
        assert one.bind(other, "n1") == "" and one.places() == {}
        assert one.api.objects["pods"]["web"]["spec"]["nodeName"] == "n1"


def test_bind_decides_once_and_a_stale_one_is_refused(tmp_path: Path) -> None:
    """Two of eight cores are left for the third `d`; the same pod again is no second instance."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        pods = [pod(f"p{number}") for number in range(3)]
        one.add(*pods)
        assert [one.filter(each, "n1")["NodeNames"] for each in pods] == [["n1"]] * 3
        assert one.bind(pods[0], "n1") == one.bind(pods[1], "n1") == ""
        assert one.bind(pods[2], "n1") == "n1: too few free cores" and one.bind(pods[0], "n1") == ""
        assert "is on n1 already" in one.bind(pods[0], "n2") and one.bind(pods[2], "n2") == ""
        assert one.places() == {"p0": "n1", "p1": "n1", "p2": "n2"}


def test_a_token_of_owners_binds_no_pods_and_the_log_says_whose_does(tmp_path: Path) -> None:
    """It could name an owner of its own for the pod of another one."""
    (alice, of_alice), (all_, of_all) = new_token("alice", ["decide"]), new_token("scheduler", ["decide"])
    (tmp_path / "tokens.toml").write_text(f'{of_alice}owners = ["alice"]\n{of_all}')
    with cluster(tmp_path / "s.db", "n1", tokens=read_tokens(tmp_path / "tokens.toml")) as one:
        one.add(pod("p1", owner="bob"))
        client = one.service.client
        client.headers["Authorization"] = f"Bearer {alice}"
        assert one.filter(pod("p1", owner="alice"), "n1")["NodeNames"] == ["n1"]
        arguments = {"PodName": "p1", "PodNamespace": "default", "PodUID": "uid-p1", "Node": "n1"}
        assert client.post("/k8s/v1/bind", json=arguments).status_code == 403 and one.places() == {}
        client.headers["Authorization"] = f"Bearer {all_}"
        assert one.bind(pod("p1", owner="bob"), "n1") == "" and one.service.log()[1]["actor"] == "scheduler"
        assert [tenant.owner for tenant in one.service.engine.fleet.all_tenants()] == ["bob"]


def test_a_token_that_only_asks_sends_no_pod_to_the_extender(tmp_path: Path) -> None:
    """A bind takes the annotations that filter, prioritize and preempt were asked with."""
    token, table = new_token("people", ["ask"])
    (tmp_path / "tokens.toml").write_text(table)
    with cluster(tmp_path / "s.db", "n1", tokens=read_tokens(tmp_path / "tokens.toml")) as one:
        one.service.client.headers["Authorization"] = f"Bearer {token}"
        for verb in ("filter", "prioritize", "preempt", "bind"):
            assert one.service.client.post(f"/k8s/v1/{verb}", json={}).status_code == 403


def test_a_pod_over_the_quota_of_its_owner_fits_on_no_node_and_filter_says_so(tmp_path: Path) -> None:
    """Evicting others would not help; it fits again once one of the owner has left."""
    token, table = new_token("scheduler", ["decide"])
    (tmp_path / "tokens.toml").write_text(f'{table}[[owner]]\nname = "alice"\nmax_instances = 1\n')
    with cluster(tmp_path / "s.db", "n1", "n2", tokens=read_tokens(tmp_path / "tokens.toml")) as one:
        one.service.client.headers["Authorization"] = f"Bearer {token}"
        first, second = pod("p1", owner="alice"), pod("p2", owner="alice")
        one.add(first, second)
        assert one.filter(first, "n1")["NodeNames"] == ["n1"] and one.bind(first, "n1") == ""
        found, over = one.filter(second, "n1", "n2"), "owner 'alice' has 1 of at most 1 instances"
        assert (found["NodeNames"], found["FailedNodes"]) == ([], {})
        assert found["FailedAndUnresolvableNodes"] == {"n1": over, "n2": over}
        assert one.filter(first, "n1")["NodeNames"] == ["n1"] and one.filter(pod("p3"), "n1")["NodeNames"] == ["n1"]
        one.api.change("pods", "DELETED", first)
        eventually(lambda: one.filter(second, "n1")["NodeNames"] == ["n1"])


def test_where_the_api_server_refuses_the_place_is_free_again(tmp_path: Path) -> None:
    """And the next try, on another node, is possible."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        first = pod("p1")
        one.add(first)
        one.api.refuses = "no"
        assert "refused the binding: no" in one.bind(first, "n1") and one.places() == {}
        one.api.refuses = ""
        assert one.bind(first, "n2") == "" and one.bind(pod("gone"), "n1") == "there is no such pod any more"


def test_a_pod_whose_bind_was_not_answered_keeps_its_place(tmp_path: Path) -> None:
    """It may be bound, and is; the log does not have it leave in between."""
    with cluster(tmp_path / "s.db", "n1") as one:
        first = pod("p1")
        one.add(first)
        one.api.unanswered = True
        assert "the API server does not answer" in one.bind(first, "n1")
        one.api.unanswered = False
        assert one.bind(first, "n1") == "" and one.log() == ["join n1", "arrive p1"]


def test_a_pod_that_was_placed_but_never_bound_may_go_elsewhere_with_other_annotations(tmp_path: Path) -> None:
    """A kill between both leaves it so; the scheduler tries again after somebody corrected the pod."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        one.add(pod("p1"), pod("p2"))
        for number in (1, 2):
            assert one.service.arrive(f"pod/default/p{number}/uid-p{number}", "d", nic="n1")["status"] == "placed"
        corrected = pod("p1", "a", drop="0.5")
        one.api.change("pods", "MODIFIED", corrected)
        assert one.filter(corrected, "n1", "n2")["NodeNames"] == ["n1", "n2"]
        assert one.bind(corrected, "n1") == one.bind(pod("p2"), "n2") == ""
        assert one.places() == {"p1": "n1", "p2": "n2"}
        assert one.service.engine.fleet.nics["n1"].tenants[0].workload.nf == "a"


def test_of_two_binds_at_once_the_second_fails(tmp_path: Path) -> None:
    """The scheduler does not wait longer for the first, and tries another node; the pod is bound to one."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one, ThreadPoolExecutor(1) as pool:
        first = pod("p1")
        one.add(first)
        one.api.slow.add("binding")
        slow = pool.submit(one.bind, first, "n1")
        eventually(lambda: one.places() == {"p1": "n1"})
        assert one.bind(first, "n2") == "the pod is being bound"
        one.api.slow.clear()
        assert slow.result() == "" and one.places() == {"p1": "n1"}


def test_a_bind_of_a_pod_that_was_made_again_meanwhile_fails(tmp_path: Path) -> None:
    """The new pod of that name is on the same node, which is no success for the old one."""
    with cluster(tmp_path / "s.db", "n1") as one:
        first = pod("p1")
        assert one.filter(first, "n1")["NodeNames"] == ["n1"]
        one.api.change("pods", "ADDED", running(pod("p1", uid="again"), "n1"))
        eventually(lambda: one.places() == {"p1": "n1"})
        assert "the API server refused the binding" in one.bind(first, "n1")
        assert one.service.client.get("/v1/nics/n1").json()["tenants"][0]["id"] == "pod/default/p1/again"
        assert len(one.service.engine.fleet.nics["n1"].tenants) == 1


def test_nothing_is_placed_before_the_cluster_is_known(tmp_path: Path) -> None:
    """After a restart a node may be gone, and a pod may run that the state lacks."""
    api, first = ToyApi(), pod("p1")
    with cluster(tmp_path / "s.db", "n1", api=api) as one:
        one.add(first)
    api.slow.add("pods")
    with cluster(tmp_path / "s.db", api=api, synced=False) as one:
        assert one.bind(first, "n1") == one.filter(first, "n1")["Error"] == "the nodes have not been listed yet"
        api.slow.clear()
        eventually(lambda: one.watcher.synced)
        assert one.bind(first, "n1") == ""


def test_a_pod_that_is_deleted_or_over_frees_its_place_also_when_no_watch_saw_it(tmp_path: Path) -> None:
    """One is deleted in sight, one while watches are cut, one has ended."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        pods = [pod(f"p{number}") for number in range(4)]
        one.add(*pods)
        for number, each in enumerate(pods):
            assert one.bind(each, f"n{number // 2 + 1}") == ""
        one.api.change("pods", "DELETED", pods[0])
        eventually(lambda: "p0" not in one.places())
        one.api.change("pods", "DELETED", pods[1], seen=False)
        eventually(lambda: "p1" not in one.places())
        one.api.change("pods", "MODIFIED", {**pods[2], "status": {"phase": "Succeeded"}})
        eventually(lambda: one.places() == {"p3": "n2"})


def test_nodes_join_leave_and_come_back(tmp_path: Path) -> None:
    """A node that is gone takes no pods; its NIC is out of service once the last pod has left it."""
    with cluster(tmp_path / "s.db", "n1") as one:
        one.api.change("nodes", "ADDED", node("n2"))
        eventually(lambda: one.filter(pod("x"), "n2")["NodeNames"] == ["n2"])
        first = pod("p1")
        one.add(first)
        assert one.bind(first, "n2") == ""
        one.api.change("nodes", "DELETED", node("n2"))
        one.api.change("pods", "DELETED", first)
        eventually(lambda: one.service.client.get("/v1/nics/n2").json()["service"] == "failed")
        assert one.filter(pod("x"), "n2")["FailedAndUnresolvableNodes"] == {"n2": "the node is deleted"}
        one.api.change("nodes", "ADDED", node("n2"), seen=False)
        eventually(lambda: one.filter(pod("x"), "n2")["NodeNames"] == ["n2"])


def test_a_restart_finds_pods_as_they_are(tmp_path: Path) -> None:
    """One was deleted meanwhile; one is bound, though its answer was lost."""
    api = ToyApi()
    pods = [pod(f"p{number}") for number in range(3)]
    with cluster(tmp_path / "s.db", "n1", api=api) as one:
        one.add(*pods)
        assert one.bind(pods[0], "n1") == ""
    api.change("pods", "DELETED", pods[0], seen=False)
    api.change("pods", "MODIFIED", {**pods[1], "spec": {"nodeName": "n1"}}, seen=False)
    with cluster(tmp_path / "s.db", api=api) as one:
        eventually(lambda: one.places() == {"p1": "n1"})
        assert one.bind(pods[2], "n1") == ""


NO_PODS = ("", "[]", "{}", '{"Pod": 7}', '{"Pod": {"metadata": 7}}')
NO_NODES = (
    '{"Pod": {"metadata": {}}, "NodeNames": [7]}', '{"Pod": {}, "Nodes": [7]}',
    '{"Pod": {}, "Nodes": {"items": [{"metadata": {}}]}}',
)  # fmt: skip
NO_VICTIMS = (
    '{"Pod": {}, "NodeNameToMetaVictims": [7]}', '{"Pod": {}, "NodeNameToMetaVictims": {"n1": 7}}',
    '{"Pod": {}, "NodeNameToVictims": {"n1": {"Pods": [{}]}}}',
)  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "body"),
    [*product(["filter", "prioritize", "bind"], [*NO_PODS, *NO_NODES]), *product(["preempt"], [*NO_PODS, *NO_VICTIMS])],
)
def test_what_is_no_request_of_a_scheduler_is_400(tmp_path: Path, verb: str, body: str) -> None:
    """Nothing changes."""
    with cluster(tmp_path / "s.db", "n1") as one:
        assert one.service.client.post(f"/k8s/v1/{verb}", content=body).status_code == 400


def test_a_pod_fits_where_the_scheduler_knows_before_the_service_that_another_has_left(tmp_path: Path) -> None:
    """It asks at once, and would not ask again for minutes; the same of a node that is uncordoned."""
    with cluster(tmp_path / "s.db", "n1") as one:
        for number in range(4):
            one.add(pod(f"p{number}"))
        assert one.bind(pod("p0"), "n1") == one.bind(pod("p1"), "n1") == ""
        assert one.filter(pod("p2"), "n1")["NodeNames"] == []
        time.sleep(CATCH_UP_EVERY_S)
        one.api.change("pods", "DELETED", pod("p0"))
        assert one.filter(pod("p2"), "n1")["NodeNames"] == ["n1"]
        one.api.change("nodes", "MODIFIED", {**node("n1"), "spec": {"unschedulable": True}})
        eventually(lambda: one.takes("n1") == [])
        time.sleep(CATCH_UP_EVERY_S)
        one.api.change("nodes", "MODIFIED", node("n1"))
        assert one.filter(pod("p2"), "n1")["NodeNames"] == ["n1"]
