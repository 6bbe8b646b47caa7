"""The latency of admitted SLOs: by hand, and as the verifier has it; and what a plan breaks."""

import os
import subprocess
import sys
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random

import pytest

from placer.gpu.device import Arbitration
from placer.gpu.latency import latency_of, violations
from placer.gpu.plan import Admission, Admitted, LatencySlo, SmShare
from placer.inputs.gpu.slos import device_of
from placer.report.text.admission import answer
from placer.verify.admission import admission_case, latency_terms
from tests.placer.gpu.instances import ARBITRATIONS, Generator, contended, slos_of, small_device, unseen


def some_plan(rng: Random, slos: list[LatencySlo], sms: int) -> Admission:
    """All SLOs, with any batches, orders and SMs; it may break every limit."""
    orders = rng.sample(range(100), len(slos))
    admitted = []
    for slo, order in zip(slos, orders, strict=True):
        shares = [SmShare(sm, rng.randint(1, 4)) for sm in rng.sample(range(sms), rng.randint(1, sms))]
        admitted.append(Admitted(slo, sum(share.packets for share in shares), order, tuple(shares)))
    return Admission(tuple(admitted), (), len(slos), True, 0.0)


@pytest.mark.parametrize("generator", [contended, unseen])
@pytest.mark.parametrize("arbitration", ARBITRATIONS)
def test_every_part_of_every_latency_is_the_same(generator: Generator, arbitration: str) -> None:
    """At any plan, feasible or not; where the bus has no idle time, the wait has no bound."""
    for seed in range(60):
        rng = Random(seed)
        device, slos = generator(rng, arbitration, 4)
        plan = some_plan(rng, [LatencySlo(**slo) for slo in slos], device["sms"])
        found = latency_of(device_of(device, "DEVICE"), plan.admitted)
        case = admission_case(device, slos, answer(plan))
        for one, terms in latency_terms(case.device, {slo.id: slo for slo in case.slos}, case.answer.admitted):
            wait = inf if terms.wait is None else float(terms.wait)
            parts = [float(terms.batching), float(terms.pre_post), wait, float(terms.transfer), float(terms.kernel)]
            ours = found[one.id]
            assert [ours.batching, ours.pre_post, ours.transfer_wait, ours.transfer, ours.kernel] == pytest.approx(
                parts
            )


def test_latency_is_the_sum_of_its_stages() -> None:
    """Batch 3 at 10 kpps takes 200 us to collect; b waits for a; the shared SM costs both 4 us."""
    device = small_device(beta_us=4.0)
    a, b = slos_of(1000, 1000)
    plan = [Admitted(a, 3, 7, (SmShare(0, 3),)), Admitted(b, 3, 9, (SmShare(0, 2), SmShare(1, 1)))]
    parts = latency_of(device, plan)
    assert (parts["a"].batching, parts["a"].pre_post, parts["a"].transfer) == (200.0, 5.0, 10.0)
    assert (parts["a"].transfer_wait, parts["b"].transfer_wait) == (0.0, 10.0)
    assert (parts["a"].kernel, parts["b"].kernel) == (24.0, 24.0) and parts["b"].total == 249.0


def test_recurring_transfers_are_blocked_by_later_ones() -> None:
    """The first waits for one later transfer of 10 us, the last for the first."""
    device = small_device(arbitration=Arbitration.SPORADIC)
    a, b = slos_of(1000, 1000)
    parts = latency_of(device, [Admitted(a, 3, 0, (SmShare(0, 3),)), Admitted(b, 3, 1, (SmShare(1, 3),))])
    assert (parts["a"].transfer_wait, parts["b"].transfer_wait) == (10.0, 10.0)


def test_penalties_are_of_the_other_slos_only() -> None:
    """Alone on its SMs, an SLO with two minibatches has no penalty."""
    device = small_device(beta_us=4.0)
    slo = LatencySlo("a", "ids", 10.0, 1000.0)
    assert latency_of(device, [Admitted(slo, 20, 0, (SmShare(0, 10), SmShare(1, 10)))])["a"].kernel == 20.0


DEVICE = small_device(kernel_us=(0.0, 30.0), beta_us=4.0)
A, B = slos_of(55, 55)
ALONE = Admitted(A, 1, 0, (SmShare(0, 1),))  # batching 0, pre/post 5, transfer 10, kernel 30: 45 us, every 100 us


@pytest.mark.parametrize(
    ("plan", "causes"),
    [
        ([ALONE], []),
        # The second waits 10 us: 55 us, just in time.
        ([ALONE, Admitted(B, 1, 1, (SmShare(1, 1),))], []),
        # On the same SM, its kernel takes 4 us longer.
        ([ALONE, Admitted(B, 1, 1, (SmShare(0, 1),))], ["pcie"]),
        ([ALONE, Admitted(B, 1, 0, (SmShare(1, 1),))], ["pcie", "pcie"]),
        # 100 us to collect two packets.
        ([Admitted(A, 2, 0, (SmShare(0, 2),))], ["batching"]),
        ([Admitted(replace(A, batch=2), 1, 0, (SmShare(0, 1),))], ["batching"]),
        ([Admitted(A, 1, 0, (SmShare(2, 1),))], ["executors"]),
        ([Admitted(A, 1, 0, ())], ["executors", "kernel"]),
        ([Admitted(replace(A, latency_us=9999.0), 30, 0, (SmShare(0, 30),))], ["executors"]),
        ([Admitted(replace(A, latency_us=9999.0), 20, 0, (SmShare(0, 10), SmShare(0, 10)))], ["executors"]),
        # Every 25 us a packet: neither kernel is done by then.
        ([Admitted(replace(A, rate_kpps=40.0), 1, 0, (SmShare(0, 1),))], ["kernel"]),
        # Every 4 us: not even the CPU.
        ([Admitted(replace(A, rate_kpps=250.0), 1, 0, (SmShare(0, 1),))], ["batching"]),
        ([Admitted(replace(A, latency_us=30.0), 1, 0, (SmShare(0, 1),))], ["kernel"]),
        ([Admitted(replace(A, latency_us=40.0), 1, 0, (SmShare(0, 1),))], ["pcie"]),
    ],
)
def test_violations_name_the_cause(plan: list[Admitted], causes: list[str]) -> None:
    """Each plan with what it breaks."""
    assert [one.cause for one in violations(DEVICE, plan)] == causes


def test_workers_limit_the_number() -> None:
    """With one worker, the second SLO has none."""
    plan = [ALONE, Admitted(B, 1, 1, (SmShare(1, 1),))]
    assert [(one.id, one.cause) for one in violations(replace(DEVICE, workers=1), plan)] == [("b", "workers")]


def test_times_are_those_of_the_contract() -> None:
    """Batching 1000 * (batch - 1) / rate; a kernel by executors; the largest penalty; unknown neighbours cost 0."""
    device = small_device(kernel_us=(3.0, 20.0), transfer_us=(0.5, 10.0), beta_us=4.0)
    assert device.batching_us(11, 20.0) == 500.0 and device.period_us(11, 20.0) == 550.0
    assert device.transfer("ids", 8) == 14.0
    assert [device.executors(packets) for packets in (1, 10, 11)] == [1, 1, 2]
    assert device.kernel("ids", 11) == 26.0
    assert [device.penalty("ids", others) for others in ([], ["acl"], ["acl", "ids"])] == [0.0, 0.0, 4.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sms": 0}, "sms is 0"),
        ({"workers": -1}, "workers is -1"),
        ({"transfer_us": {}}, "ids has class payload"),
        ({"transfer_us": {"payload": (-1.0, 0.0)}}, "transfer_us of payload is -1"),
        ({"sharing_us": {"ids": {"acl": float("nan")}}}, "sharing_us of ids beside acl is nan"),
    ],
)
def test_impossible_devices_are_refused(change: dict[str, object], message: str) -> None:
    """Sizes below 1, unknown classes, and numbers that are no times."""
    with pytest.raises(ValueError, match=message):
        replace(small_device(), **change)  # type: ignore[arg-type]


LOOP = """
from pathlib import Path
from numba import njit
from predictor.regression.compiled import cache_kernel
FOLDERS = (Path(__file__).parent,)
"""


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """Two files: a loop that calls one of the other file, which Python calls, too."""
    (tmp_path / "inner.py").write_text(
        LOOP + "inner = cache_kernel(njit()(lambda x: x + 1), FOLDERS)\n", encoding="utf-8"
    )
    (tmp_path / "outer.py").write_text(
        LOOP
        + "from inner import inner\nouter = cache_kernel(njit()(lambda x: inner(x)), FOLDERS)\n"
        + "print(outer(inner(0)))\n",
        encoding="utf-8",
    )
    return tmp_path


def printed(room: Path) -> str:
    repo = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(room)!r}, {str(repo)!r}]; import outer"]
    environment = os.environ | {"XDG_CACHE_HOME": str(room / "cache")}
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=room, env=environment).stdout


def kept(room: Path, name: str) -> list[Path]:
    """Files of that name among the kernels in the user's cache."""
    return list((room / "cache" / "nf-placer" / "kernels").glob(f"*/{name}"))


@pytest.mark.long
def test_a_change_in_another_file_is_noticed(room: Path) -> None:
    """Numba alone would look at the outer file, and go on with the old inner loop."""
    assert printed(room) == "2\n" and kept(room, "outer*.nbc")
    inner = room / "inner.py"
    inner.write_text(inner.read_text(encoding="utf-8").replace("x + 1", "x + 2"), encoding="utf-8")
    assert printed(room) == "4\n"


@pytest.mark.long
def test_what_another_version_left_is_not_read(room: Path) -> None:
    """Its files name modules that are gone, which Numba would import."""
    assert printed(room) == "2\n"
    outer = room / "outer.py"
    outer.write_text(outer.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    assert kept(room, "outer*.nbi")
    for index in kept(room, "outer*.nbi"):
        index.write_bytes(b"\x80\x04c" + b"gone_module\nname\n.")
    assert printed(room) == "2\n"
