"""What kube-scheduler would evict for a pod, and what has to leave besides so that every SLA is met."""

from pathlib import Path
from typing import Any

import pytest

from tests.placer.fleet.service.kubernetes.toy_cluster import Cluster, cluster, eventually, pod, running

WEB = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": {"priority": 9}}


def ranked(name: str, of: int, nf: str = "d", **annotations: str) -> dict[str, Any]:
    """A pod with the priority in its spec."""
    return {**pod(name, nf, **annotations), "spec": {"priority": of}}


def fill(one: Cluster, name: str, *pods: dict[str, Any]) -> None:
    one.add(*pods)
    for each in pods:
        assert one.bind(each, name) == ""


def test_the_fewest_of_lower_priority_leave_a_node_and_nodes_without_help_are_left_out(tmp_path: Path) -> None:
    """Two `d` fill a node; once they are evicted, the pod is bound. On `n2` both are too important."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        fill(one, "n1", ranked("p1", 3), ranked("p2", 1))
        fill(one, "n2", ranked("p3", 5), ranked("p4", 9))
        high = ranked("high", 5)
        assert one.preempt(high, n1=[], n2=[], n9=[]) == {"n1": ["uid-p2"]}
        assert one.preempt(high, n2=[]) == {} == one.preempt(running(high, "n1"), n1=[])
        one.api.change("pods", "DELETED", pod("p2"))
        eventually(lambda: "p2" not in one.places())
        one.add(high)
        assert one.bind(high, "n1") == ""


def test_who_the_scheduler_evicts_leaves_and_others_only_if_they_must(tmp_path: Path) -> None:
    """`p1` is enough for the cores; the SLA of `p2` also bars `high`, and pods that are no NFs do not matter."""
    with cluster(tmp_path / "s.db", "n1") as one:
        fill(one, "n1", ranked("p1", 1), ranked("p2", 2))
        assert one.preempt(ranked("high", 5), n1=["uid-p1"]) == {"n1": ["uid-p1"]}
        assert one.preempt(ranked("high", 5), n1=["uid-p2"]) == {"n1": ["uid-p2"]}
        assert one.preempt(ranked("high", 5), n1=["u"]) == {"n1": ["u", "uid-p1"]}
        assert one.preempt(ranked("tight", 5, drop="0.02"), n1=["uid-p1"]) == {"n1": ["uid-p1", "uid-p2"]}
        assert one.preempt(ranked("small", 5, "a"), n1=["u"]) == {"n1": ["u"]}


def test_the_priority_of_an_annotation_counts_before_that_of_the_spec(tmp_path: Path) -> None:
    """An NF that is no less important by its annotation is not evicted, although the scheduler would."""
    with cluster(tmp_path / "s.db", "n1") as one:
        fill(one, "n1", ranked("p1", 1, priority="7"), ranked("p2", 9, priority="0"))
        assert one.preempt(ranked("high", 5), n1=[]) == {"n1": ["uid-p2"]}
        assert one.preempt(ranked("high", 5), n1=["uid-p1"]) == {}
        assert one.preempt(ranked("high", 5, priority="0"), n1=[]) == {}
        shown = one.service.client.get("/v1/tenants").json()["tenants"]
        assert [here.get("priority") for here in shown] == [7, None]
        assert "nf-placer.io/priority: 'high'" in one.why_not("n1", pod("p3", priority="high"))


def test_a_pod_that_is_no_nf_gets_what_the_scheduler_proposes(tmp_path: Path) -> None:
    with cluster(tmp_path / "s.db", "n1") as one:
        assert one.preempt(WEB, n1=["x", "y"], n9=["z"]) == {"n1": ["x", "y"], "n9": ["z"]}


def test_a_scheduler_that_sends_whole_pods_gets_uids(tmp_path: Path) -> None:
    with cluster(tmp_path / "s.db", "n1") as one:
        fill(one, "n1", ranked("p1", 1), ranked("p2", 2))
        victims = {"n1": {"Pods": [running(pod("p1"), "n1")], "NumPDBViolations": 1}}
        found = one.call("preempt", Pod=ranked("high", 5), NodeNameToVictims=victims, NodeNameToMetaVictims=None)
        assert found == {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uid-p1"}], "NumPDBViolations": 1}}}


@pytest.mark.parametrize(
    "body",
    [
        "", "[]", "{}", '{"Pod": 7}', '{"Pod": {"metadata": 7}}', '{"Pod": {}, "NodeNameToMetaVictims": [7]}',
        '{"Pod": {}, "NodeNameToMetaVictims": {"n1": 7}}', '{"Pod": {}, "NodeNameToVictims": {"n1": {"Pods": [{}]}}}',
    ],
)  # fmt: skip
def test_what_is_no_request_of_a_scheduler_is_400(tmp_path: Path, body: str) -> None:
    with cluster(tmp_path / "s.db", "n1") as one:
        assert one.service.client.post("/k8s/v1/preempt", content=body).status_code == 400
