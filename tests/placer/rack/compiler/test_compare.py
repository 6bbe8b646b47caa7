"""Comparing what programs did with the reference: what is a difference, and what contracts leave open."""

import random
from collections.abc import Callable, Sequence

import pytest

from placer.rack.chain import Chain
from placer.rack.compiler.execute import NfCounts
from tests.placer.rack.compiler.library.frames import TCP, UDP, ipv4_frame, random_frames
from tests.placer.rack.compiler.racks import made_chain
from tests.reference.compare import RackOutcome, ReferenceRun
from tests.reference.interpret import Interpreter
from tests.reference.nfs.dedup import repeated_payload
from tests.reference.nfs.esp import EncryptModel
from tests.reference.nfs.headers import SOURCE, End, end_of, read_headers, with_end
from tests.reference.nfs.limiter import LimiterModel
from tests.reference.nfs.model import FunctionModel
from tests.reference.nfs.nat import NatModel

Models = Callable[[Interpreter], None]


def timed(frames: Sequence[bytes]) -> list[tuple[int, bytes]]:
    return [(1_000_000 + 1000 * at, frame) for at, frame in enumerate(frames)]


def flows(n: int, protocol: int = UDP) -> list[bytes]:
    """Frames of five flows, each with another identification."""
    return [ipv4_frame(0x0A000001 + at % 5, protocol=protocol, identification=at, payload=bytes(20)) for at in range(n)]


def outcome_of(chain: Chain, frames: Sequence[bytes], change: Models | None = None) -> RackOutcome:
    """What the reference does, perhaps with other models."""
    interpreter = Interpreter([chain])
    if change:
        change(interpreter)
    for time_us, frame in timed(frames):
        interpreter.enter(frame, time_us)
    result = interpreter.result
    return RackOutcome([one.frame for one in result.outputs], result.counts, result.dropped)


def with_model(name: str, model: FunctionModel) -> Models:
    """Puts another model in the place of an NF's."""

    def change(interpreter: Interpreter) -> None:
        interpreter.models[name] = model

    return change


@pytest.mark.long
def test_the_reference_does_not_differ_from_itself() -> None:
    """Random frames through NFs of every contract."""
    chain = made_chain(["Dedup", "ACL", "NAT", "IPv4Fwd", ("Limiter", {"mbps": 1}), "Encrypt", "Tunnel"])
    frames = random_frames(1, 800)
    run = ReferenceRun([chain], timed(frames))
    assert len(run.expected.outputs) > 50
    assert run.differences(outcome_of(chain, frames)) == []


def test_frames_that_are_lost_added_or_changed_are_named() -> None:
    frames = flows(40)
    run = ReferenceRun([made_chain(["Tunnel"])], timed(frames))
    sent = [one.frame for one in run.expected.outputs]
    (lost,) = run.differences(RackOutcome(sent[1:]))
    assert lost == f"1 frames did not leave, but should have: {sent[0].hex()}"
    (added,) = run.differences(RackOutcome([*sent, sent[3]]))
    assert added == f"1 frames left, but should not have: {sent[3].hex()}"
    assert len(run.differences(RackOutcome([sent[0][:-1] + b"x", *sent[1:]]))) == 2


def test_order_is_that_of_each_flow_at_each_nf() -> None:
    """Frames of different flows may overtake each other, those of one may not."""
    frames = flows(40)
    run = ReferenceRun([made_chain(["Monitor", "Tunnel"])], timed(frames))
    sent = [one.frame for one in run.expected.outputs]
    by_flow = sorted(sent, key=lambda frame: frame[33])
    assert run.differences(RackOutcome(by_flow)) == []
    sent[0], sent[5] = sent[5], sent[0]
    assert run.differences(RackOutcome(sent)) == [
        "8 frames of one flow left in another order than they came, by c/f0 -> c/f1"
    ]


def test_a_service_header_that_leaves_the_rack_is_a_difference() -> None:
    run = ReferenceRun([made_chain(["Monitor"])], timed(flows(1)))
    leaked = bytes(12) + b"\x89\x4f" + run.expected.outputs[0].frame
    assert "1 frames left with a network service header" in run.differences(RackOutcome([leaked]))[0]


def test_counters_and_drops_are_compared_and_all_frames_are_explained() -> None:
    frames = [*flows(4), ipv4_frame()[:20]]
    run = ReferenceRun([made_chain(["Monitor"])], timed(frames))
    sent = [one.frame for one in run.expected.outputs]
    assert run.differences(RackOutcome(sent, {"c/f0": NfCounts(4, 4, 0)}, {"malformed": 1})) == []
    assert run.differences(RackOutcome(sent, {"c/f0": NfCounts(5, 4, 1)}, {"unmatched": 1})) == [
        "c/f0: counted 5 entered, 4 sent, 1 dropped, not 4 entered, 4 sent, 0 dropped",
        "dropped as malformed: 0, not 1",
        "dropped as unmatched: 1, not 0",
        "5 frames entered, but 6 left or were dropped",
    ]
    other = RackOutcome(sent, {"c/f0": NfCounts(4, 4, 0), "c/f9": NfCounts()}, {"malformed": 1, "unknown_path": 1})
    assert "c/f9: counted, but no NF of the chains" in run.differences(other)
    assert "dropped as unknown_path: 1, which explains nothing" in run.differences(other)


class OtherPorts(NatModel):
    """A NAT that gives ports out from above."""

    def choose(self, protocol: int, inside: End) -> End:
        return self.first + 3, 60000 - len(self.mappings)


class SharedPorts(NatModel):
    """A NAT that gives one port to all."""

    def choose(self, protocol: int, inside: End) -> End:
        return self.first, 5000


class ManyPorts(OtherPorts):
    """A NAT that gives each packet another port."""

    def process(self, frame: bytes, time_us: int) -> list[bytes]:
        left = []
        for made in super().process(frame, time_us):
            headers = read_headers(made)
            address = end_of(made, headers.l3, headers.l4, SOURCE)[0]
            left.append(with_end(made, headers.l3, headers.l4, SOURCE, (address, 3000 + time_us // 1000 % 997)))
        return left


@pytest.mark.parametrize("around", [[], ["Encrypt"]])
def test_a_nat_may_choose_endpoints_but_one_for_each_inside_endpoint(around: list[str]) -> None:
    """Also where what it translated is encrypted behind it."""
    chain = made_chain(["NAT", "IPv4Fwd", *around])
    frames = flows(30) + flows(30, TCP)
    run = ReferenceRun([chain], timed(frames))
    other = outcome_of(chain, frames, with_model("c/f0", OtherPorts({}, {})))
    assert set(other.frames).isdisjoint(one.frame for one in run.expected.outputs)
    assert run.differences(other) == []
    for model in (SharedPorts, ManyPorts):
        wrong = outcome_of(chain, frames, with_model("c/f0", model({}, {})))
        assert run.differences(wrong) == ["c/f0: external endpoints are not one for each inside endpoint"]


def test_a_nat_that_writes_a_wrong_checksum_is_a_difference() -> None:
    frames = flows(10)
    run = ReferenceRun([made_chain(["NAT"])], timed(frames))
    sent = [one.frame for one in run.expected.outputs]
    sent[0] = sent[0][:40] + bytes([sent[0][40] ^ 1]) + sent[0][41:]
    assert len(run.differences(RackOutcome(sent))) == 2


def test_what_depends_on_the_port_that_a_nat_chose_is_not_certain() -> None:
    """An LB behind a NAT may choose another backend; that as many frames leave is still looked at."""
    chain = made_chain(["NAT", "LB"])
    frames = flows(30)
    run = ReferenceRun([chain], timed(frames))
    assert run.expected.uncertain == set(range(30))
    other = outcome_of(chain, frames, with_model("c/f0", OtherPorts({}, {})))
    assert run.differences(other) == []
    assert run.differences(RackOutcome(other.frames[1:], other.counts)) == [
        "30 frames entered, but 29 left or were dropped"
    ]


def test_counters_behind_a_choice_that_is_not_certain_are_not_looked_at() -> None:
    """Of NFs that no frame of the reference reaches, too."""
    chain = made_chain(["NAT", "Monitor", "Match", "Tunnel"], [(0, 1, "1/2", ""), (0, 2, "1/2", ""), (1, 3, "1", "")])
    assert ReferenceRun([chain], timed(flows(1))).expected.uncertain_nfs == {"c/f1", "c/f2", "c/f3"}


def test_a_cipher_may_use_other_sequence_numbers_but_not_other_contents() -> None:
    chain = made_chain(["Encrypt", "NAT", "Tunnel"])
    frames = flows(30)
    run = ReferenceRun([chain], timed(frames))
    later = EncryptModel({"in_udp": "1"}, {})
    for frame in frames:
        later.process(frame, 0)
    other = outcome_of(chain, frames, with_model("c/f0", later))
    assert other.frames[0] != run.expected.outputs[0].frame
    assert run.differences(other) == []
    assert len(run.differences(outcome_of(chain, [ipv4_frame(payload=b"other"), *frames[1:]]))) == 2


@pytest.mark.parametrize("nfs", [["Encrypt", "Tunnel", "Decrypt"], ["NAT", "Monitor", "NAT"]])
def test_what_a_later_nf_undoes_or_hides_is_not_looked_for(nfs: list[str]) -> None:
    """A frame that was opened again has no cipher; one that passed two NATs shows the endpoint of the second."""
    chain = made_chain(nfs)
    frames = flows(30)
    run = ReferenceRun([chain], timed(frames))
    assert len(run.expected.outputs) == 30
    assert run.differences(outcome_of(chain, frames)) == []
    if "NAT" in nfs:
        assert run.differences(outcome_of(chain, frames, with_model("c/f2", OtherPorts({}, {})))) == []
    assert len(run.differences(outcome_of(chain, [ipv4_frame(payload=b"other"), *frames[1:]]))) >= 2


def test_what_a_nat_did_to_ciphers_that_are_opened_is_not_certain() -> None:
    chain = made_chain(["Encrypt", "NAT", "Decrypt"])
    run = ReferenceRun([chain], timed(flows(10)))
    assert run.expected.uncertain == set(range(10))
    assert run.differences(outcome_of(chain, flows(10), with_model("c/f1", OtherPorts({}, {})))) == []


def test_dedup_may_refer_to_other_payloads() -> None:
    """Frames that reach it in another order are encoded otherwise, and restored to the same."""
    rng = random.Random(1)
    texts = [rng.randbytes(900) for _ in range(4)]
    frames = [ipv4_frame(0x0A000001 + at, payload=repeated_payload(rng, texts)) for at in range(80)]
    chain = made_chain(["Dedup", "Tunnel"])
    run = ReferenceRun([chain], timed(frames))
    other = outcome_of(chain, frames[::-1])
    assert set(other.frames) != {one.frame for one in run.expected.outputs}
    assert run.differences(other) == []
    assert len(run.differences(RackOutcome([*other.frames[1:], frames[0]]))) == 2


def test_a_limiter_may_drop_others_at_its_rate() -> None:
    """Another clock drops other frames; no limit, or half the rate, is a difference."""
    frames = flows(600)
    chain = made_chain(["Monitor", ("Limiter", {"mbps": 0.2}), "Tunnel"])
    run = ReferenceRun([chain], timed(frames))
    assert 100 < len(run.expected.outputs) < 400
    late = outcome_of(chain, frames, with_model("c/f1", _Late({"rate_mbps": "0.2"}, {})))
    assert list(late.frames) != [one.frame for one in run.expected.outputs]
    assert run.differences(late) == []
    for mbps in (0.1, 100):
        wrong = outcome_of(chain, frames, with_model("c/f1", LimiterModel({"rate_mbps": str(mbps)}, {})))
        assert "c/f1: counted 600 entered" in run.differences(wrong)[0]


class _Late(LimiterModel):
    def process(self, frame: bytes, time_us: int) -> list[bytes]:
        return super().process(frame, time_us + (time_us // 1000 % 3) * 900)
