"""Offered loads and numbers of cores on the simulated card."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.simulated import SimulatedTestbed
from profiler.simulated.machine import POLLING_IPC
from profiler.testbed import RunRefused
from profiles import Load, Workload
from tests.effort import examples
from tests.profiler.simulated.test_testbed import DEFAULT, TABLE_1, TRUTH, workloads

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
