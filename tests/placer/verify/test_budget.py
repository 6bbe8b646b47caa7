"""Certificates of `planned`: honest ones are accepted, and every kind of tampering is found."""

import copy
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from placer.inputs.catalogue import Cards
from placer.model.nic_kind import NicKind
from placer.optimal.planned.certificate import certificate
from placer.optimal.planned.strategy import Planned
from placer.progress import Progress
from placer.run import RunRequest, run
from placer.testing.strategies import CORES_BY_NF, arrival
from placer.verify import budget_faults, places_most, read_certificate
from predictor import Predictor
from profiles import InputError
from tests.placer.commands.conftest import Placer, placer
from tests.placer.optimal.planned.instances import NAME, ErringPredictor, catalogue_of
from traces.arrivals import Recipe, generate

__all__ = ["placer"]

Tamper = Callable[[dict[str, Any]], object]
PAIR = ErringPredictor(kept={("a", "a"): (0.88, 0.88), ("a", "a", "a"): (0.5,) * 3})
"""Two of NF a keep 88 %, which errs by 5 %; three of them keep half."""
KIND = NicKind(0, "toy-0", 3, CORES_BY_NF)


def claimed(drops: Sequence[float], budget_pct: float = 50.0, kind: NicKind = KIND) -> dict[str, Any]:
    """The certificate of a plan of NFs a with these drops, one a second."""
    arrivals = [arrival(str(number), float(number), "a", drop) for number, drop in enumerate(drops, start=1)]
    catalogue = catalogue_of([kind], [PAIR], budget_pct)
    return certificate(arrivals, catalogue, Planned(catalogue, NAME, seconds=5.0).place(arrivals))


def faults_in(claims: dict[str, Any], folder: Path, errors: Sequence[Predictor] = (PAIR,)) -> list[str]:
    """The faults that the verifier finds in a certificate file."""
    file = folder / "certificate.json"
    file.write_text(json.dumps(claims), encoding="utf-8")
    found = read_certificate(file)
    assert found.budget is not None
    return list(budget_faults(found, found.budget, errors))


FOUR = (0.2, 0.2, 0.05, 0.05)  # two may lose 20 %, and two less than any pair is expected to


def test_a_plan_by_hand(tmp_path: Path) -> None:
    """The two that may lose 20 % share a NIC, with a probability of ndtr(ln(0.8 / 0.88) / 0.05) = 2.8 % each. Two of
    four tenants: 1.415 % are expected. Both are of one case and equally likely, so the variance of their violations is
    q^2 * 2^3 * q / (2 q^2) - (2 q)^2 = 4 q - 4 q^2. The others are alone, where nothing errs."""
    claims = claimed(FOUR)
    q = 0.0283146
    assert {tuple(nic["tenants"]) for nic in claims["plan"]["nics"]} == {("1", "2"), ("3",), ("4",)}
    assert claims["plan"]["expected_violations_pct"] == pytest.approx(100 * 2 * q / 4, rel=1e-4)
    repeated = 100 / 4 * ((2 * q) ** 3 / (2 * q * q) - (2 * q) ** 2) ** 0.5
    assert claims["plan"]["reserve_pct"] == pytest.approx(0.4 * 100 * 2 * q / 4 + 0.4 * repeated, rel=1e-4)
    assert (claims["plan"]["cost"], claims["bound"]["lower_bound"], claims["bound"]["over"]) == (3, 3, "co-locations")
    assert faults_in(claims, tmp_path) == []


def move(claims: dict[str, Any]) -> None:
    """Moves the tenant of the last NIC to the first, on the third core."""
    claims["plan"]["nics"][0]["tenants"] += claims["plan"]["nics"].pop()["tenants"]
    claims["plan"]["cost"] -= 1


def another_kind(claims: dict[str, Any]) -> None:
    """The first NIC is of a kind on which a pair keeps less."""
    claims["fleet"].append({**claims["fleet"][0]})
    claims["bound"]["nic_prices"].append(0)
    claims["plan"]["nics"][0]["kind"] = 1


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (move, "plan: . violates its SLA with a probability of 1, above 0.5"),
        (lambda claims: claims["plan"]["nics"][1]["tenants"].append("1"), "plan: 1 is placed 2 times"),
        (lambda claims: claims.update(budget_pct=5), r"plan: 1.41\d+ % and a reserve of \S+ % exceed the budget of 5"),
        (lambda claims: claims["plan"].update(expected_violations_pct=1), r"plan: 1.41\d+ % of tenants .*, not 1 %"),
        (lambda claims: claims["plan"].update(reserve_pct=0), r"plan: the reserve is \S+ %, not 0 %"),
        (another_kind, "plan: . violates its SLA with a probability of 0.9"),
        (lambda claims: claims["bound"]["prices"][0].update(price=0.9), "bound: a . a are worth .* costs 1"),
        (lambda claims: claims["bound"]["prices"][1].update(price=1.1), "bound: a are worth 1.1 together"),
        (lambda claims: claims["bound"]["prices"][1].update(price=0.5), "bound: the prices prove 2, not 3"),
        (lambda claims: claims["bound"]["prices"].pop(), "bound: 1 classes of tenants have no price"),
        (lambda claims: claims["bound"].update(lower_bound=4), "bound: the prices prove 3, not 4"),
        (lambda claims: claims["bound"].update(violation_price=-1), "bound: the price of a violation is below zero"),
        (lambda claims: claims["bound"].update(violation_price=4), "bound: the prices prove 0, not 3"),
        (lambda claims: claims["bound"].update(over="cores"), "bound: tenants worth"),
        (lambda claims: claims["bound"].update(nic_prices=[0.5]), "bound: NIC kind 0 is not limited"),
    ],
)  # fmt: skip
def test_tampering_is_found(tmp_path: Path, tamper: Tamper, message: str) -> None:
    """Whatever is changed in plan, budget or prices, the verifier says what is wrong; placements are checked as those
    of plans without a budget, in `test_verify.py`."""
    claims = claimed(FOUR)
    tamper(claims)
    worse = ErringPredictor(kept={("a", "a"): (0.75, 0.75), ("a", "a", "a"): (0.5,) * 3})
    faults = faults_in(claims, tmp_path, [PAIR, worse])
    assert any(re.match(message, fault) for fault in faults), faults


def test_what_is_likely_while_a_nic_fills_up_counts(tmp_path: Path) -> None:
    """Of three that arrive together, the pair never stands; of three that arrive one after the other, it does."""
    three = ErringPredictor(kept={("a", "a"): (0.5, 0.5), ("a", "a", "a"): (0.9,) * 3})
    claims = claimed((0.2, 0.2, 0.2))
    claims["plan"] |= {"cost": 1, "nics": [{"kind": 0, "tenants": ["1", "2", "3"]}]}
    claims["bound"]["lower_bound"] = 1
    assert any(re.match(r"plan: 66.97\d+ % of tenants are", fault) for fault in faults_in(claims, tmp_path, [three]))
    for tenant in claims["tenants"]:
        tenant["time"] = 5
    assert any(re.match(r"plan: 0.92\d+ % of tenants are", fault) for fault in faults_in(claims, tmp_path, [three]))


@pytest.mark.parametrize(("count", "left_out"), [(2, 1), (1, 2)])
def test_prices_prove_that_none_leaves_out_fewer(tmp_path: Path, count: int, left_out: int) -> None:
    """With too few NICs, tenants are left out, and the prices of NICs say that no plan leaves out fewer."""
    claims = claimed(FOUR, kind=NicKind(0, "toy-0", 3, CORES_BY_NF, count))
    assert len(claims["plan"]["left_out"]) == left_out and faults_in(claims, tmp_path) == []
    found = read_certificate(tmp_path / "certificate.json")
    assert found.budget is not None and places_most(found, found.budget)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"of": "hope"}, "it is of 'hope'"),
        ({"budget_pct": 0}, "a budget is above 0"),
        ({"predictor": None}, "None is no text"),
        ({"plan": {"cost": 1, "nics": [], "left_out": []}}, "key 'expected_violations_pct' is missing"),
    ],
)
def test_values_without_meaning_are_rejected(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """Bad input, and no traceback."""
    with pytest.raises(InputError, match=message):
        faults_in(claimed(FOUR) | change, tmp_path)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A trace of forty arrivals, and the certificate of its plan on the recorded card."""
    trace = tmp_path_factory.mktemp("trace") / "arrivals.csv"
    trace.write_text("".join(generate(Recipe(count=40, seed=5))), encoding="utf-8")
    request = RunRequest(
        str(trace), strategies=("planned",), cards=Cards(budget_pct=2.0), time_limit=5.0, certificate="planned"
    )
    return trace, json.loads(run(request, Progress(quiet=True)).certificate("planned"))


@pytest.mark.long
def test_the_command_checks_a_plan_of_the_recorded_card(
    recorded: tuple[Path, dict[str, Any]], tmp_path: Path, placer: Placer
) -> None:
    """What `planned` writes is accepted; with another arrival time or a smaller budget it is not."""
    trace, claims = recorded
    file = tmp_path / "c.json"

    def verified(changed: dict[str, Any]) -> tuple[int, str, str]:
        file.write_text(json.dumps(changed), encoding="utf-8")
        return placer("verify", file, "--arrivals", trace)

    status, out, err = verified(claims)
    assert (status, err) == (0, "")
    assert "plan: 40 tenants on" in out and "within the budget of 2 %" in out
    assert "bound: no plan within the budget, without what is kept back, that places as many tenants costs less" in out
    later = copy.deepcopy(claims)
    later["tenants"][-1]["time"] += 1
    assert verified(later)[::2] == (1, f"trace: {later['tenants'][-1]['id']} arrives at another time there\n")
    status, _, err = verified(claims | {"budget_pct": 0.01})
    assert status == 1 and "exceed the budget of 0.01 %" in err
