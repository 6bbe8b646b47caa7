"""What kube-scheduler would evict for a pod, and what has to leave besides so that every SLA is met. Annotations of a
pod that runs: what they say now counts where it runs, and an event on it says what is not kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from placer.fleet.service.kubernetes.api import ApiAnswer
from tests.placer.fleet.service.kubernetes.toy_cluster import Cluster, ToyApi, cluster, eventually, pod, running

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


def test_a_pod_that_cannot_be_counted_is_in_the_way_unless_it_is_evicted_itself(tmp_path: Path) -> None:
    """Filter says that making room may help, and it does; not where its annotation makes it as important."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        for name, bad in (("n1", ranked("p1", 1, "x")), ("n2", ranked("p2", 1, "x", priority="9"))):
            one.add({**bad, "spec": {"nodeName": name, "priority": 1}})
        eventually(lambda: one.uncounted() == 2)
        assert [*one.filter(ranked("high", 5), "n1", "n2")["FailedNodes"]] == ["n1", "n2"]
        assert one.preempt(ranked("high", 5), n1=["uid-p1"], n2=["uid-p2"]) == {"n1": ["uid-p1"]}
        assert one.preempt(ranked("high", 5), n1=["u"]) == {}


def test_a_node_where_what_is_no_pod_would_have_to_leave_is_left_out(tmp_path: Path) -> None:
    """The scheduler evicts pods alone, and takes a victim that it does not find as an error of all nodes."""
    with cluster(tmp_path / "s.db", "n1", "n2") as one:
        fill(one, "n1", ranked("p1", 2), ranked("p2", 1))
        for number in (1, 2):
            assert one.service.arrive(f"held-{number}", nic="n2")["status"] == "placed"
        assert one.preempt(ranked("high", 5), n1=["u"], n2=["u"]) == {"n1": ["u", "uid-p2"]}


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


@contextmanager
def changed(path: Path, *names: str, to: dict[str, Any], api: ToyApi | None = None) -> Iterator[Cluster]:
    """A cluster of these nodes, with the pods `p1` of `d` and `p2` of `c` on the first, of which `p2` then changes."""
    with cluster(path, *names, api=api) as one:
        for found in (pod("p1"), pod("p2", "c")):
            one.add(found)
            assert one.bind(found, names[0]) == ""
        one.api.change("pods", "MODIFIED", running(to, names[0]))
        yield one


def drop_of(one: Cluster, name: str = "p2") -> float | None:
    nic = one.service.engine.fleet.nic_of(f"pod/default/{name}/uid-{name}")
    return None if nic is None else nic.tenants_by_id[f"pod/default/{name}/uid-{name}"].sla.max_drop


def test_other_annotations_are_a_change(tmp_path: Path) -> None:
    """What was given before may be left out; the same once more is none, also after a restart."""
    api, least = ToyApi(), pod("p2", "c", "", sla_min_kpps="1", flows="100")
    with changed(tmp_path / "s.db", "n1", to=pod("p2", "c", "0.5", flows="100"), api=api) as one:
        eventually(lambda: drop_of(one) == 0.5)
        api.change("pods", "MODIFIED", running(least, "n1"))
        eventually(lambda: drop_of(one) is None)
        api.change("pods", "MODIFIED", running(pod("p2", "c"), "n1"))
        eventually(lambda: drop_of(one) == 0.9)
    with cluster(tmp_path / "s.db", api=api) as one:
        assert one.log()[3:] == ["change p2"] * 3 and api.reports == []
        assert [row["event"]["traffic"]["flows"] for row in one.service.log()[3:]] == [100.0, 100.0, 1000.0]


def test_an_sla_that_no_node_keeps_is_at_risk_and_the_pod_says_so(tmp_path: Path) -> None:
    """`c` loses 6 % beside `d`, and is to lose 1 % from now on; nothing comes to them."""
    with changed(tmp_path / "s.db", "n1", to=pod("p2", "c", "0.01")) as one:
        eventually(lambda: len(one.api.reports) == 1)
        assert drop_of(one) == 0.01 and one.takes("n1") == [] and one.log()[3:] == ["change p2"]
        assert one.api.reports == ["p2: a pod has changed: SLAs are violated on its node: pod/default/p2/uid-p2"]


def test_a_pod_stays_on_its_node_where_a_change_would_move_it(tmp_path: Path) -> None:
    """Another node would keep the SLA, but Kubernetes moves no pod: it arrives anew where it runs."""
    with changed(tmp_path / "s.db", "n1", "n2", to=pod("p2", "c", "0.01")) as one:
        eventually(lambda: len(one.api.reports) == 1)
        assert drop_of(one) == 0.01 and one.places() == {"p1": "n1", "p2": "n1"}
        assert one.log()[4:] == ["depart p2", "arrive p2"]
        (report,) = one.api.reports
        assert report.startswith("p2: a pod runs where it would not be placed: n1: c would violate its SLA")


@pytest.mark.parametrize(
    "given",
    [{"nf": "b"}, {"nf": "c", "priority": "3"}, {"nf": "c", "spread": "web"}, {"nf": "c", "owner": "edge-team"}],
    ids=str,
)
def test_another_nf_priority_group_or_owner_arrives_anew(tmp_path: Path, given: dict[str, str]) -> None:
    """No `change` has them; all is kept, so that the pod gets no event."""
    with changed(tmp_path / "s.db", "n1", to=pod("p2", **given)) as one:
        eventually(lambda: one.log()[3:] == ["depart p2", "arrive p2"])
        assert one.places() == {"p1": "n1", "p2": "n1"} and one.api.reports == []


def test_a_pod_whose_annotations_make_no_sense_any_more_counts_as_before(tmp_path: Path) -> None:
    """It is said once, however often the pod changes otherwise, and again after annotations that did make sense."""
    wrong = pod("p2", "c", "0.5", flow="7")
    with changed(tmp_path / "s.db", "n1", to=wrong) as one:
        for number in range(2):
            one.api.change("pods", "MODIFIED", running(wrong, "n1", "Unknown"))
            eventually(lambda number=number: len(one.api.reports) == number + 1)  # type: ignore[misc]
            assert drop_of(one) == 0.9 - 0.1 * number and one.takes("n1") == ["n1"]
            one.api.change("pods", "MODIFIED", running(pod("p2", "c", "0.8"), "n1"))
            eventually(lambda: drop_of(one) == 0.8)
    assert one.api.reports[0].startswith("p2: a pod counts with its former annotations: nf-placer.io/flow is unknown")


@pytest.mark.parametrize("lost", [True, False], ids=["lost", "forbidden"])
def test_a_cluster_is_followed_where_no_event_can_be_made(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], lost: bool
) -> None:
    """The log says so, once for the pod; its node is known as before."""

    class MuteApi(ToyApi):
        async def report(self, namespace: str, name: str, uid: str, message: str) -> ApiAnswer:
            if lost:
                raise httpx.ReadTimeout("no answer")
            return ApiAnswer(403, "forbidden")

    with changed(tmp_path / "s.db", "n1", to=pod("p2", "c", "0.01"), api=MuteApi()) as one:
        eventually(lambda: drop_of(one) == 0.01)
        one.api.change("pods", "MODIFIED", running(pod("p2", "c", "0.7"), "n1"))
        eventually(lambda: drop_of(one) == 0.7)
    printed = capfd.readouterr().err
    assert printed.count("a pod got no event") == 1 and "the cluster cannot be followed" not in printed
