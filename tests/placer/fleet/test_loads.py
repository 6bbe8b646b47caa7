"""Instances with a rate: as many cores as it takes, and others when the rate changes. A core carries 100 kpps alone;
each kpps that others carry on the NIC costs 0.05 % of that."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line, event_line
from placer.fleet.event_shapes import Malformed, Wanted
from placer.fleet.events import Arrive, Refused
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import QUEUE
from placer.fleet.what_if import WhatIf, complete
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.testing.strategies import TOY_TRAFFIC
from profiles import CoLocation, Workload
from tests.placer.fleet.loaded_oracle import LoadedOracle, loaded_kind


def overload(workload: Workload) -> Sequence[tuple[str, str]]:
    """No NF carries more than 400 kpps."""
    return [("rate_kpps", "is too much")] if 400 < workload.rate_kpps < float("inf") else []


class Loaded:
    """An engine that is spoken to in lines, and the log of what was decided."""

    def __init__(self, count: int | None = None, **options: Any) -> None:
        self.engine = Engine(Fleet([loaded_kind(count=count)]), [LoadedOracle()], **options)
        self.reader = Reader(TOY_TRAFFIC, overload, self.engine.workload_of, of_log=True)
        self.log: list[tuple[str, str]] = []

    def send(self, event: str, id: str, **more: Any) -> dict[str, Any]:
        return self.send_line(json.dumps({"event": event, "id": id, **more}))

    def send_line(self, line: str) -> dict[str, Any]:
        event = self.reader.read(line)
        answer = decision_line(event, self.engine.handle(event))
        self.log.append((event_line(event), answer))
        found: dict[str, Any] = json.loads(answer)
        return found

    def arrive(self, id: str, rate: float | None = None, nf: str = "a", **more: Any) -> tuple[Any, Any]:
        """The NIC and the cores of the answer."""
        answer = self.send("arrive", id, nf=nf, **({} if rate is None else {"rate_kpps": rate}), **more)
        return answer["nic"], answer.get("cores")

    def change(self, id: str, rate: float | None = None, **more: Any) -> tuple[Any, Any]:
        """The status and the cores of the answer."""
        answer = self.send("change", id, **({} if rate is None else {"rate_kpps": rate}), **more)
        return answer["status"], answer.get("cores")


@pytest.mark.parametrize(("rate", "cores"), [(90, 1), (92, 2), (181, 2), (183, 4), (400, 4)])
def test_an_arrival_gets_the_fewest_cores_that_carry_a_tenth_more_than_its_rate(rate: float, cores: int) -> None:
    """Or all, where nothing is to spare; there is no need for an SLA."""
    assert Loaded().arrive("1", rate) == ("nic-1", cores)


@pytest.mark.parametrize(("rate", "status"), [(100.4, "placed"), (100.6, "rejected")])
def test_half_a_percent_below_the_rate_is_taken_for_the_rate(rate: float, status: str) -> None:
    """One core carries 100 kpps."""
    assert Loaded().send("arrive", "1", nf="a", rate_kpps=rate, cores=1)["status"] == status


def test_cores_that_are_given_are_kept_and_without_a_rate_they_are_the_default() -> None:
    """The answer names cores where a rate or cores were given."""
    one = Loaded()
    assert one.arrive("1", 90, cores=4) == ("nic-1", 4)
    assert one.arrive("2", cores=1, sla_drop=0.9) == ("nic-1", 1)
    assert one.arrive("3", sla_drop=0.9) == ("nic-1", None)
    assert one.engine.fleet.cores_taken(one.engine.fleet.kinds[0]) == 7


def test_a_nic_in_use_is_taken_with_more_cores_before_one_is_opened() -> None:
    """Beside 300 kpps, a core carries 85 kpps; alone on the next NIC, one would do."""
    one = Loaded()
    assert one.arrive("1", 300) == ("nic-1", 4) and one.arrive("2", 95) == ("nic-1", 2)
    assert one.arrive("3", 99, nf="b", cores=1) == ("nic-2", 1)


def test_the_line_rate_bounds_the_rates_on_a_nic() -> None:
    """The port carries 575 kpps of these packets, and 6 of 8 cores are taken."""
    one = Loaded()
    assert one.arrive("1", 300, cores=4) == ("nic-1", 4)
    assert one.arrive("2", 250, cores=4, sla_drop=0.5) == ("nic-1", 4)
    one.send("depart", "2")
    assert one.arrive("2", 280, cores=2, sla_drop=0.9) == ("nic-2", 2)
    with pytest.raises(Refused, match="nic-1: the port is too slow for the packets of all"):
        one.arrive("3", 280, cores=2, sla_drop=0.9, nic="nic-1")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"rate_kpps": 401}, "rate_kpps: is too much"),
        ({"rate_kpps": 0}, "rate_kpps: 0 is below"),
        ({"rate_kpps": 10, "cores": 0}, "cores: 0 is below 1"),
        ({"rate_kpps": 10, "sla_min_kpps": 11}, "sla_min_kpps: is above the rate"),
        ({"rate_kpps": None}, "no SLA"),
        ({"sla_drop": 0.1, "sla_latency_us": 10}, "give rate_kpps, too"),
    ],
)
def test_a_load_that_makes_no_sense_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(Malformed, match=message):
        Loaded().arrive("1", **more) if "rate_kpps" not in more else Loaded().send("arrive", "1", nf="a", **more)


def test_cores_that_an_nf_cannot_be_given_are_refused() -> None:
    with pytest.raises(Refused, match="no NIC hosts 'a'"):
        Loaded().arrive("1", 10, cores=3)


def test_a_change_keeps_resizes_moves_or_puts_at_risk() -> None:
    """Beside 180 kpps, 4 cores carry 364 kpps; beside 300 kpps, a core carries 85 kpps."""
    one = Loaded(2)
    one.arrive("1", 150)
    assert one.change("1", 190) == ("kept", 2) and one.change("1", 300) == ("resized", 4)
    assert one.arrive("2", 180, nf="b", cores=2, sla_drop=0.2) == ("nic-1", 2)
    assert one.arrive("3", 60, nf="b", cores=1) == ("nic-1", 1) and one.change("3", 95) == ("moved", 1)
    one.send("depart", "3")
    assert one.change("1", 375) == ("moved", 4)


def test_an_instance_that_fits_nowhere_stays_at_risk_with_its_cores() -> None:
    """Beside 170 kpps, 4 cores carry 366 kpps, and there is no second NIC."""
    one = Loaded(1)
    one.arrive("1", 180)
    one.arrive("2", 170, nf="b")
    answer = one.send("change", "1", rate_kpps=390)
    assert (answer["status"], answer["cores"], answer["at_risk"]) == ("at-risk", 2, ["1"])


@pytest.mark.parametrize(("rate", "status", "cores"), [(185, "kept", 4), (180, "resized", 2), (95, "resized", 2)])
def test_cores_become_fewer_only_where_headroom_is_left(rate: float, status: str, cores: int) -> None:
    """Two cores carry 200 kpps, which is 10 % more than 180 kpps with its tolerance; one is never enough for 95."""
    one = Loaded()
    one.arrive("1", 300)
    assert one.change("1", rate) == (status, cores)


def test_a_rate_that_rises_takes_no_cores_away() -> None:
    one = Loaded()
    one.arrive("1", 300)
    assert one.change("1", 185) == ("kept", 4) and one.change("1", 186) == ("kept", 4)
    assert one.change("1", sla_drop=0.5) == ("kept", 4)


def test_only_a_change_that_gives_cores_changes_those_that_were_given() -> None:
    """Else the instance moves, or is at risk."""
    one = Loaded(1)
    one.arrive("1", 90, cores=1)
    assert one.change("1", 50) == ("kept", 1) and one.change("1", 150) == ("at-risk", 1)
    assert one.change("1", cores=2) == ("resized", 2) and one.change("1", 90) == ("kept", 2)


def test_a_rate_of_null_is_more_than_the_nf_can_carry() -> None:
    """Then it has the default cores, and may get others with the next rate."""
    one = Loaded()
    one.arrive("1", 300, sla_drop=0.1)
    answer = one.send("change", "1", rate_kpps=None)
    assert (answer["status"], answer.get("cores")) == ("resized", None)
    assert one.engine.workload_of("1") == Workload("a", TOY_TRAFFIC)
    assert one.change("1", 350) == ("resized", 4)


def test_the_event_of_another_instance_changes_no_cores() -> None:
    """A failed NIC moves its tenants with the cores that they have, or queues them with these."""
    one = Loaded(2, when_full=QUEUE)
    one.arrive("1", 300)
    one.arrive("2", 95)
    one.send_line('{"event": "fail", "nic": "nic-1"}')
    assert {tenant.id: tenant.workload.cores for tenant in one.engine.fleet.all_tenants()} == {"1": 4, "2": 2}


def test_an_instance_that_waited_gets_its_cores_when_it_is_placed() -> None:
    """The answer to the event that made room has them."""
    one = Loaded(1, when_full=QUEUE)
    one.arrive("1", 300)
    assert one.arrive("2", 390) == (None, None)
    assert one.send("depart", "1")["moves"][1] == {"id": "2", "from": None, "to": "nic-1", "cores": 4}
    assert one.send("where", "2")["cores"] == 4


def test_an_arrival_that_is_sent_again_is_answered_with_its_place() -> None:
    """Another rate is another arrival."""
    one = Loaded()
    one.arrive("1", 150)
    assert one.arrive("1", 150) == ("nic-1", 2)
    with pytest.raises(Refused, match="already exists"):
        one.arrive("1", 150, cores=2)
    with pytest.raises(Refused, match="already exists"):
        one.arrive("1", 151)


def test_an_sla_above_the_new_rate_is_refused() -> None:
    """Nothing has changed then."""
    one = Loaded()
    one.arrive("1", 150, sla_min_kpps=140)
    with pytest.raises(Refused, match="above the rate of 130 kpps"):
        one.change("1", 130)
    assert one.change("1", 145) == ("kept", 2)


def test_the_same_log_leads_to_the_same_answers() -> None:
    """Lines of the log have what was asked for, not the cores that were chosen."""
    one, again = Loaded(2), Loaded(2)
    one.arrive("1", 150)
    one.arrive("2", 90, cores=2, traffic={"flows": 2000})
    one.arrive("3", sla_drop=0.3)
    one.change("1", 300)
    one.change("2", cores=4)
    one.send("change", "1", rate_kpps=None, sla_drop=0.2)
    one.change("1", traffic={"flows": 3000})
    assert "cores" not in one.log[0][0]
    assert one.log[3][0] == '{"event": "change", "id": "1", "rate_kpps": 300.0}'
    assert '"rate_kpps": null' in one.log[5][0]
    for line, answer in one.log:
        assert json.loads(answer) == again.send_line(line)
    assert [line for line, _ in one.log] == [line for line, _ in again.log]


def test_a_question_answers_as_the_engine_would_decide() -> None:
    """The second copy opens no NIC, but takes one core more; a NIC takes the arrival if it does with any number."""
    one = Loaded()
    one.arrive("1", 300)
    arrival = one.reader.tenant("ask", Wanted(nf="a", rate_kpps=95))
    what_if = WhatIf(one.engine)
    places = complete(what_if.places(arrival, 3))
    assert complete(what_if.misfits(arrival, ["nic-1"])) == {"nic-1": None}
    assert [*complete(what_if.scores(arrival, ["nic-1"]))] == ["nic-1"]
    assert [(place.nic, place.cores) for place in places] == [one.arrive(id, 95) for id in ("2", "3", "4")]
    assert complete(what_if.places(replace(arrival, id="5")))[0].cores == one.arrive("5", 95)[1]


def test_what_is_taken_over_where_an_sla_is_violated_anyway_gets_all_the_cores_that_fit() -> None:
    """The first has two cores for what takes three, so no number of cores of the second keeps all SLAs."""
    engine = Loaded().engine
    rate = Workload("a", TOY_TRAFFIC, 250.0)
    short, free = Tenant("1", replace(rate, cores=2), Sla(max_drop=0.0)), Tenant("2", rate, Sla(max_drop=0.0))
    assert [engine.handle(Arrive(tenant, "nic-1", 0)).cores for tenant in (short, free)] == [2, 4]


def test_a_promised_latency_without_a_rate_is_refused() -> None:
    """The latency stays where a change does not give another one."""
    known = Workload("a", TOY_TRAFFIC, 100.0, latency_us=90.0)
    reader = Reader(TOY_TRAFFIC, overload, lambda identity: known)
    with pytest.raises(Malformed, match="latency depends on the rate"):
        reader.read('{"event": "change", "id": "1", "rate_kpps": null}')


class _SlowerOracle(LoadedOracle):
    """One whose answers change: of what each NF carries, only a share is left."""

    share, revision = 1.0, 0

    def throughput(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        return [tuple(self.share * kpps for kpps in answer) for answer in super().throughput(co_locations)]


def test_choices_of_cores_follow_what_an_oracle_answers_now() -> None:
    """A core that carries 95 kpps carries 90, but not with a tenth to spare, as it did when the workload first came."""
    oracle, fleet = _SlowerOracle(), Fleet([loaded_kind()])
    engine = Engine(fleet, [oracle])
    first = engine.handle(Arrive(Tenant("1", Workload("a", TOY_TRAFFIC, 90.0), Sla(max_drop=0.0))))
    oracle.share, oracle.revision = 0.95, 1
    later = engine.handle(Arrive(Tenant("2", Workload("a", TOY_TRAFFIC, 90.0), Sla(max_drop=0.0))))
    assert (first.cores, later.cores) == (1, 2)
