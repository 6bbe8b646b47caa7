"""The simulated testbed keeps to the testbed protocol, and its mechanisms slow NFs as they should.

Offered loads and numbers of cores on the simulated card."""

import io
import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.serve import serve
from profiler.simulated import BLUEFIELD_3, SimulatedTestbed, machine
from profiler.simulated.card import BLUEFIELD_2, Card
from profiler.simulated.demand import hits, pressure_step, private_hits
from profiler.simulated.machine import POLLING_IPC
from profiler.simulated.solve import Batch, SteadyState, solve, turns_step, waiting_step
from profiler.testbed import Run, RunRefused, TestbedError
from profiler.testbeds import open_testbed
from profiles import COUNTERS, BenchLoad, Load, TrafficProfile, Workload
from tests.effort import examples

TABLE_1 = [
    "FlowStats", "IPRouter", "IPTunnel", "NAT", "FlowMonitor", "NIDS", "IPCompGateway", "ACL", "FlowClassifier",
    "FlowTracker", "PacketFilter",
]  # fmt: skip
TRUTH = SimulatedTestbed()
DEFAULT = TRUTH.describe().traffic

traffics = st.builds(
    TrafficProfile,
    flows=st.integers(1, 500000).map(float),
    packet_size=st.integers(64, 1500).map(float),
    mtbr=st.integers(0, 1100).map(float),
)
workloads = st.builds(Workload, nf=st.sampled_from(TABLE_1), traffic=traffics)
mem_benches = st.builds(
    lambda wss, rate: BenchLoad.of("mem-bench", {"wss_mb": wss, "access_mops": rate}),
    wss=st.floats(0.1, 24),
    rate=st.floats(1, 180),
)
regex_benches = st.builds(
    lambda mtbr, rate, size: BenchLoad.of("regex-bench", {"mtbr": mtbr, "rate_kpps": rate, "packet_size": size}),
    mtbr=st.floats(0, 1100),
    rate=st.floats(0, 4000),
    size=st.floats(64, 1500),
)
co_locations = st.lists(workloads | mem_benches | regex_benches, min_size=1, max_size=4)


def throughputs(run: Run) -> list[float]:
    return [measured.throughput_kpps for measured in run.measurements]


def test_the_nfs_of_table_1_and_three_benches_are_described() -> None:
    """The description names the eleven NFs with two cores each, and the benches with one."""
    description = TRUTH.describe()
    assert [nf.name for nf in description.nfs] == TABLE_1 and {nf.cores for nf in description.nfs} == {2}
    assert [(bench.name, bench.cores) for bench in description.benches] == [
        ("mem-bench", 1),
        ("regex-bench", 1),
        ("compression-bench", 1),
    ]
    assert description.nf("IPCompGateway").accelerators == ("regex", "compression")
    assert (description.nic.model, description.nic.cores, description.nic.llc_bytes) == ("bluefield-2", 8, 6291456)
    assert description.simulated and description.protocol == 1


@settings(max_examples=examples(40))
@given(co_locations, co_locations, st.randoms(use_true_random=False), st.booleans())
def test_neither_order_nor_batch_changes_an_answer(
    co_location: list[Load], other: list[Load], random: object, noise: bool
) -> None:
    """A co-location measured alone, shuffled, or in a batch with others gets the same answer to the last bit."""
    order = list(range(len(co_location)))
    random.shuffle(order)  # type: ignore[attr-defined]
    alone = TRUTH.run(co_location, noise=noise, seed=3)
    batch = TRUTH.run_many([other, [co_location[i] for i in order], co_location], noise=noise, seed=3)
    assert batch[2] == alone
    if len(set(co_location)) == len(co_location):
        assert [batch[1].measurements[order.index(i)] for i in range(len(co_location))] == list(alone.measurements)
    else:
        assert sorted(throughputs(batch[1])) == sorted(throughputs(alone))


@settings(max_examples=examples(40))
@given(co_locations)
def test_answers_are_finite_and_counters_agree_with_each_other(co_location: list[Load]) -> None:
    """Every reading is finite and positive, and irt is ipc times the cycles of the load's cores."""
    for load, measured in zip(co_location, TRUTH.run(co_location, noise=False).measurements, strict=True):
        values = [measured.throughput_kpps, *measured.counters.as_dict().values()]
        assert all(math.isfinite(value) and value > 0 for value in values)
        cores = 2 if isinstance(load, Workload) else 1
        assert measured.counters.irt == pytest.approx(measured.counters.ipc * cores * 2.5e9, rel=2e-5)
        assert measured.counters.memrd > measured.counters.memwr


@settings(max_examples=examples(60))
@given(
    st.lists(
        mem_benches | workloads.filter(lambda load: load.nf in ("ACL", "NAT", "FlowStats", "IPTunnel")),
        min_size=2,
        max_size=4,
    )
)
def test_a_further_load_never_helps_where_only_memory_is_shared(co_location: list[Load]) -> None:
    """Without accelerators, no load runs faster because another was added."""
    fewer, more = TRUTH.run_many([co_location[:-1], co_location], noise=False)
    for before, after in zip(throughputs(fewer), throughputs(more), strict=False):
        assert after <= before * (1 + 2e-5)


def test_noise_depends_on_seed_and_loads_alone() -> None:
    """The same seed gives the same noise whatever was run before; another seed gives another."""
    co_location = [Workload("NAT", DEFAULT), Workload("ACL", DEFAULT)]
    fresh, used = SimulatedTestbed(), SimulatedTestbed(seed=5)
    used.run_many([co_location[:1], co_location], seed=1)
    assert fresh.run(co_location, seed=7) == used.run(co_location, seed=7)
    assert fresh.run(co_location, seed=7) != fresh.run(co_location, seed=8)
    assert fresh.run(co_location, noise=False, seed=7) == used.run(co_location, noise=False)


def test_repeats_without_a_seed_differ_but_can_be_repeated() -> None:
    """Without a seed of its own each repeat is a new measurement; a new testbed with that seed repeats the series."""
    co_location = [Workload("NAT", DEFAULT)] * 2
    series = [SimulatedTestbed(seed=4).run_many([co_location] * 3) for _ in range(2)]
    assert series[0] == series[1] and len({run.measurements for run in series[0]}) == 3
    assert series[0][0].measurements[0] != series[0][0].measurements[1]
    assert SimulatedTestbed(seed=5).run(co_location) != series[0][0]


def test_noise_is_about_one_percent() -> None:
    """Over many repeats throughput spreads by 1 % around the truth, counters by less."""
    load = Workload("FlowStats", DEFAULT)
    (truth,) = TRUTH.run([load], noise=False).measurements
    repeats = [run.measurements[0] for run in SimulatedTestbed().run_many([[load]] * 2000)]
    errors = np.log([repeat.throughput_kpps / truth.throughput_kpps for repeat in repeats])
    assert abs(errors.mean()) < 0.001 and 0.009 < errors.std() < 0.011
    for name in COUNTERS:
        spread = np.std(
            [math.log(getattr(repeat.counters, name) / getattr(truth.counters, name)) for repeat in repeats]
        )
        assert 0.002 < spread < 0.01


@pytest.mark.parametrize(
    ("co_location", "message"),
    [
        ([], "nothing to run"),
        ([Workload("Firewall", DEFAULT)], "Firewall"),
        ([BenchLoad.of("disk-bench", {})], "disk-bench"),
        ([Workload("NAT", TrafficProfile(500001, 1500, 600))], "flows"),
        ([Workload("NAT", TrafficProfile(16000, 63, 600))], "packet_size"),
        ([Workload("NAT", TrafficProfile(16000, 1500, math.nan))], "mtbr"),
        ([BenchLoad.of("mem-bench", {"wss_mb": 10})], "access_mops"),
        ([BenchLoad.of("mem-bench", {"wss_mb": 10, "access_mops": 181})], "access_mops"),
        # Four NFs take all eight cores.
        ([Workload("NAT", DEFAULT)] * 5, "10 cores"),
        (
            [Workload("NAT", DEFAULT)] * 4 + [BenchLoad.of("compression-bench", {"rate_kpps": 0, "packet_size": 64})],
            "9 cores",
        ),
    ],
)
def test_a_co_location_that_cannot_run_is_refused(co_location: list[Load], message: str) -> None:
    """Unknown names, values out of range and too many cores are refused with the reason."""
    with pytest.raises(TestbedError, match=f"^bad-request: .*{message}"):
        TRUTH.run_many([[Workload("NAT", DEFAULT)], co_location])


def test_thousands_of_runs_are_solved_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chunks and one co-run more are solved in three steps."""
    solved: list[int] = []

    def counted(batch: Batch, card: Card) -> SteadyState:
        solution = solve(batch, card)
        solved.append(solution.throughput.shape[-1])
        return solution

    monkeypatch.setattr(machine, "solve", counted)
    TRUTH.run_many([[Workload("NAT", DEFAULT)]] * (2 * machine.CO_LOCATION_CHUNK + 1), noise=False)
    assert solved == [machine.CO_LOCATION_CHUNK, machine.CO_LOCATION_CHUNK, 1]


def test_it_can_be_served_over_the_protocol() -> None:
    """Served over text streams, an answer holds throughput and counters of each load in order."""
    request = {"id": 1, "op": "run", "noise": False, "workloads": [Workload("NAT", DEFAULT).as_request()]}
    answered = io.StringIO()
    serve(SimulatedTestbed(), io.StringIO(json.dumps(request) + "\n"), answered)
    answer = json.loads(answered.getvalue())
    assert answer["ok"]
    assert (
        answer["workloads"][0]["throughput_kpps"] == throughputs(TRUTH.run([Workload("NAT", DEFAULT)], noise=False))[0]
    )


def test_another_card_is_another_value() -> None:
    """The larger card has room for more NFs and slows them less."""
    larger = SimulatedTestbed(card=BLUEFIELD_3)
    co_location = [Workload("FlowStats", DEFAULT), Workload("NAT", DEFAULT), Workload("FlowMonitor", DEFAULT)]
    assert larger.describe().nic.cores == 16
    assert min(throughputs(larger.run(co_location, noise=False))) > min(
        throughputs(TRUTH.run(co_location, noise=False))
    )
    assert len(throughputs(larger.run(co_location * 2, noise=False))) == 6


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)[:, np.newaxis]


def test_structures_hit_by_the_share_that_fits_the_cache() -> None:
    """Of a table of 400 lines in a cache of 100, a quarter of the accesses hit; nothing misses when everything fits."""
    assert private_hits([400], [3], 100) == pytest.approx([0.25]) and private_hits([60, 40], [3, 1], 100) == [1.0, 1.0]


def test_a_structure_touched_more_often_holds_more() -> None:
    """Two equal tables share the cache by access rate, and together fill it."""
    often, seldom = private_hits([100, 100], [4, 1], 100)
    assert often > 0.5 > seldom and 100 * often + 100 * seldom == pytest.approx(100)


def test_steps_of_the_shared_cache_reach_the_same_answer() -> None:
    """The vectorised steps converge to what the private cache computes for the same structures."""
    lines, rates, pressure = column(300, 700, 50), column(5, 2, 1), np.zeros(1)
    for _ in range(20):
        pressure = pressure_step(pressure, lines, rates, 400)
    assert hits(pressure, lines, rates)[:, 0] == pytest.approx(private_hits([300, 700, 50], [5, 2, 1], 400))


@pytest.mark.parametrize(
    ("offered", "served"),
    [
        # The others offer nothing, so all time is for the first.
        ((9, 0, 0), 1.0),
        # The second takes its 0.2 requests/us of 1 us each, the third its 0.1 of 2 us.
        ((9, 0.2, 0.1), 0.6),
        # All queues full: each is served once in 1 + 1 + 2 us.
        ((9, 9, 9), 0.25),
        # The second full, the third offers 0.1: 0.8 of the time is halved.
        ((9, 9, 0.1), 0.4),
    ],
)
def test_round_robin_serves_full_queues_equally_often(offered: tuple[float, ...], served: float) -> None:
    """A full queue gets the time that light ones leave, divided by turns and not by time."""
    turns = np.full((3, 1), 1e6)
    for _ in range(6):
        turns = turns_step(turns, column(*offered), np.ones((3, 1)), column(1, 1, 2))
    assert turns[0, 0] == pytest.approx(served)


def test_two_queues_get_two_turns() -> None:
    """A load with two full queues next to one with one full queue is served twice as often."""
    turns = np.full((2, 1), 1e6)
    for _ in range(4):
        turns = turns_step(turns, column(9, 9), column(2, 1), column(1, 1))
    assert turns[:, 0] == pytest.approx([1 / 3, 1 / 3])


def test_waiting_at_half_load_is_one_queue_time() -> None:
    """A channel at half its bandwidth makes accesses wait for 1 / (1 - 1/2) - 1 = 1 queue time."""
    waiting = np.zeros(1)
    for _ in range(30):
        waiting = waiting_step(BLUEFIELD_2, waiting, np.full(1, BLUEFIELD_2.dram_gbps / 2), np.zeros(1))
    assert waiting[0] == pytest.approx(BLUEFIELD_2.dram_queue_ns)


@pytest.mark.parametrize(("mtbr", "service_us"), [(330.2259, 1 / 1.1762088), (628.0342, 1 / 0.6738936)])
def test_regex_service_time_is_the_measured_one(mtbr: float, service_us: float) -> None:
    """At both match rates measured on a BlueField-2, 1518-byte packets take the published time."""
    assert BLUEFIELD_2.engines["regex"].service_us(1518, mtbr) == pytest.approx(service_us, rel=0.002)


def test_an_engine_of_one_card_is_contended_there_and_unknown_to_others() -> None:
    """The DMA engine of the larger card slows Mirror and no NF without it."""
    larger = open_testbed("simulated:bluefield-3")
    assert "dma" in larger.describe().nic.accelerators
    assert all(bench.name != "dma-bench" for bench in TRUTH.describe().benches)

    def drop(nf: str) -> float:
        workload, bench = Workload(nf, DEFAULT), BenchLoad.of("dma-bench", {"rate_kpps": 0, "packet_size": 1500})
        alone, beside = (larger.run(loads, noise=False) for loads in ([workload], [workload, bench]))
        return 1.0 - throughputs(beside)[0] / throughputs(alone)[0]

    assert drop("Mirror") > 0.3 and drop("FlowStats") < 0.02


on_cores = st.builds(lambda workload, cores: replace(workload, cores=cores), workloads, st.sampled_from([1, 2]))
NAT = Workload("NAT", DEFAULT)


def carried(*loads: Load) -> list[float]:
    return [measured.throughput_kpps for measured in TRUTH.run(loads, noise=False).measurements]


@given(on_cores, st.lists(on_cores, max_size=3), st.floats(0.02, 0.999), st.floats(1.01, 3))
@settings(max_examples=examples(60), deadline=None)
def test_an_nf_carries_its_rate_or_its_capacity_beside_the_others(
    first: Workload, others: Sequence[Workload], below: float, above: float
) -> None:
    """Below the capacity, all that is offered; above, what it carries in a closed loop."""
    capacity = carried(first, *others)[0]
    assert carried(replace(first, rate_kpps=below * capacity), *others)[0] == pytest.approx(below * capacity, rel=1e-5)
    assert carried(replace(first, rate_kpps=above * capacity), *others)[0] == pytest.approx(capacity, rel=1e-4)


@given(on_cores, st.lists(on_cores, min_size=1, max_size=3), st.floats(0.05, 1))
@settings(max_examples=examples(40), deadline=None)
def test_a_lower_rate_leaves_more_to_the_others(first: Workload, others: Sequence[Workload], share: float) -> None:
    """Memory, cache and accelerators are used as much as packets need them. Who gains asks more of an accelerator that
    it shares with another one, which loses no larger share by that."""
    capacity, *crowded = carried(first, *others)
    _, *relieved = carried(replace(first, rate_kpps=share * capacity), *others)
    gains = [after / before - 1 for before, after in zip(crowded, relieved, strict=True)]
    assert min(gains) >= -2e-5 - max(*gains, 0.0)


@given(workloads)
@settings(max_examples=examples(60), deadline=None)
def test_more_cores_never_carry_less(workload: Workload) -> None:
    one, two, four = (carried(replace(workload, cores=cores))[0] for cores in (1, 2, 4))
    assert one * (1 - 1e-5) <= two <= four * (1 + 1e-5)


@pytest.mark.parametrize(("nf", "least", "most"), [("NAT", 2.0, 2.4), ("PacketFilter", 1.0, 1.0), ("NIDS", 1.2, 2.0)])
def test_cores_help_as_far_as_cores_limit(nf: str, least: float, most: float) -> None:
    """From two cores to four: NAT's packets wait for cores and for private caches, PacketFilter's for the regex engine
    alone, and NIDS, which runs to completion, waits for one after the other."""
    workload = Workload(nf, DEFAULT)
    assert least <= carried(replace(workload, cores=4))[0] / carried(workload)[0] <= most


def test_an_nf_has_as_many_turns_of_an_accelerator_on_any_cores() -> None:
    """Its request queues are its own: beside a full queue of another NF, PacketFilter gets the same on 1 and 4."""
    full, other = Workload("PacketFilter", DEFAULT), Workload("FlowMonitor", DEFAULT)
    shares = [carried(replace(full, cores=cores), other)[0] for cores in (1, 4)]
    assert shares[0] == pytest.approx(shares[1], rel=0.02)


@pytest.mark.parametrize("nf", TABLE_1)
def test_the_default_number_of_cores_is_the_one_without_a_number(nf: str) -> None:
    """With noise, too: what was measured before cores could be chosen is measured again."""
    workload = Workload(nf, DEFAULT)
    assert TRUTH.run([workload], seed=3) == TRUTH.run([replace(workload, cores=2)], seed=3)


def test_noise_does_not_reach_a_rate_far_below_the_capacity() -> None:
    """It is of the capacity: nothing is lost at 90 %, and no run ever carries more than the rate."""
    capacity = carried(NAT)[0]
    for share, lossless in ((0.9, True), (0.995, False)):
        load = replace(NAT, rate_kpps=share * capacity)
        kpps = {run.measurements[0].throughput_kpps for run in SimulatedTestbed().run_many([[load]] * 200)}
        assert max(kpps) == load.rate_kpps and (len(kpps) == 1) == lossless


def test_cores_that_wait_for_packets_retire_the_instructions_of_polling() -> None:
    """At a rate near none, nearly all instructions are those of the loop that waits."""
    idle = TRUTH.run([replace(NAT, rate_kpps=1.0, cores=4)], noise=False).measurements[0].counters
    assert idle.ipc == pytest.approx(POLLING_IPC, rel=0.01)
    assert idle.irt == pytest.approx(4 * 2.5e9 * POLLING_IPC, rel=0.01)
    assert idle.l2crd < 1e-2 * TRUTH.run([NAT], noise=False).measurements[0].counters.l2crd


def test_cores_are_counted_as_given() -> None:
    """Four NFs on two cores fill the card; one of them on four does not fit."""
    assert TRUTH.run([replace(NAT, cores=4), NAT, NAT])
    with pytest.raises(RunRefused, match="needs 10 cores, the NIC has 8"):
        TRUTH.run([replace(NAT, cores=4), NAT, NAT, NAT])
    with pytest.raises(RunRefused, match="NAT cannot be given 3 cores, possible: 1, 2, 4"):
        TRUTH.run([replace(NAT, cores=3)])
