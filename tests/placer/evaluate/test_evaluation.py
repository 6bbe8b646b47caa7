"""How plans are evaluated, on cases worked by hand."""

from placer.evaluate.checks import slas_kept
from placer.evaluate.evaluation import Evaluation, evaluate, to_buy
from placer.model.fleet import NicKind
from placer.model.plan import Placement, Plan
from placer.testing.strategies import CORES_BY_NF, ToyOracle, arrival

KIND = NicKind(0, "toy", 8, CORES_BY_NF)


def evaluated(*placements: Placement) -> Evaluation:
    """A plan's evaluation by the toy oracle."""
    return evaluate(Plan("by hand", None, placements, 0.0), [KIND], [ToyOracle()])


def test_the_lowest_throughput_of_the_stay_counts() -> None:
    """c loses 2 x 0.05 while b is there, from 1 to 2 s: 360 of 400 kpps."""
    c, b = arrival("c", 0, "c", 0.05), arrival("b", 1, "b", 0.5, departure=2)
    stays = evaluated(Placement(c, "n", KIND), Placement(b, "n", KIND)).stays
    assert stays is not None and round(stays["c"].throughput_kpps, 9) == 360.0
    assert not stays["c"].sla_met


def test_a_co_location_counts_only_after_its_moment() -> None:
    """One tenant leaves at the moment another arrives: they never shared the NIC, by evaluation and checker."""
    c, b, later = arrival("c", 0, "c", 0.1), arrival("b", 0, "b", 0.5, departure=1), arrival("b2", 1, "b", 0.5)
    placements = (Placement(c, "n", KIND), Placement(b, "n", KIND), Placement(later, "n", KIND))
    evaluation = evaluated(*placements)
    assert evaluation.violated == 0 and list(slas_kept(evaluation.plan, [ToyOracle()])) == []


def test_a_neighbour_that_arrives_at_the_same_time_counts_from_the_start() -> None:
    """An oracle by which a runs faster next to b: both arrive at 0 s, so a never runs alone."""

    class Helping(ToyOracle):
        def _query(self, co_locations):  # type: ignore[no-untyped-def]
            return [[50.0 if w.nf == "a" and len(co_location) == 1 else 100.0 for w in co_location]
                    for co_location in co_locations]  # fmt: skip

    a, b = arrival("a", 0, "a", 0.0), arrival("b", 0, "b", 0.5)
    plan = Plan("by hand", None, (Placement(a, "n", KIND), Placement(b, "n", KIND)), 0.0)
    stays = evaluate(plan, [KIND], [Helping()]).stays
    assert stays is not None and stays["a"].throughput_kpps == 100.0


def test_what_is_owned_need_not_be_bought() -> None:
    """At the peak two of the first kind, of which one is owned, and one of two other kinds of one model, both owned."""
    kinds = [
        NicKind(i, model, 8, CORES_BY_NF, owned=owned)
        for i, (model, owned) in enumerate([("x", 1), ("y", 3), ("y", None)])
    ]
    trace = [arrival(str(number), number, "d", departure=9 if number else 1) for number in range(5)]
    homes = [("a", 0), ("b", 0), ("c", 0), ("e", 1), ("f", 2)]
    placements = tuple(Placement(one, nic, kinds[kind]) for one, (nic, kind) in zip(trace, homes, strict=True))
    assert to_buy(Plan("by hand", None, placements, 0.0), kinds) == {"x": 1, "y": 1}
