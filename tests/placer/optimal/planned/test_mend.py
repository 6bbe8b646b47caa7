"""What moves a doubtful instance to a NIC of its own keeps its constraints."""

from dataclasses import replace

import pytest

from placer.evaluate.checks import constraints_kept
from placer.model.catalogue import Catalogue
from placer.model.groups import Constraints
from placer.model.plan import Placement, Plan
from placer.optimal.planned.mend import mend
from placer.testing.strategies import TOY_TRAFFIC, arrival, catalogue
from predictor import Models
from tests.placer.optimal.planned.instances import NAME, ErringPredictor


@pytest.mark.parametrize(("given", "placed"), [({}, 2), ({"together": "g"}, 1)], ids=["moved", "rejected"])
def test_a_doubtful_instance_stays_in_its_pool_and_with_its_group(given: dict[str, str], placed: int) -> None:
    """Two lose half of what they may lose a third of; the cheaper NIC for one of them is in another pool."""
    first, second = catalogue((None, 1.0), (None, 2.0)).kinds
    kinds = (replace(first, pool="p1"), replace(second, pool="p2"))
    asked = Constraints(tuple(sorted({"pool": "p2", **given}.items())))
    trace = [replace(arrival(f"i{at}", at, "a", 0.3), constraints=asked) for at in range(2)]
    models = Models({NAME: ErringPredictor(kept={("a", "a"): (0.5, 0.5)})}, None, TOY_TRAFFIC, {})
    toy = Catalogue(kinds, (models,) * 2, (None,) * 2, specs=("none",) * 2, budget_pct=1.0)
    begun = Plan("planned", None, tuple(Placement(one, "nic-1", kinds[1]) for one in trace), 0.0)
    plan, expected = mend(begun, toy, NAME, 1.0)
    assert [*constraints_kept(plan)] == [] and len(plan.placed) == placed and expected.mean_pct == 0.0
