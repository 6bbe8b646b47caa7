"""The extender answers kube-scheduler in its types, decides on bind, and follows the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.placer.fleet.service.kubernetes.toy_cluster import ToyApi, cluster, eventually, node, pod


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
        assert found["NodeNames"] == ["n2"]
        assert found["FailedNodes"] == {"n1": "too few free cores", "n9": "the NIC is not in the fleet"}
        strict = one.filter(pod("p4", "a", drop="0.01"), "n1")
        assert strict["FailedNodes"]["n1"].startswith("a would violate its SLA beside the NFs there")


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
        ({"rate_kpps": "7"}, "no latency can be promised"),
    ],
)
def test_a_pod_that_cannot_be_read_stays_pending_with_the_reason(
    tmp_path: Path, wrong: dict[str, str], message: str
) -> None:
    """Every node fails for good, with the annotation that is wrong."""
    with cluster(tmp_path / "s.db", "n1") as one:
        found = one.filter(pod("p1", **wrong), "n1")
        assert found["NodeNames"] == []
        assert message in found["FailedAndUnresolvableNodes"]["n1"]


def test_a_pod_that_is_no_nf_is_passed_through(tmp_path: Path) -> None:
    """All nodes take it, none is preferred, and bind only binds."""
    other = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": {}}
    with cluster(tmp_path / "s.db", "n1") as one:
        one.add(other)
        assert one.filter(other, "n1", "x")["NodeNames"] == ["n1", "x"]
        assert one.call("prioritize", Pod=other, NodeNames=["n1"]) == [{"Host": "n1", "Score": 0}]
        assert one.bind(other, "n1") == ""
        assert one.places() == {}
        assert one.api.objects["pods"]["web"]["spec"]["nodeName"] == "n1"


def test_bind_decides_once_and_a_stale_one_is_refused(tmp_path: Path) -> None:
    """Two of eight cores are left for the third `d`; the same pod again is no second instance."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        pods = [pod(f"p{number}") for number in range(3)]
        one.add(*pods)
        assert [one.filter(each, "n1")["NodeNames"] for each in pods] == [["n1"]] * 3
        assert one.bind(pods[0], "n1") == one.bind(pods[1], "n1") == ""
        assert one.bind(pods[2], "n1") == "n1: too few free cores"
        assert one.bind(pods[0], "n1") == ""
        assert "is on n1 already" in one.bind(pods[0], "n2")
        assert one.bind(pods[2], "n2") == ""
        assert one.places() == {"p0": "n1", "p1": "n1", "p2": "n2"}


def test_where_the_api_server_refuses_the_place_is_free_again(tmp_path: Path) -> None:
    """And the next try, on another node, is possible."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        first = pod("p1")
        one.add(first)
        one.api.refuses = "no"
        assert "refused the binding: no" in one.bind(first, "n1")
        assert one.places() == {}
        one.api.refuses = ""
        assert one.bind(first, "n2") == ""
        assert one.bind(pod("gone"), "n1") == "there is no such pod any more"


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
        eventually(lambda: one.filter(pod("x"), "n2")["FailedNodes"] == {"n2": "the NIC is failed"})
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


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"Pod": 7}', '{"Pod": {"metadata": {}}, "NodeNames": [7]}'])
@pytest.mark.parametrize("verb", ["filter", "prioritize", "bind"])
def test_what_is_no_request_of_a_scheduler_is_400(tmp_path: Path, verb: str, body: str) -> None:
    """Nothing changes."""
    with cluster(tmp_path / "s.db", "n1") as one:
        assert one.service.client.post(f"/k8s/v1/{verb}", content=body).status_code == 400
