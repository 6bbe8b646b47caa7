"""The simulated server: its functions meet the published cycles, and chains follow from what packets need."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.testing import check_testbed
from profiler.simulated import SimulatedServer
from profiler.simulated.server_testbed import CoreTime, follow, pass_packets, random_times
from profiler.testbed import Measurement, RunRefused
from profiles import BenchLoad, ChainLoad, ConfiguredWorkload, Load, NfStage, TrafficProfile, Workload
from tests.effort import examples

SERVER = SimulatedServer()
TRAFFIC = SERVER.describe().traffic
WORST = TrafficProfile(100_000, 1500, 600)
NFS = [nf.name for nf in SERVER.describe().nfs]

PUBLISHED = {
    "Encrypt": 9123, "Decrypt": 2843, "FastEncrypt": 6820, "Dedup": 33186, "Tunnel": 289, "Detunnel": 230,
    "Limiter": 20, "UrlFilter": 6994, "Monitor": 310, "NAT": 519, "LB": 564, "Match": 976, "ACL": 985,
}  # fmt: skip
"""Cycles per packet of 1,500 B at 1.7 GHz (Lemur)."""

traffics = st.builds(
    TrafficProfile,
    flows=st.integers(1, 100_000).map(float),
    packet_size=st.integers(64, 1500).map(float),
    mtbr=st.integers(0, 600).map(float),
)


@st.composite
def chains(draw: st.DrawFn) -> ChainLoad:
    names = draw(st.lists(st.sampled_from(NFS), min_size=1, max_size=4))
    on = [draw(st.integers(0, 2)) for _ in names]
    cores = [[at for at, core in enumerate(on) if core == wanted] for wanted in sorted(set(on))]
    shares = draw(st.just([]) | st.lists(st.floats(0.05, 1), min_size=len(cores), max_size=len(cores)))
    return ChainLoad.of(names, cores, draw(traffics), shares=shares)


loads = (
    chains()
    | st.builds(Workload, nf=st.sampled_from(NFS), traffic=traffics)
    | st.just(BenchLoad.of("mem-bench", {"wss_mb": 40, "access_mops": 180}))
    | st.builds(lambda nf, share: paced(nf, 1000 * share), st.sampled_from(NFS), st.floats(0.01, 1))
    | st.builds(
        lambda nf, cores, rate: Workload(nf, TRAFFIC, rate, cores=cores),
        st.sampled_from(["ACL", "Dedup", "LB"]),
        st.sampled_from([1, 2, 4]),
        st.sampled_from([500.0, inf]),
    )
)


def paced(nf: str, rate_kpps: float) -> Workload:
    return Workload(nf, TRAFFIC, rate_kpps)


def truth(load: Load, *others: Load) -> Measurement:
    return SERVER.run([load, *others], noise=False).measurements[0]


def cycles(load: Load) -> float:
    """Cycles of one core per packet that enters."""
    return 1.7e6 / truth(load).throughput_kpps


def cycles_of(name: str, traffic: TrafficProfile = TRAFFIC, **parameters: float) -> float:
    """Cycles of an NF without the source."""
    nf: Load = Workload(name, traffic)
    if parameters:
        nf = ConfiguredWorkload.of(Workload(name, traffic), parameters)
    return cycles(nf) - cycles(Workload("Null", traffic))


def chain(names: Sequence[str | NfStage], cores: Sequence[Sequence[int]], **other: object) -> ChainLoad:
    return ChainLoad.of(names, cores, TRAFFIC, **other)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_function_takes_the_published_cycles(name: str) -> None:
    """Within 1 % at the worst traffic, as published ones are worst cases; within 5 % at default traffic."""
    assert cycles_of(name, WORST) == pytest.approx(PUBLISHED[name], rel=0.01)
    assert cycles_of(name) == pytest.approx(PUBLISHED[name], rel=0.05)


def test_acl_takes_the_published_cycles_with_1024_rules_and_is_linear() -> None:
    """4,091 cycles with 1,024 rules; each further rule costs the same."""
    few, default, published, many = (cycles_of("ACL", rules=rules) for rules in (1, 200, 1024, 4096))
    assert published == pytest.approx(4091, rel=0.01)
    slope = (published - default) / 824
    assert (default - few, many - published) == pytest.approx((199 * slope, 3072 * slope), rel=0.01)


def test_the_server_keeps_the_protocol() -> None:
    """Fourteen functions and the null NF on sixteen cores; what it describes runs."""
    described = SERVER.describe()
    assert (described.nic.cores, described.nic.clock_mhz, described.nic.kind) == (16, 1700, "server")
    assert [nf.name for nf in described.nfs] == ["Null", *PUBLISHED, "IPv4Fwd"]
    assert {nf.name for nf in described.nfs if not nf.replicable} == {"NAT", "Limiter"}
    check_testbed(SimulatedServer())


def test_an_nf_is_a_chain_of_one_stage() -> None:
    """Alone, with parameters, and beside others."""
    nf, staged = Workload("NAT", TRAFFIC), chain(["NAT"], [[0]])
    bench = BenchLoad.of("mem-bench", {"wss_mb": 64, "access_mops": 180})
    assert replace(truth(staged, *[bench] * 15), stages=()) == truth(nf, *[bench] * 15)
    acl = ConfiguredWorkload.of(Workload("ACL", TRAFFIC), {"rules": 9})
    assert truth(acl) == replace(truth(chain([NfStage.of("ACL", {"rules": 9})], [[0]])), stages=())


def test_run_to_completion_adds_up_the_stages() -> None:
    """With one source; tables that no longer fit the private cache together cost extra."""
    alone = [cycles_of(name) for name in ("NAT", "LB", "Monitor")]
    together = cycles(chain(["NAT", "LB", "Monitor"], [[0, 1, 2]])) - cycles(Workload("Null", TRAFFIC))
    assert sum(alone) < together < 1.2 * sum(alone)


def test_payload_is_fetched_once_per_core() -> None:
    """The second function of a core that reads the payload finds it in the private cache."""
    together = cycles(chain(["Encrypt", "Decrypt"], [[0, 1]])) - cycles(Workload("Null", TRAFFIC))
    assert together < cycles_of("Encrypt") + cycles_of("Decrypt", replace(TRAFFIC, packet_size=1500))


def test_a_pipeline_goes_at_the_rate_of_its_slowest_core_and_rings_cost() -> None:
    """Two cores are faster than one, but not twice; packets pass a ring, which a core alone does not need."""
    one, two = cycles(chain(["Tunnel", "Tunnel"], [[0, 1]])), cycles(chain(["Tunnel", "Tunnel"], [[0], [1]]))
    assert one / 2 < two < one and two > cycles(Workload("Tunnel", TRAFFIC))
    assert cycles(chain(["Tunnel", "Null", "Tunnel"], [[0, 2], [1]])) > one


def test_what_a_stage_drops_later_stages_do_not_see() -> None:
    """Behind an ACL that denies a half, NAT sees a half, and the chain takes more packets than behind one that denies
    none."""
    half, none = (chain([NfStage.of("ACL", {"denied_pct": pct}), "NAT"], [[0, 1]]) for pct in (50, 0))
    measured = truth(half)
    assert [stage.dropped_pct for stage in measured.stages] == [50, 0]
    assert [stage.throughput_kpps for stage in measured.stages] == pytest.approx([measured.throughput_kpps / 2] * 2)
    assert cycles(none) - cycles(half) == pytest.approx(cycles_of("NAT") / 2, rel=0.05)


def test_a_stage_that_drops_everything_leaves_the_others_idle() -> None:
    """The chain goes on; nothing leaves it."""
    measured = truth(chain([NfStage.of("ACL", {"denied_pct": 100}), "Encrypt"], [[0], [1]]))
    assert [stage.throughput_kpps for stage in measured.stages] == [0, 0]
    assert 1.7e6 / measured.throughput_kpps == pytest.approx(cycles(Workload("ACL", TRAFFIC)), rel=0.05)


def test_stages_see_the_packets_that_earlier_ones_made() -> None:
    """Behind Dedup, which removes 30 % of the payload, Encrypt has less to do; behind Tunnel a little more."""
    null = cycles(Workload("Null", TRAFFIC))
    behind = cycles(chain(["Dedup", "Encrypt"], [[0, 1]])) - null - cycles_of("Dedup")
    assert behind == pytest.approx(0.7 * cycles_of("Encrypt"), rel=0.03)
    first, second = chain(["Tunnel", "FastEncrypt"], [[0, 1]]), chain(["FastEncrypt", "Tunnel"], [[0, 1]])
    assert cycles(first) - cycles(second) == pytest.approx(4 * 4.5, abs=3)


def test_a_core_with_half_its_time_goes_half_as_fast() -> None:
    """A little slower, because it switches between tasks; the other core of a pipeline is not affected."""
    all_of_it, half = (truth(chain(["ACL"], [[0]], shares=[share])).throughput_kpps for share in (1, 0.5))
    assert 0.49 < half / all_of_it < 0.5
    slow = truth(chain(["ACL", "Tunnel"], [[0], [1]], shares=[1, 0.5]))
    assert slow.throughput_kpps == pytest.approx(truth(chain(["ACL", "Tunnel"], [[0], [1]])).throughput_kpps, rel=0.05)


def test_an_open_loop_carries_what_is_offered_up_to_the_capacity() -> None:
    """Latency grows with the load, and is bounded by the rings beyond the capacity."""
    capacity = truth(chain(["ACL", "NAT"], [[0], [1]])).throughput_kpps
    half, most, beyond = (
        truth(chain(["ACL", "NAT"], [[0], [1]], rate_kpps=share * capacity)) for share in (0.5, 0.9, 2)
    )
    assert half.throughput_kpps == 0.5 * capacity
    assert beyond.throughput_kpps == pytest.approx(capacity, rel=0.01)
    latencies = [one.latency_us for one in (half, most, beyond)]
    assert all(latency is not None and latency.mean <= latency.p99 <= latency.max for latency in latencies)
    means = [latency.mean for latency in latencies if latency]
    assert means == sorted(means) and means[-1] < 3000
    assert truth(chain(["ACL", "NAT"], [[0], [1]])).latency_us is None


def test_an_nf_at_a_rate_carries_it_and_its_latency_grows_with_the_load() -> None:
    """What is offered leaves, up to what it carries in a closed loop; a closed loop has no latency."""
    capacity = truth(Workload("NAT", TRAFFIC)).throughput_kpps
    half, most, beyond = (truth(paced("NAT", share * capacity)) for share in (0.5, 0.9, 2))
    assert half.throughput_kpps == 0.5 * capacity and beyond.throughput_kpps == pytest.approx(capacity, rel=0.01)
    found = [one.latency_us for one in (half, most, beyond) if one.latency_us]
    assert [one.mean for one in found] == sorted(one.mean for one in found) and len(found) == 3
    assert all(0 < one.p50 <= one.p99 <= one.max for one in found)
    assert not half.stages and truth(Workload("NAT", TRAFFIC)).latency_us is None


def test_bursts_of_few_flows_wait_longer() -> None:
    """At the same share of what the NF carries; a tenth of it is enough for packets of a burst to wait."""
    waits = []
    for flows in (1, 300, 10_000):
        traffic = replace(TRAFFIC, flows=flows)
        capacity = truth(Workload("Encrypt", traffic)).throughput_kpps
        latency = truth(Workload("Encrypt", traffic, 0.1 * capacity)).latency_us
        assert latency is not None
        waits.append(latency.mean * capacity / 1e3)
    assert waits[0] > 2 * waits[1] > 4 * waits[2] > 4


def test_packets_that_find_the_ring_full_do_not_leave() -> None:
    """Bursts of 64 packets, of one flow, at nearly all that the NF carries: some are lost, and not at a low rate."""
    one_flow = Workload("NAT", replace(TRAFFIC, flows=1))
    capacity = truth(one_flow).throughput_kpps
    low, high = (
        truth(replace(one_flow, rate_kpps=share * capacity)).throughput_kpps / capacity for share in (0.1, 0.9)
    )
    assert low == pytest.approx(0.1) and 0.7 < high < 0.89


@pytest.mark.long
def test_neighbours_that_slow_an_nf_down_lengthen_its_latency() -> None:
    """At the same rate, and not when they have rates of their own that leave the memory idle."""
    others = [Workload("Dedup", TRAFFIC)] * 15
    slow = [replace(other, rate_kpps=1.0) for other in others]
    alone, beside, beside_slow = (
        one.mean for neighbours in ([], others, slow) if (one := truth(paced("NAT", 2500), *neighbours).latency_us)
    )
    assert alone == pytest.approx(beside_slow, rel=0.1) and beside > 1.1 * alone


@settings(max_examples=examples(25))
@given(st.lists(loads, min_size=1, max_size=4), st.lists(loads, max_size=3), st.randoms(use_true_random=False))
def test_neither_order_nor_batch_changes_an_answer(one: list[Load], other: list[Load], random: object) -> None:
    """A co-location measured alone, shuffled, or in a batch with others gets the same answer to the last bit."""
    order = list(range(len(one)))
    random.shuffle(order)  # type: ignore[attr-defined]
    alone = SERVER.run(one, seed=3)
    batch = SERVER.run_many([[*other, one[0]], [one[at] for at in order], one], seed=3)
    assert batch[2] == alone
    if len(set(one)) == len(one):
        assert [batch[1].measurements[order.index(at)] for at in range(len(one))] == list(alone.measurements)


@settings(max_examples=examples(25))
@given(chains(), loads)
def test_a_neighbour_never_helps_a_chain(load: ChainLoad, other: Load) -> None:
    """They share the last-level cache and the memory."""
    assert truth(load, other).throughput_kpps <= truth(load).throughput_kpps * (1 + 2e-5)


@settings(max_examples=examples(25))
@given(chains())
def test_less_leaves_each_stage_than_enters_it(load: ChainLoad) -> None:
    """What leaves a stage is what entered it less what it drops."""
    measured = truth(load)
    entered = measured.throughput_kpps
    for stage in measured.stages:
        assert stage.throughput_kpps == pytest.approx(entered * (1 - stage.dropped_pct / 100), rel=1e-4)
        entered = stage.throughput_kpps


def test_memory_slows_functions_with_tables_and_payload_and_no_others() -> None:
    """Fifteen memory benches take cache and memory from NAT and UrlFilter; Limiter needs neither."""
    benches = [BenchLoad.of("mem-bench", {"wss_mb": 64, "access_mops": 180})] * 15
    kept = {
        name: truth(Workload(name, TRAFFIC), *benches).throughput_kpps / truth(Workload(name, TRAFFIC)).throughput_kpps
        for name in ("NAT", "UrlFilter", "Limiter")
    }
    assert kept["NAT"] < 0.6 and kept["UrlFilter"] < 0.6 and kept["Limiter"] > 0.99


def test_noise_of_a_chain_is_about_one_percent_and_depends_on_the_seed() -> None:
    """In a closed loop; below its capacity a chain carries exactly what is offered, and its latency varies."""
    load = chain(["ACL", "NAT"], [[0], [1]])
    runs = [SERVER.run([load], seed=seed).measurements[0].throughput_kpps for seed in range(20)]
    assert runs[0] == SERVER.run([load], seed=0).measurements[0].throughput_kpps
    assert 0.005 < max(abs(run / truth(load).throughput_kpps - 1) for run in runs) < 0.05
    half = replace(load, rate_kpps=500.0)
    opened = [SERVER.run([half], seed=seed).measurements[0] for seed in range(3)]
    assert {one.throughput_kpps for one in opened} == {500.0} and len({one.latency_us for one in opened}) == 3


def test_more_than_sixteen_cores_are_refused() -> None:
    """A chain takes a core for each entry of `cores`, also where it has a share of it only."""
    eight = chain(["ACL"] * 8, [[at] for at in range(8)], shares=[0.5] * 8)
    SERVER.run([eight, eight])
    with pytest.raises(RunRefused, match="needs 17 cores, the NIC has 16"):
        SERVER.run([eight, eight, Workload("ACL", TRAFFIC)])


def test_copies_on_several_cores_carry_what_cores_of_their_own_would() -> None:
    """ACL on four cores is four NFs with a quarter of the flows each, and so are its counters."""
    quarter = replace(TRAFFIC, flows=TRAFFIC.flows / 4)
    four, alone = Workload("ACL", TRAFFIC, cores=4), Workload("ACL", quarter)
    together = SERVER.run([alone] * 4, noise=False).measurements
    assert truth(four).throughput_kpps == pytest.approx(sum(one.throughput_kpps for one in together), rel=1e-5)
    assert truth(four).counters.irt == pytest.approx(sum(one.counters.irt for one in together), rel=1e-5)
    assert truth(four).counters.ipc == pytest.approx(together[0].counters.ipc, rel=1e-5)
    assert truth(four, four, four, four).throughput_kpps <= truth(four).throughput_kpps
    with pytest.raises(RunRefused, match="needs 17 cores, the NIC has 16"):
        SERVER.run([four] * 4 + [alone])


def test_packets_are_spread_over_copies_by_flow() -> None:
    """One flow is on one core, the second on another; three on two cores wait for the core that has two of them."""
    kpps = [truth(Workload("ACL", replace(TRAFFIC, flows=flows), cores=2)).throughput_kpps for flows in (1.0, 2.0)]
    one = truth(Workload("ACL", replace(TRAFFIC, flows=1.0))).throughput_kpps
    assert kpps == pytest.approx([one, 2 * one], rel=1e-3)
    three = truth(Workload("ACL", replace(TRAFFIC, flows=3.0), rate_kpps=1.8 * one, cores=2))
    assert three.throughput_kpps == pytest.approx(1.6 * one, rel=0.01)


def test_an_nf_on_several_cores_has_its_rate_and_a_shorter_latency() -> None:
    """At nine tenths of what one core carries, four cores hardly wait; 1.1 times what four carry is too much."""
    capacity = truth(Workload("Decrypt", TRAFFIC)).throughput_kpps
    one, four = (truth(Workload("Decrypt", TRAFFIC, 0.9 * capacity, cores=cores)) for cores in (1, 4))
    assert (one.throughput_kpps, four.throughput_kpps) == pytest.approx((0.9 * capacity,) * 2, rel=1e-5)
    assert one.latency_us and four.latency_us and four.latency_us.p99 < 0.5 * one.latency_us.p99
    much = truth(Workload("Decrypt", TRAFFIC, 4.4 * capacity, cores=4))
    assert much.throughput_kpps == pytest.approx(4 * capacity, rel=0.01)


def test_what_cannot_be_split_has_one_core() -> None:
    """NAT has one space of ports, Limiter one bucket."""
    for nf in ("NAT", "Limiter"):
        with pytest.raises(RunRefused, match=f"{nf} cannot be given 2 cores, possible: 1"):
            SERVER.run([Workload(nf, TRAFFIC, cores=2)])


def passed(
    arrived: list[float], *, batch_us: float = 0.0, batch: int = 32, ring: int = 1024
) -> tuple[list[int], list[float]]:
    kept, left = pass_packets(np.array(arrived), np.ones(len(arrived)), batch_us, batch, ring)
    return kept.tolist(), left.tolist()


@pytest.mark.parametrize(
    ("arrived", "options", "kept", "left"),
    [
        ([0.0, 5.0, 10.0], {}, [0, 1, 2], [1.0, 6.0, 11.0]),  # slowly: one by one, each in its own time of 1 us
        # two arrive while the first is served, and leave together after 2 us; each batch costs half a us more
        ([0.0, 0.5, 0.9], {"batch_us": 0.5}, [0, 1, 2], [1.5, 4.0, 4.0]),
        ([0.0, 0.5, 0.6, 0.7], {"batch": 2}, [0, 1, 2, 3], [1.0, 3.0, 3.0, 4.0]),  # of three that wait, two are first
        # of three that come while the first is served, a ring of two holds two; the other is lost
        ([0.0, 0.5, 0.6, 0.7, 9.0], {"ring": 2}, [0, 1, 2, 4], [1.0, 3.0, 3.0, 10.0]),
    ],
)
def test_packets_pass_in_batches_through_a_ring(arrived, options, kept, left) -> None:  # type: ignore[no-untyped-def]
    assert passed(arrived, **options) == (kept, left)


def test_latency_of_rare_packets_is_the_time_of_all_cores() -> None:
    """Two cores of 2 and 3 us, and half a us per batch on the first; nobody waits."""
    cores = [CoreTime(2.0, 0.0, 0.5), CoreTime(3.0, 0.0, 0.0)]
    rng = np.random.default_rng(0)
    latency = follow(cores, random_times(1e-6, 1000, rng), 32, 1024, rng).latency
    assert (latency.mean, latency.p50, latency.p99) == pytest.approx((5.5, 5.5, 5.5))


def test_one_core_at_half_load_waits_as_a_queue_with_constant_service() -> None:
    """M/D/1 at half load: half a service time of waiting in the mean (Pollaczek and Khinchine); one packet a batch."""
    rng = np.random.default_rng(0)
    latency = follow([CoreTime(1.0, 0.0, 0.0)], random_times(0.5, 60_000, rng), 1, 10**6, rng).latency
    assert latency.mean == pytest.approx(1.5, rel=0.03)
    assert latency.p50 < latency.mean < latency.p99 < latency.max


def test_the_share_that_is_not_lost_is_counted() -> None:
    """Four packets at once meet a ring of two."""
    found = follow([CoreTime(1.0, 0.0, 0.0)], np.zeros(4), 32, 2, np.random.default_rng(0))
    assert (found.kept, found.latency.max) == (0.5, 2.0)
